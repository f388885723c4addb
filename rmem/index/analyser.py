"""Split text into terms. Memories and questions use the same analyser, so that the same words match.

- Words are Unicode words, folded (case, width, accents), stemmed by Snowball in the language of the text;
  function words are dropped. A text in another language than English also keeps each word as written, so that a
  question too short to show its language still matches.
- Identifiers, paths, versions and hashes are kept whole and in parts: `etl/transform.py` is itself,
  `transform.py`, `etl`, `transform` and `py`; `MemoryError` is also `memory` and `error`.
- Scripts without spaces become single characters and pairs of neighbours.

A term is a 64-bit hash, so that segments and processes need no common dictionary. Change anything that changes terms
and raise VERSION: stores then re-analyse their rows.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import Stemmer

from ..patterns import lazy_pattern
from .arrays import struct_packer
from .combining_marks import COMBINING_MARKS
from .stopwords import ENGLISH, OTHERS, VOTES

VERSION = 1

Hashes = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.uint16]

HASH, COUNT = np.dtype("<u8"), np.dtype("<u2")

# A number with thousands separators, C++ and C#, or word characters joined by code characters: `a.b/c`, `don't`.
_CHUNK_PATTERN = r"\d{1,3}(?:,\d{3})+(?![\d,])|\b[A-Za-z](?:\+\+|#)(?!\w)|{w}+(?:(?:['’]|[.:/\\@+#=-]+){w}+)*"
_CHUNK = re.compile(_CHUNK_PATTERN.replace("{w}", r"\w"))
_SPACELESS = lazy_pattern(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)
_CAMEL = lazy_pattern(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_A-Za-z]+")
_PART = lazy_pattern(r"[^\W_]+")
_HANGUL = lazy_pattern("[\uac00-\ud7a3]{2,}")
_HEX = lazy_pattern(r"(?:0x)?[0-9a-f]{12,}", re.IGNORECASE)
_VERSION = lazy_pattern(r"v?(\d+(?:\.\d+)+)([^\s]*)", re.IGNORECASE)
_CODE = lazy_pattern(r"[_./\\:@#=+]|\d")
_CAMELCASE = lazy_pattern(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_PLAIN_WORDS = lazy_pattern(r"\w+")
_THOUSANDS = lazy_pattern(r"\d{1,3}(?:,\d{3})+")
_ACCENTS = lazy_pattern(
    "[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u0652\u0670]"
)  # also Hebrew and Arabic vowel points
# Letters that occur in only one of the languages that we can stem.
_SCRIPTS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
_NUMBER = lazy_pattern(r"([0-9]{1,11})(?:\.([0-9]{1,11}))?")
_PLAIN = lazy_pattern(r"[A-Za-z]?[a-z]+(?:'[a-z]+)?")
_CACHED_LENGTH = 64  # characters of a term, up to which its hash is cached
MOST_COUNTED = 65_535  # largest count of a term in a text (uint16)
_MAX_CACHED_CHUNKS = 1 << 16
_HASHER = blake2b(digest_size=8)
_LONG = 1024  # characters; longer chunks are not cached


class Terms(NamedTuple):
    """The terms of one text, packed as stores keep them: distinct hashes, then their counts; and a readable word for
    each."""

    packed: bytes
    words: tuple[str, ...]

    @classmethod
    def of(cls, counts: Mapping[int, int], words: Iterable[str]) -> Self:
        return cls(struct_packer(len(counts), "QH")(*counts, *counts.values()), tuple(words))

    @property
    def size(self) -> int:
        return len(self.packed) // PACKED_SIZE

    @property
    def hashes(self) -> Hashes:
        return np.frombuffer(self.packed, HASH, self.size)

    @property
    def counts(self) -> Counts:
        return np.frombuffer(self.packed, COUNT, offset=8 * self.size)

    @property
    def length(self) -> int:
        return int(self.counts.sum(dtype=np.int64))


PACKED_SIZE = HASH.itemsize + COUNT.itemsize  # bytes per term


class Word(NamedTuple):
    """One word of a question: its term hashes, best first, and whether it is a function word."""

    text: str
    hashes: tuple[int, ...]
    stop: bool


def term_hash(term: str) -> int:
    """Return the 64-bit hash of a term. Hashes of long terms, such as whole texts, are not cached: they rarely
    repeat."""
    return _cached_hash(term) if len(term) <= _CACHED_LENGTH else compute_hash(term)


def compute_hash(term: str) -> int:
    """Compute the hash of a term without the cache."""
    hasher = _HASHER.copy()  # a copy takes two thirds of the time of a new hasher
    hasher.update(term.encode("utf-8", "surrogatepass"))
    return int.from_bytes(hasher.digest(), "little")


_cached_hash = lru_cache(maxsize=1 << 14)(compute_hash)


@lru_cache(maxsize=32)
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(language, 20_000)


class _MarkPatterns(NamedTuple):
    """The patterns above for texts whose words contain combining marks; compiled only when needed, because that is
    slow."""

    chunk: re.Pattern[str]
    part: re.Pattern[str]
    plain: re.Pattern[str]


@lru_cache(maxsize=1)
def _mark_patterns() -> _MarkPatterns:
    word = rf"[\w{COMBINING_MARKS}]"
    return _MarkPatterns(
        re.compile(_CHUNK_PATTERN.replace("{w}", word)),
        re.compile(rf"(?:[^\W_]|[{COMBINING_MARKS}])+"),
        re.compile(f"{word}+"),
    )


def fold(text: str) -> str:
    """Normalise a text: remove case, character width and accents."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", folded))


