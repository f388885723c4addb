"""The numbers inside a memory's contents: `{"position": [10, 20], "inventory": {"wood": 5}}` holds three, under the
paths `position[0]`, `position[1]` and `inventory.wood`. They are indexed by path, so that states can be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .analyser import term_hash
from .postings import Postings

_KEPT = 64  # paths
_FEW = 64  # numbers; more are an array of data, whose paths are not worth remembering together
_NESTED, _NUMBERS = (dict, list, tuple), (int, float)


class Numbers(NamedTuple):
    """Hashed paths and the number at each."""

    paths: npt.NDArray[np.uint64]
    values: npt.NDArray[np.float64]


NO_NUMBERS = Numbers(np.empty(0, np.uint64), np.empty(0, np.float64))


def leaves(contents: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Every value that is no object and no list, with its path. Objects are dictionaries, as JSON has them: to ask an
    abstract class takes longer than all the rest."""
    found: list[tuple[str, Any]] = []
    for key, value in contents.items():
        if isinstance(value, _NESTED):
            _inside(key, value, found)
        else:
            found.append((key, value))
    return found


def _inside(path: str, value: Any, found: list[tuple[str, Any]]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, _NESTED):
                _inside(f"{path}.{key}", item, found)
            else:
                found.append((f"{path}.{key}", item))
    else:
        for at, item in enumerate(value):
            if isinstance(item, _NESTED):
                _inside(f"{path}[{at}]", item, found)
            else:
                found.append((f"{path}[{at}]", item))


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


def numbers_of(contents: Mapping[str, Any]) -> Numbers:
    if len(contents) == 1 and "text" in contents:
        return NO_NUMBERS
    paths, values = [], []
    for path, value in leaves(contents):
        number = as_number(value)
        if number is not None:
            paths.append(path)
            values.append(number)
    if not paths:
        return NO_NUMBERS
    hashed = _hashed(tuple(paths)) if len(paths) <= _FEW else np.array([path_hash(path) for path in paths], np.uint64)
    return Numbers(hashed, np.array(values))


@lru_cache(maxsize=256)
def _hashed(paths: tuple[str, ...]) -> npt.NDArray[np.uint64]:
    """States of one kind have the same paths, over and over."""
    hashed = np.array([path_hash(path) for path in paths], np.uint64)
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
