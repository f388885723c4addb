"""Tokenise text to rows of the static table: WordPiece over BERT's vocabulary and our additions to it.

Chinese, Japanese and Korean are read character by character, with frequent pairs of characters as additional tokens. A
character without a token is hashed to one of 256 spare rows, so that nothing is ignored."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain

import numpy as np

from ..forks import cached_property

SPARE_ROWS = 256
_LONGEST_WORD = 64
_REMEMBERED_WORDS = 1 << 17
_FEW_SEARCHES = 32  # of a process that asks one question
_SIGN = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_ASCII_WORD = re.compile(f"[a-z0-9]{{1,{_LONGEST_WORD}}}")


@cache  # compiled on first use, because compiling takes longer than all other imports of a short process
def _sign() -> re.Pattern[str]:
    return re.compile(f"[{_SIGN}]")


@cache
def _word() -> re.Pattern[str]:
    return re.compile(rf"[{_SIGN}]{{1,{_LONGEST_WORD}}}|[^\W_{_SIGN}]{{1,{_LONGEST_WORD}}}")


@cache
def _plain_letters() -> dict[int, str | int | None]:
    """Build a translation table: Latin without accents, Arabic without vowel marks and with one alef, Russian without
    ё."""
    table: dict[int, str | int | None] = dict.fromkeys([*range(0x300, 0x370), *range(0x64B, 0x653), 0x640, 0x670])
    for code in [*range(0xC0, 0x250), *range(0x1E00, 0x1F00)]:
        base = unicodedata.normalize("NFD", chr(code))[0]
        if base.isascii():
            table[code] = base
    table |= {ord(one): other for one, other in zip("ßæøłđı", ("ss", "ae", "o", "l", "d", "i"), strict=True)}
    table |= str.maketrans("أإآىةёґ", "ااايهег")
    return table


def words_of(text: str) -> list[str]:
    """Split a text into lower-case words; a run of Chinese, Japanese or Korean characters is one word."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _word().findall(unicodedata.normalize("NFKC", text).lower().translate(_plain_letters()))


def is_sign(word: str) -> bool:
    """Whether a word or piece begins with a Chinese, Japanese or Korean character."""
    return not word.isascii() and _sign().match(word) is not None


class WordPieces(dict[str, tuple[int, ...]]):
    """The rows of words, found when a word is first looked up and then kept. `pieces` are the tokens in row order, each
    followed by a line feed, without the spare rows after them."""

    def __init__(self, pieces: str) -> None:
        self._lines = f"\n{pieces}".encode()
        self._ends = np.flatnonzero(np.frombuffer(self._lines, np.uint8) == ord("\n"))
        self._first_spare = self._ends.size - 1
        self._searches = 0

    @property
    def size(self) -> int:
        """The number of rows, with the spare ones."""
        return self._first_spare + SPARE_ROWS

    def _search(self, piece: str) -> int | None:
        """Return the row of a piece. Searches the text: a dictionary of all takes as long as 60 searches to build."""
        self._searches += 1
        at = self._lines.find(b"\n%b\n" % piece.encode())
        return None if at < 0 else int(self._ends.searchsorted(at))

    @cached_property
    def _rows(self) -> dict[str, int]:
        return dict(zip(self._lines.decode().split("\n")[1:-1], range(self._first_spare), strict=True))

    @property
    def _row_of(self) -> Callable[[str], int | None]:
        return self._search if self._searches < _FEW_SEARCHES else self._rows.get

    def rows(self, words: Iterable[str]) -> list[int]:
        """Return the rows of these words, one word after the other."""
        return [*chain.from_iterable(map(self.__getitem__, words))]

    def spare_rows(self, text: str) -> list[int]:
        """Return the rows of a text without words: one for each character that is not white space."""
        return [self._spare(sign) for sign in text if not sign.isspace()]

    def __missing__(self, word: str) -> tuple[int, ...]:
        whole = self._row_of(word)
        if is_sign(word):
            rows = self._of_signs(word)
        elif whole is not None:
            rows = (whole,)
        else:
            rows = self._of_word(word)
        if len(self) >= _REMEMBERED_WORDS:
            self.clear()
        self[word] = rows
        return rows

    def _of_signs(self, word: str) -> tuple[int, ...]:
        get = self._row_of
        rows = [self._spare(sign) if (row := get(sign)) is None else row for sign in word]
        rows += [row for at in range(len(word) - 1) if (row := get(word[at : at + 2])) is not None]
        return tuple(rows)

    def _of_word(self, word: str) -> tuple[int, ...]:
        """Split a word greedily into the longest known pieces, from the left."""
        get = self._row_of
        rows: list[int] = []
        start, size = 0, len(word)
        while start < size:
            mark = "##" if start else ""
            for end in range(size, start, -1):
                row = get(mark + word[start:end])
                if row is not None:
                    break
            else:
                end = start + 1
                row = self._spare(word[start])
            rows.append(row)
            start = end
        return tuple(rows)

    def _spare(self, sign: str) -> int:
        return self._first_spare + ord(sign) % SPARE_ROWS