def is_spaceless(character: str) -> bool:
    """Whether a character belongs to a script that writes words without spaces between them."""
    return _SPACELESS.match(character) is not None


def plain(text: str) -> str:
    """Return the folded words of a text joined by single spaces, to compare phrases and names."""
    words = _PLAIN_WORDS if text.isascii() else _mark_patterns().plain
    return " ".join(words.findall(fold(text)))


class Phrase(NamedTuple):
    """A phrase as written, and normalised for comparison."""

    written: str
    plain: str


@lru_cache(maxsize=256)
def _phrase_pattern(wanted: str) -> re.Pattern[str]:
    """Compile a search for normalised words, one after another, in a folded text."""
    inside = rf"\w{COMBINING_MARKS}"
    first = re.escape(wanted.split()[0])
    starts = "" if is_spaceless(wanted[0]) else f"(?<![{inside}]{first})"  # behind the word, which is found faster
    ends = "" if is_spaceless(wanted[-1]) else f"(?![{inside}])"
    rest = "".join(f"[^{inside}]+{re.escape(word)}" for word in wanted.split()[1:])
    return re.compile(first + starts + rest + ends)


def contains_phrase(text: str, phrase: Phrase) -> bool:
    """Return whether a text contains a phrase at word boundaries; scripts without spaces have no boundaries."""
    return _phrase_pattern(phrase.plain).search(fold(text)) is not None


def language_of(words: Sequence[str]) -> str:
    """Guess the language from lower-case words by its function words; English if these do not decide."""
    english = sum(map(ENGLISH.__contains__, words))
    if english * 6 >= len(words):
        return "english"
    votes: Counter[str] = Counter()
    for word in words:
        for language in VOTES.get(word, ()):
            votes[language] += 1
    if not votes:
        return "english"
    best, count = max(votes.items(), key=lambda item: (item[1], item[0] == "english"))
    return best if count >= 2 and count > english else "english"


def has_no_language(words: Iterable[str]) -> bool:
    """Whether no word indicates a language, so that English is assumed."""
    return VOTES.keys().isdisjoint([word.lower() for word in words])


def chunks(text: str) -> list[str]:
    """Return the words and identifiers of a text as written (in composed form: é is one character)."""
    if text.isascii():
        return _CHUNK.findall(text)
    return _mark_patterns().chunk.findall(unicodedata.normalize("NFC", text))


def _is_stop(chunk: str, language: str) -> bool:
    lowered = chunk.lower().replace("’", "'")
    if language not in OTHERS:
        language = "english"
    if chunk.isupper() and len(chunk) > 1:
        return False  # IT, US, WHO
    return lowered in (ENGLISH if language == "english" else OTHERS[language])


def _word_terms(word: str, language: str) -> tuple[tuple[str, str], ...]:
    """(term, readable word) of one plain word: its stem and, outside English, the word itself."""
    bare = word.lower().replace("’", "'")
    bare = bare.removesuffix("'s").strip("'")
    if language == "english" and not bare.isascii():
        language = next((name for low, high, name in _SCRIPTS if bare and low <= bare[0] <= high), language)
    head, _, tail = bare.partition("'")  # İstanbul'da also gives İstanbul, l'école also gives école
    main = head if len(head) > 2 else tail
    if tail and len(main) > 2 and "'" not in tail:
        return (*_whole_word(main, language), *_whole_word(head + tail, language))
    return _whole_word(bare.replace("'", ""), language)


def _whole_word(bare: str, language: str) -> tuple[tuple[str, str], ...]:
    if language == "english":
        folded = fold(bare)
        return ((_stemmer("english").stemWord(folded), folded),) if folded else ()
    stem, folded = fold(_stemmer(language).stemWord(bare)), fold(bare)
    if not folded:
        return ()
    return ((stem, folded),) if stem == folded else ((stem, folded), (folded, folded))


