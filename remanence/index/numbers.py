"""The numbers inside a memory's contents: `{"position": [10, 20], "inventory": {"wood": 5}}` holds three, under the
paths `position[0]`, `position[1]` and `inventory.wood`. They are indexed by path, so that states can be compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .analyser import term_hash
from .postings import Postings

_KEPT = 64  # paths


class Numbers(NamedTuple):
    """Hashed paths and the number at each."""

    paths: npt.NDArray[np.uint64]
    values: npt.NDArray[np.float64]


NO_NUMBERS = Numbers(np.empty(0, np.uint64), np.empty(0, np.float64))


def leaves(contents: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every value that is no object and no list, with its path. Objects are dictionaries, as JSON has them: to ask an
    abstract class takes longer than all the rest."""
    for key, value in contents.items():
        if isinstance(value, dict | list | tuple):
            yield from _inside(key, value)
        else:
            yield key, value


def _inside(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    steps = (
        ((f"{path}.{key}", item) for key, item in value.items())
        if isinstance(value, dict)
        else ((f"{path}[{at}]", item) for at, item in enumerate(value))
    )
    for inner, item in steps:
        if isinstance(item, dict | list | tuple):
            yield from _inside(inner, item)
        else:
            yield inner, item


def as_number(value: object) -> float | None:
    """A finite number as a float; None for anything else, True and False among it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def numbers_of(contents: Mapping[str, Any]) -> Numbers:
    if len(contents) == 1 and "text" in contents:
        return NO_NUMBERS
    found = [(path, number) for path, value in leaves(contents) if (number := as_number(value)) is not None]
    if not found:
        return NO_NUMBERS
    return Numbers(
        np.array([path_hash(path) for path, _ in found], np.uint64), np.array([number for _, number in found])
    )


@lru_cache(maxsize=4096)
def path_hash(path: str) -> int:
    return term_hash(f"number\x00{path}")


class NumberColumns:
    """The numbers under the paths that are asked for, row by row; NaN where a row has none. A column is made when it is
    first asked for and follows the rows that come. Callers hold the lock of the index."""

    def __init__(self, postings: Postings) -> None:
        self._postings = postings
        self._columns: dict[int, tuple[npt.NDArray[np.float64], int]] = {}

    def column(self, path: int, size: int) -> npt.NDArray[np.float64]:
        """The first `size` rows of a path."""
        column, filled = self._columns.pop(path, (np.empty(0), 0))
        if column.size < size:
            longer = np.full(max(size, column.size * 3 // 2, 1024), np.nan)
            longer[:filled] = column[:filled]
            column = longer
        if filled < size:
            for rows, values in self._postings.lists(path):
                first, end = np.searchsorted(rows, np.array([filled, size], np.uint32))
                column[rows[first:end]] = values[first:end]
            filled = size
        self._columns[path] = column, filled  # the youngest is the last
        if len(self._columns) > _KEPT:
            del self._columns[next(iter(self._columns))]
        return column[:size]
