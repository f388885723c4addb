"""Small array operations that the index needs and numpy lacks in this form."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)


def products(matrix: npt.NDArray[np.float32], vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the product of each row with a vector. `@` would share even a small matrix among threads of BLAS, which
    wait for each other for up to 20 ms where the processor is busy."""
    found: npt.NDArray[np.float32] = np.vecdot(matrix, vector)
    return found


def distinct(values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return the distinct values, ascending. `np.unique` would import numpy.ma: 26 ms in a new process."""
    ordered = np.sort(values)
    return ordered[starts_of_runs(ordered)]


def is_among(values: npt.NDArray[Scalar], ordered: npt.NDArray[Scalar]) -> npt.NDArray[np.bool_]:
    """Return for each value whether it is one of some ascending ones."""
    if not ordered.size:
        return np.zeros(values.size, np.bool_)
    at = np.minimum(np.searchsorted(ordered, values), ordered.size - 1)
    found: npt.NDArray[np.bool_] = ordered[at] == values
    return found


def first_of_each(values: npt.NDArray[Scalar]) -> npt.NDArray[np.int64]:
    """Return where each distinct value occurs first, ascending."""
    order = np.argsort(values, kind="stable")
    return np.sort(order[starts_of_runs(values[order])])


def starts_of_runs(ordered: npt.NDArray[Scalar]) -> npt.NDArray[np.int64]:
    """Return where each run of equal values begins."""
    if not ordered.size:
        return np.empty(0, np.int64)
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))


@lru_cache(maxsize=4096)
def struct_packer(count: int, kinds: str) -> Callable[..., bytes]:
    """Return a function that packs `count` values of each of `kinds` (struct codes), kind after kind. For the few
    values of a memory it is faster than creating an array."""
    return Struct("<" + "".join(f"{count}{kind}" for kind in kinds)).pack
