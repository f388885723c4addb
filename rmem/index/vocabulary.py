"""The words of the memories with their vectors, to find words similar to a question word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .analyser import Word
from .best_scores import top
from .bits import VectorColumns

WordVectors = Callable[[Sequence[str]], npt.NDArray[np.float32]]

_LIMIT = 32_768  # words with a vector; later ones still match exactly
_FEW, _FEW_IN, _MANY = 8, 0.01, 64  # a word in more rows than 1 % of all, but 8 to 64, needs no similar words
_FLOOR, _MOST = 0.3, 8  # least cosine of similar words, and most of them for one word
_SHORT_FOR, _LONGEST_ABBREVIATION = 0.9, 6  # closeness of an abbreviation and its word, and its letters
_REACH = 0.4  # largest share of differing sign bits of similar words; 0.5 is unrelated


def rare_words(words: Sequence[Word], held: Mapping[int, int], rows: int) -> list[str]:
    """Return the words that need similar words: those that few rows contain. `held` is the number of rows with
    each of their terms. (On the development set, relatives of the others changed nothing or did harm.)"""
    few = min(max(_FEW, _FEW_IN * rows), _MANY)
    return [word.text for word in words if max((held[term] for term in word.hashes), default=0) <= few]


def is_plain_word(word: str) -> bool:
    """Whether a word of a memory may be similar to others: it consists of letters."""
    if word.isalpha():
        return len(word) > 2 or (len(word) == 2 and word.isascii())
    return len(word) in (3, 4) and word[1:-1].isdigit() and (word[0] + word[-1]).isalpha()  # "k8s", "a11y"


def _may_have_relatives(word: str) -> bool:
    """Whether a word of a question may be similar to others: "k8s" too, but no number."""
    return len(word) > 1 and word[0].isalpha() and word.isalnum()


def abbreviates(short: str, long: str) -> bool:
    """Whether a word may stand for a longer one: "db" for "database", "config" for "configuration", "k8s" for
    "kubernetes"."""
    if short[0] != long[0] or len(long) < len(short) + 2 or len(short) > _LONGEST_ABBREVIATION:
        return False
    letters = iter(long)
    return all(letter in letters for letter in short if not letter.isdigit())


class PackedWords(NamedTuple):
    """Words of a vocabulary as a segment stores them; the vectors may be missing."""

    hashes: npt.NDArray[np.uint64]
    words: list[str]
    codes: npt.NDArray[np.int8] | None
    scales: npt.NDArray[np.float32] | None
    signs: npt.NDArray[np.uint64] | None
    centre: npt.NDArray[np.float32] | None


class Vocabulary:
    """Term hashes, a readable word for each, and its vector. `vectors_of` embeds single words."""

    def __init__(self, vectors_of: WordVectors | None) -> None:
        self._vectors_of = vectors_of
        self._columns: VectorColumns | None = None
        self._hashes: list[int] = []
        self._words: list[str] = []
        self._at: dict[int, int] = {}
        self._relatives: dict[str, list[tuple[int, str, float]]] = {}
        self.from_segments: list[list[int] | slice] = []
        """Which words of each segment were added with their vectors."""

    def __len__(self) -> int:
        return len(self._words)

    @property
    def is_full(self) -> bool:
        return len(self._words) >= _LIMIT

    def add(self, hashes: Sequence[int], words: Sequence[str]) -> None:
        """Add words of memories; ignore known ones and those that are not plain words."""
        for hashed, word in zip(hashes, words, strict=True):
            if hashed not in self._at and is_plain_word(word):
                if self.is_full:
                    return
                self._at[hashed] = len(self._words)
                self._hashes.append(hashed)
                self._words.append(word)

    def add_packed(self, packed: PackedWords) -> None:
        """Add words from a segment, with their vectors if it has them."""
        codes, scales, signs, centre = packed.codes, packed.scales, packed.signs, packed.centre
        known = codes if codes is not None else centre  # the codes may have been left in the store
        if self._vectors_of is None or known is None or scales is None:
            self.add(packed.hashes.tolist(), packed.words)
            return
        self._embed_pending()
        hashes, words = packed.hashes.tolist(), packed.words
        fresh: list[int] | slice = slice(None)
        if self._words or len(words) > _LIMIT:
            fresh = [at for at, hashed in enumerate(hashes) if hashed not in self._at]
            fresh = fresh[: max(0, _LIMIT - len(self._words))]
            hashes, words = [hashes[at] for at in fresh], [words[at] for at in fresh]
            scales, signs = scales[fresh], None if signs is None else signs[:, fresh]
            codes = None if codes is None else codes[fresh]
        self.from_segments.append(fresh)
        first = len(self._words)
        self._at.update(zip(hashes, range(first, first + len(hashes)), strict=True))
        self._hashes += hashes
        self._words += words
        if self._columns is None:
            self._columns = VectorColumns(known.shape[-1])
        self._columns.append_codes(codes, scales, signs, centre)
        self._relatives.clear()

    @property
    def vectors(self) -> VectorColumns | None:
        """The vectors of the words that have one so far."""
        return self._columns

    def embed(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return the vectors of some words by number."""
        assert self._vectors_of is not None
        return self._vectors_of([self._words[row] for row in rows.tolist()])

    def pack(self, terms: npt.NDArray[np.uint64]) -> PackedWords:
        """Return those of `terms` that are words, for `add_packed`."""
        self._embed_pending()
        at = np.array([self._at.get(term, -1) for term in terms.tolist()], np.int64)
        hashes, at = terms[at >= 0], at[at >= 0]
        words = [self._words[i] for i in at.tolist()]
        if self._columns is None:
            return PackedWords(hashes, words, None, None, None, None)
        columns = self._columns
        known = columns.centre is not None
        signs = np.stack([word[at] for word in columns.words]) if known else None
        return PackedWords(hashes, words, columns.codes[at], columns.scales[at], signs, columns.centre)

    def _embed_pending(self) -> None:
        done = 0 if self._columns is None else self._columns.size
        if self._vectors_of is None or done == len(self._words):
            return
        vectors = self._vectors_of(self._words[done:])
        if self._columns is None:
            self._columns = VectorColumns(vectors.shape[1])
        self._columns.append(vectors)
        self._relatives.clear()

    def relatives(self, words: Sequence[str]) -> list[list[tuple[int, str, float]]]:
        """Return for each question word the (term hash, word, cosine) of words close in meaning, closest first. Cached
        for other questions."""
        self._embed_pending()
        if self._vectors_of is None or self._columns is None:
            return [[] for _ in words]
        if len(self._relatives) > 8192:
            self._relatives.clear()
        fresh = [word for word in words if word not in self._relatives and _may_have_relatives(word)]
        if fresh:
            near = self._columns.nearby(self._vectors_of(fresh), _REACH)
            for word, (rows, cosines) in zip(fresh, near, strict=True):
                self._relatives[word] = self._nearest(word, rows, cosines)
        return [self._relatives.get(word, []) for word in words]

    def _nearest(
        self, word: str, rows: npt.NDArray[np.int64], cosines: npt.NDArray[np.float32]
    ) -> list[tuple[int, str, float]]:
        close = np.flatnonzero(cosines >= _FLOOR)
        rows, closeness = rows[close], cosines[close].copy()
        for at, row in enumerate(rows.tolist()):
            if abbreviates(word, self._words[row]) or abbreviates(self._words[row], word):
                closeness[at] = max(closeness[at], _SHORT_FOR)
        best = top(closeness, _MOST)
        return [
            (self._hashes[row], self._words[row], cosine)
            for row, cosine in zip(rows[best].tolist(), closeness[best].tolist(), strict=True)
        ]
