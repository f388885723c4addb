"""What the index needs of a record, from its layout and its values: the terms of its text without taking that text
apart again, its manner, and its marks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from ..contents import Layout, for_each_layout, names_in, words_in
from ..filters import written
from .analyser import Counted, Terms, chunks, counted, gathered, language_of, speaks_for_none, term_hash, terms_of
from .columns import attribute_prefix
from .manner import MOST_SPECIFIC, TELLS_TIME, Manner, manner_of

_YEARS = range(1900, 2100)
_SHORT = 256  # characters of words that may well come again


def said_by(layout: Layout, values: list[Any], extra: Iterable[str]) -> tuple[Terms, Manner]:
    """The terms that `analyse` finds in the text of a record, and its manner: that of its words, to which numbers add
    something specific and years a time."""
    names, silent = _names(layout)
    said: list[str] = []
    flags = specific = 0
    for kind, value in zip(layout.kinds, values, strict=True):
        if kind is float:
            number = f"{value:.3g}"
            specific += 1 + ("." in number) + ("e" in number)
            said.append(number.lstrip("-"))
        elif kind is int:
            specific += 1
            if value in _YEARS:
                flags = TELLS_TIME
            said.append(str(value).lstrip("-"))
        elif pieces := chunks(str(value)):
            said += pieces
            silent = silent and speaks_for_none([piece.lower() for piece in pieces])
    language = "english" if silent else language_of([*names, *[piece.lower() for piece in said]])
    words = words_in(layout, values)
    manner = _manner_of_words(words) if len(words) <= _SHORT else manner_of(words)
    return (
        gathered([*terms_of(said, language), *terms_of(extra, "english")], _terms_of_names(layout, language)),
        Manner(manner.flags | flags, min(manner.specific + specific, MOST_SPECIFIC)),
    )


_manner_of_words = lru_cache(maxsize=4096)(manner_of)


@for_each_layout
def _names(layout: Layout) -> tuple[list[str], bool]:
    """The words of a layout's keys, in lower case, and whether none of them speaks for a language."""
    names = [piece.lower() for piece in chunks(names_in(layout))]
    return names, speaks_for_none(names)


def _terms_of_names(layout: Layout, language: str) -> Counted:
    found: Counted | None = layout.kept.get(language)
    if found is None:
        terms = list(terms_of(chunks(names_in(layout)), language))
        found = layout.kept[language] = counted(
            [hashed for hashes, _ in terms for hashed in hashes], [word for _, words in terms for word in words]
        )
    return found


def marks_in(layout: Layout, values: list[Any]) -> list[int]:
    """The hashed equality terms of all values."""
    return [term_hash(prefix + written(value)) for prefix, value in zip(_prefixes(layout), values, strict=True)]


@for_each_layout
def _prefixes(layout: Layout) -> list[str]:
    return [attribute_prefix(path) for path in layout.under]
