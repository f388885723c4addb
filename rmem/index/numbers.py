"""The numbers inside a memory's contents. They are indexed by path, so that states can be compared."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..contents import Layout
from .analyser import HASH, Hashes, term_hash
from .arrays import struct_packer
from .postings import Postings

_MAX_CACHED = 64  # paths
_NUMBERS = (int, float)


class Numbers(NamedTuple):
    """Hashed paths, then their numbers, packed as stores keep them."""

    packed: bytes

    @property
    def size(self) -> int:
        return len(self.packed) // 16

    @property
    def paths(self) -> Hashes:
        return np.frombuffer(self.packed, HASH, self.size)

    @property
    def values(self) -> npt.NDArray[np.float64]:
        return np.frombuffer(self.packed, _VALUE, offset=8 * self.size)


NO_NUMBERS = Numbers(b"")
_VALUE = np.dtype("<f8")


def as_number(value: object) -> float | None:
    """Return a finite number as a float; None for anything else, also for True and False."""
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
    """Pack the finite numbers among the values of a record."""
    paths, found = numbers_at(layout, values)
    return Numbers(struct_packer(len(found), "Qd")(*paths, *found)) if found else NO_NUMBERS


def numbers_at(layout: Layout, values: list[Any]) -> tuple[tuple[int, ...], list[float]]:
    """Return the hashed paths of the finite numbers among the values, and these numbers."""
    try:
        found = [float(values[at]) for at in layout.numbers]
    except OverflowError:
        found = [math.inf]
    if math.isfinite(sum(found)):
        return layout.derived[_hashed_paths], found
    sound = [(layout.paths[at], number) for at in layout.numbers if (number := as_number(values[at])) is not None]
    return tuple([path_hash(path) for path, _ in sound]), [number for _, number in sound]


def _hashed_paths(layout: Layout) -> tuple[int, ...]:
    return tuple([path_hash(layout.paths[at]) for at in layout.numbers])


@lru_cache(maxsize=4096)
def path_hash(path: str) -> int:
    return term_hash(f"number\x00{path}")


class NumberColumns:
    """The numbers under paths, row by row; NaN if a row has none. A column is built on first use and extended with new
    rows. Callers hold the lock of the index."""

    def __init__(self, postings: Postings) -> None:
        self._postings = postings
        self._columns: dict[int, tuple[npt.NDArray[np.float64], int]] = {}

    def column(self, path: int, size: int) -> npt.NDArray[np.float64]:
        """Return the first `size` rows of a path."""
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
        if len(self._columns) > _MAX_CACHED:
            del self._columns[next(iter(self._columns))]
        return column[:size]