def _code_terms(chunk: str, language: str) -> Iterator[tuple[str, str]]:
    """Return the terms of an identifier, a path, a version or a hash: whole, and in parts."""
    whole = fold(chunk).replace("’", "'")
    yield whole, whole
    if _HEX.fullmatch(chunk):
        digits = whole.removeprefix("0x")
        for size in range(7, min(len(digits), 13)):
            yield digits[:size], digits[:size]
        return
    version = _VERSION.fullmatch(chunk)
    if version:
        numbers = version[1].split(".")
        for size in range(2, len(numbers) + 1):
            prefix = ".".join(numbers[:size])
            if prefix != whole:
                yield prefix, prefix
    for separator in ("/", "\\", "::"):
        if separator in whole:
            tail = whole.rsplit(separator, 1)[1]
            if tail and _CODE.search(tail):
                yield tail, tail
    for part in (_PART if chunk.isascii() else _mark_patterns().part).findall(chunk):
        pieces = _CAMEL.findall(part)
        if len(pieces) > 1:
            joined = fold(part)
            if joined != whole and not joined.isdigit():
                yield joined, joined
        for piece in pieces if len(pieces) > 1 else [part]:
            if piece.isdigit():
                if len(piece) > 1:
                    yield piece, piece
            elif len(piece) > 1 or len(pieces) == 1:
                yield from _word_terms(piece, language)


# The terms of one chunk, and a readable word for each. Plain tuples, because tens of thousands are cached and the
# garbage collector stops tracking tuples of atoms.
ChunkTerms = tuple[tuple[int, ...], tuple[str, ...]]


def _chunk_terms(chunk: str, language: str) -> ChunkTerms:
    """Return every term of one chunk; none for a function word."""
    # Fast path: plain words and numbers get the same terms as below in a fifth of the time.
    if language == "english" and chunk.isalpha() and chunk.isascii() and chunk[1:].islower():
        lowered = chunk.lower()
        return ((), ()) if lowered in ENGLISH else ((term_hash(_stemmer("english").stemWord(lowered)),), (lowered,))
    if chunk.isdigit() and len(chunk) < 12 and chunk.isascii():
        return (term_hash(chunk),), (chunk,)
    if number := _NUMBER.fullmatch(chunk):
        parts = [part for part in number.groups() if part is not None and len(part) > 1]
        words = tuple(dict.fromkeys((chunk, *parts)))
        return tuple([term_hash(part) for part in words]), words
    if _is_stop(chunk, language):
        return (), ()
    found: list[tuple[str, str]] = []
    if _PLAIN.fullmatch(chunk.replace("’", "'")):
        found += _word_terms(chunk, language)
    else:
        others = [chunk]
        if not chunk.isascii():
            runs = [fold(run) for run in _SPACELESS.findall(chunk)]
            for run in runs:
                found += [(character, character) for character in run]
                found += _pairs(run)
            for run in _HANGUL.findall(chunk):  # Korean particles are attached to words
                found += _pairs(run)
            others = _SPACELESS.split(chunk) if runs else others
        for rest in others:
            rest = rest.strip("'’-_.:/\\@=")
            if not rest:
                continue
            if _THOUSANDS.fullmatch(rest):
                found.append((rest.replace(",", ""),) * 2)
            elif _CODE.search(rest) or _CAMELCASE.search(rest):
                found += dict.fromkeys(_code_terms(rest, language))
            else:
                for part in re.split(r"-+", rest):
                    if not _is_stop(part, language):
                        found += _word_terms(part, language)
    return tuple([term_hash(term) for term, _ in found]), tuple([word for _, word in found])


def _pairs(run: str) -> list[tuple[str, str]]:
    """Return every pair of neighbouring characters as a term and its readable word."""
    return [(run[at : at + 2], run[at : at + 2]) for at in range(len(run) - 1)]


class _ChunkCache(dict[str, ChunkTerms]):
    """Cache of the terms of chunks in one language. A plain dictionary, because looking up a word costs
    more than anything else here and an `lru_cache` takes three times as long."""

    def __init__(self, language: str) -> None:
        self._language = language

    def __missing__(self, chunk: str) -> ChunkTerms:
        terms = _chunk_terms(chunk, self._language)
        if len(chunk) <= _LONG:
            if len(self) >= _MAX_CACHED_CHUNKS:
                self.clear()
            self[chunk] = terms
        return terms


_chunk_cache = cache(_ChunkCache)


def terms_of(pieces: Iterable[str], language: str = "english") -> Iterator[ChunkTerms]:
    """Return the terms of each word or identifier."""
    return map(_chunk_cache(language).__getitem__, pieces)


