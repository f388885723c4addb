"""Text to token numbers for the static vectors: byte-fallback BPE over the vocabulary of Llama 2.

The numbers are those of the `tokenizers` library for words of up to 128 characters (the tests compare). This
module exists because a hook or a command lives for a fraction of a second: the library spends 70 ms on its
table of 61,249 merges, while the merges follow from the vocabulary, which loads in 10 ms. The better a merge,
the lower the number of the piece that it makes; only runs of spaces come last, and every run of up to 16 of
them is one piece.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from rmem.errors import EmbedderError

_SPACE = "▁"
# No piece has a space after another character or a line break beside one, so cutting there changes nothing.
# Words are limited to 128 characters, which bounds the work on text without spaces.
_LONGEST_WORD = 128
_WORD = re.compile(f"▁{{0,16}}[^▁\n]{{1,{_LONGEST_WORD}}}|▁{{1,16}}|\n{{1,16}}")
_LEARNED = re.compile("▁[^▁\n<>]{2,31}")
_UNKNOWN = 1 << 30
_REMEMBERED_WORDS = 1 << 17
_WORTH_LOADING = 1000  # words to learn that pay for loading the library
_WORTH_ASKING = 32  # the same once it is loaded
_REMEMBERED_LENGTH = 32


class PieceTokenizer:
    """Turns text into token numbers. `vocabulary` maps each piece to its number.

    Control pieces ("<s>", "</s>") in a text are plain characters here, never control tokens.
    """

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self.size = len(vocabulary)
        self._pieces = dict(vocabulary)
        for control in ("<unk>", "<s>", "</s>"):
            self._pieces.pop(control, None)
        self._bytes = [self._pieces.pop(f"<0x{byte:02X}>") for byte in range(256)]
        self._remembered: dict[str, tuple[int, ...]] = {}
        self._path: Path | None = None
        self._library: Any = None

    @classmethod
    def from_file(cls, path: Path) -> PieceTokenizer:
        """Read the vocabulary out of a `tokenizer.json`, leaving its long list of merges unparsed."""
        try:
            raw = path.read_bytes()
            start = raw.index(b"{", raw.index(b'"vocab"'))
            end = raw.index(b'"merges"', start)
            vocabulary, _ = json.JSONDecoder().raw_decode(raw[start:end].decode())
            tokenizer = cls(vocabulary)
            tokenizer._path = path
            return tokenizer
        except (OSError, ValueError, KeyError) as error:
            raise EmbedderError(f"{path} is not a byte-fallback BPE tokenizer file: {error!r}") from error

    def numbers(self, text: str) -> list[int]:
        """Token numbers of a text. Put a space before a text that starts with a word, as the vocabulary expects."""
        return self.numbers_of(words_of(text))

    def numbers_of(self, words: Iterable[str]) -> list[int]:
        """The same for a text that `words_of` has cut already."""
        numbers: list[int] = []
        remembered = self._remembered
        for word in words:
            known = remembered.get(word)
            numbers += self._learn(word) if known is None else known
        return numbers

    def learn(self, texts: Iterable[Sequence[str]]) -> None:
        """Get to know the words of many texts at once. For thousands of new words the library's own merging, in
        Rust, wins back its start-up time; a word's numbers are the same either way."""
        unknown = [word for word in set().union(*texts) if word not in self._remembered]
        new = [word for word in unknown if word not in self._pieces and _LEARNED.fullmatch(word)]
        if len(new) < (_WORTH_LOADING if self._library is None else _WORTH_ASKING) or self._path is None:
            return
        if self._library is None:
            try:
                from tokenizers import Tokenizer
            except ImportError:
                return
            self._library = Tokenizer.from_file(str(self._path))
            self._library.no_padding()
            self._library.no_truncation()
        if len(self._remembered) + len(new) > _REMEMBERED_WORDS:
            self._remembered.clear()
        encoded = self._library.encode_batch_fast([word[1:] for word in new], add_special_tokens=False)
        self._remembered.update((word, tuple(one.ids)) for word, one in zip(new, encoded, strict=True))

    def _learn(self, word: str) -> tuple[int, ...]:
        numbers = self._split(word)
        if len(word) <= _REMEMBERED_LENGTH:
            if len(self._remembered) >= _REMEMBERED_WORDS:
                self._remembered.clear()
            self._remembered[word] = numbers
        return numbers

    def _split(self, word: str) -> tuple[int, ...]:
        whole = self._pieces.get(word)
        if whole is not None:
            return (whole,)
        body = word.lstrip(_SPACE)
        spaces = len(word) - len(body)
        pieces = self._merge(_SPACE + body if spaces else body)
        if pieces[0] == _SPACE:  # nothing joined it, so it stays in the run before it
            pieces[0] = _SPACE * spaces
        elif spaces > 1:
            pieces.insert(0, _SPACE * (spaces - 1))
        numbers: list[int] = []
        for piece in pieces:
            number = self._pieces.get(piece)
            if number is None:
                numbers += [self._bytes[byte] for byte in piece.encode("utf-8", "surrogatepass")]
            else:
                numbers.append(number)
        return tuple(numbers)

    def _merge(self, word: str) -> list[str]:
        """Join neighbours into the piece of the lowest number, again and again, until no two make a piece."""
        get = self._pieces.get
        parts = list(word)
        ranks = [get(left + right, _UNKNOWN) for left, right in pairwise(parts)]
        while ranks and (best := min(ranks)) != _UNKNOWN:
            at = ranks.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
            del ranks[at]
            if at < len(ranks):
                ranks[at] = get(parts[at] + parts[at + 1], _UNKNOWN)
            if at:
                ranks[at - 1] = get(parts[at - 1] + parts[at], _UNKNOWN)
        return parts


def words_of(text: str) -> list[str]:
    """A text cut where no piece reaches across. Most hold single spaces only, and splitting at those is fastest."""
    if "  " in text or "\n" in text or _SPACE in text:
        return _WORD.findall(text.replace(" ", _SPACE))
    words = text.replace(" ", f" {_SPACE}").split(" ")
    if max(map(len, words)) > _LONGEST_WORD:
        return _WORD.findall(text.replace(" ", _SPACE))
    return words if words[0] else words[1:]
