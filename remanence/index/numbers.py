"""The numbers inside a memory's contents. They are indexed by path, so that states can be compared."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..contents import Layout
from .analyser import term_hash
from .postings import Postings

_KEPT = 64  # paths
_NUMBERS = (int, float)


class Numbers(NamedTuple):
    """Hashed paths and the number at each."""

    paths: npt.NDArray[np.uint64]
    values: npt.NDArray[np.float64]


NO_NUMBERS = Numbers(np.empty(0, np.uint64), np.empty(0, np.float64))


def as_number(value: object) -> float | None:
    """A finite number as a float; None for anything else, True and False among it."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def numbers_in(layout: Layout, values: list[Any]) -> Numbers:
    if not layout.numbers:
        return NO_NUMBERS
    try:
        found = [float(values[at]) for at in layout.numbers]
    except OverflowError:
        found = [math.inf]
    if math.isfinite(sum(found)):
        return Numbers(layout.derived[_hashed], np.array(found))
    sound = [(layout.paths[at], number) for at in layout.numbers if (number := as_number(values[at])) is not None]
    return Numbers(np.array([path_hash(path) for path, _ in sound], np.uint64), np.array([one for _, one in sound]))


def _hashed(layout: Layout) -> npt.NDArray[np.uint64]:
    hashed = np.array([path_hash(layout.paths[at]) for at in layout.numbers], np.uint64)
    hashed.flags.writeable = False
    return hashed


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