TokenTerms = tuple[tuple[int, ...], tuple[str, ...], int]
"""The terms of a token, a readable word for each, and 6 for each function word in it less 1 for each word."""


class _TokenCache(dict[str, TokenTerms]):
    """Cache for the space-separated tokens of English ASCII text. No word contains a space, so the terms of a text are
    those of its tokens, which are found in half the time."""

    def __missing__(self, token: str) -> TokenTerms:
        pieces = _CHUNK.findall(token)
        english = 6 * sum([piece.lower() in ENGLISH for piece in pieces]) - len(pieces)
        if len(pieces) == 1:
            found = *_chunk_cache("english")[pieces[0]], english
        else:
            hashes, words = join_terms(terms_of(pieces))
            found = tuple(hashes), tuple(words), english
        if len(token) <= _LONG:
            if len(self) >= 2 * _MAX_CACHED_CHUNKS:
                self.clear()
            self[token] = found
        return found


_token_cache = _TokenCache()


def _terms_in(text: str) -> Iterable[ChunkTerms | TokenTerms]:
    """Return the terms of a text, token by token or word by word."""
    if text.isascii():
        tokens = [*map(_token_cache.__getitem__, text.split())]
        if sum([token[2] for token in tokens]) >= 0:  # a sixth are function words, as `language_of` decides
            return tokens
    pieces = chunks(text)
    return terms_of(pieces, language_of([piece.lower() for piece in pieces]))


def join_terms(terms: Iterable[ChunkTerms | TokenTerms]) -> tuple[list[int], list[str]]:
    """Return the term hashes of the parts of a text with repetitions, and a readable word for each."""
    hashes: list[int] = []
    words: list[str] = []
    for found in terms:
        hashes += found[0]
        words += found[1]
    return hashes, words


def term_hashes(text: str) -> list[int]:
    """Return the term hashes of a text with repetitions: what `analyse` counts, in half its time."""
    return [*chain.from_iterable([found[0] for found in _terms_in(text)])]


def analyse(text: str, extra: Iterable[str] = ()) -> Terms:
    """Return the terms of a memory. `extra` are additional words, such as those of its date."""
    return count_terms(chain(_terms_in(text), terms_of(extra)))


def count_terms(terms: Iterable[ChunkTerms | TokenTerms]) -> Terms:
    """Combine the terms of the parts of a memory into distinct terms with counts, and the first word of each."""
    hashes, words = join_terms(terms)
    counts = dict.fromkeys(hashes, 1)
    if len(counts) < len(hashes):
        counts = Counter(hashes)
        first = dict(zip(reversed(hashes), reversed(words), strict=True))
        words = [first[hashed] for hashed in counts]
        if len(hashes) > MOST_COUNTED:
            counts = {hashed: min(count, MOST_COUNTED) for hashed, count in counts.items()}
    return Terms.of(counts, words)


def question_words(text: str) -> list[Word]:
    """Return the words of a question in order, each with every hash that a memory may have for it.

    The language of a short question is a guess, so a word may match by its stem in English, by its stem in
    the guessed language, or as written; the best of them counts once.
    """
    pieces = chunks(text)
    language = language_of([piece.lower() for piece in pieces])
    found: dict[str, Word] = {}
    for piece in pieces:
        stop = _is_stop(piece, language)
        groups = [_chunk_cache("english")[piece]]
        if language != "english" and not stop:
            groups.insert(0, _chunk_cache(language)[piece])
        elif not piece.isascii() and not stop:  # not English, but too short to guess the language
            groups += [_chunk_cache(other)[piece] for other in OTHERS]
        parts: dict[str, list[int]] = {}
        for group in groups:
            for hashed, word in zip(*group, strict=True):
                parts.setdefault(word, []).append(hashed)
        if not parts:
            found.setdefault(piece.lower(), Word(piece.lower(), (), True))
        for word, hashes in parts.items():
            hashes.append(term_hash(word))
            found.setdefault(word, Word(word, tuple(dict.fromkeys(hashes)), stop))
    return _without_lone_characters(list(found.values()))


def stemmed_hashes(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return, for plain English words, the term of the stem and that of the word as written."""
    stems = _stemmer("english").stemWords(list(words))
    return [(compute_hash(stem), compute_hash(word)) for stem, word in zip(stems, words, strict=True)]


def _without_lone_characters(words: list[Word]) -> list[Word]:
    """Drop single characters of a script without spaces that occur in a pair of the question."""
    texts = [word.text for word in words if len(word.text) == 2 and not word.text.isascii()]
    pairs = {character for text in texts if _SPACELESS.fullmatch(text) for character in text}
    return [word for word in words if not (len(word.text) == 1 and word.text in pairs)]
