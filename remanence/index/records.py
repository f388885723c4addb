"""What the index needs of a record, from its layout and its values: the terms of its text without taking that text
apart again, its manner, and its marks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from ..contents import Layout, for_each_layout, names_in, words_in
from ..filters import written
from .analyser import Counted, Terms, chunks, counted, gathered, speaks_for_none, term_hash, terms_of
from .columns import attribute_prefix
from .manner import MOST_SPECIFIC, TELLS_TIME, Manner, manner_of

_YEARS = range(1900, 2100)
_SHORT = 256  # characters of words that may well come again


def said_by(layout: Layout, values: list[Any], extra: Iterable[str]) -> tuple[Terms, Manner] | None:
    """The terms that `analyse` finds in the text of a record, and its manner: that of its words, to which numbers add
    something specific and years a time. None if words speak for a language, which only the whole text decides."""
    names = _terms_of_names(layout)
    if names is None:
        return None
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
            if not speaks_for_none(pieces):
                return None
            said += pieces
    words = words_in(layout, values)
    manner = _manner_of_words(words) if len(words) <= _SHORT else manner_of(words)
    return (
        gathered([*terms_of(said), *terms_of(extra)], names),
        Manner(manner.flags | flags, min(manner.specific + specific, MOST_SPECIFIC)),
    )


_manner_of_words = lru_cache(maxsize=4096)(manner_of)


@for_each_layout
def _terms_of_names(layout: Layout) -> Counted | None:
    names = chunks(names_in(layout))
    if not speaks_for_none(names):
        return None
    terms = list(terms_of(names))
    return counted([hashed for hashes, _ in terms for hashed in hashes], [word for _, words in terms for word in words])


def marks_in(layout: Layout, values: list[Any]) -> list[int]:
    """The hashed equality terms of all values."""
    return [term_hash(prefix + written(value)) for prefix, value in zip(_prefixes(layout), values, strict=True)]


@for_each_layout
def _prefixes(layout: Layout) -> list[str]:
    return [attribute_prefix(path) for path in layout.under]
