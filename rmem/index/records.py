"""What the index needs of a record, from its layout and its values: the terms of its text without taking that text
apart again, its manner, and its attribute hashes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from ..contents import Layout, names_in, words_in
from ..filters import written
from .analyser import (
    ChunkTerms,
    Terms,
    chunks,
    compute_hash,
    count_terms,
    has_no_language,
    join_terms,
    term_hash,
    terms_of,
)
from .columns import attribute_prefix
from .text_features import MOST_SPECIFIC, TELLS_TIME, TextFeatures, text_features_of

_YEARS = range(1900, 2100)
_SHORT = 256  # characters of texts that are cached, because they often repeat


def record_features(layout: Layout, values: list[Any], extra: Iterable[str]) -> tuple[Terms, TextFeatures] | None:
    """Return the terms and features that `analyse` and `text_features_of` find in the text of a record, without
    building it. None if some words indicate a language, which only the whole text decides."""
    names: ChunkTerms | None = layout.derived[_terms_of_names]
    if names is None:
        return None
    pieces_found: list[str] = []
    flags = specific = 0
    for kind, value in zip(layout.kinds, values, strict=True):
        if kind is float:
            number = f"{value:.3g}"
            specific += 1 + ("." in number) + ("e" in number)
            pieces_found.append(number.lstrip("-"))
        elif kind is int:
            specific += 1
            if value in _YEARS:
                flags = TELLS_TIME
            pieces_found.append(str(value).lstrip("-"))
        else:
            text = str(value)
            pieces = _known_pieces(text) if len(text) <= _SHORT else _pieces(text)
            if pieces is None:
                return None
            pieces_found += pieces
    words = words_in(layout, values)
    features = _cached_features(words) if len(words) <= _SHORT else text_features_of(words)
    return (
        count_terms([names, *terms_of(pieces_found), *terms_of(extra)]),
        TextFeatures(features.flags | flags, min(features.specific + specific, MOST_SPECIFIC)),
    )


_cached_features = lru_cache(maxsize=4096)(text_features_of)


def _pieces(text: str) -> list[str] | None:
    """Return the words and identifiers of a text; None if one indicates a language."""
    pieces = chunks(text)
    return pieces if has_no_language(pieces) else None


_known_pieces = lru_cache(maxsize=4096)(_pieces)


def _terms_of_names(layout: Layout) -> ChunkTerms | None:
    names = _pieces(names_in(layout))
    if names is None:
        return None
    hashes, words = join_terms(terms_of(names))
    return tuple(hashes), tuple(words)


def attribute_hashes_in(layout: Layout, values: list[Any]) -> list[int]:
    """Return the hashes of all values for equality filters."""
    numbers, others = layout.derived[_prefixes]
    attribute_hashes = [_number_hash(prefix, values[at]) for at, prefix in numbers]
    return attribute_hashes + [term_hash(prefix + written(values[at])) for at, prefix in others]


@lru_cache(maxsize=1 << 14, typed=True)
def _number_hash(prefix: str, value: float) -> int:
    return compute_hash(prefix + written(value))


def _prefixes(layout: Layout) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return the prefixes of the hashed texts of numbers, and of the other values."""
    prefixes = [(at, attribute_prefix(path)) for at, path in enumerate(layout.under)]
    numbers = set(layout.numbers)
    return [prefix for prefix in prefixes if prefix[0] in numbers], [
        prefix for prefix in prefixes if prefix[0] not in numbers
    ]
