"""Codes of vectors that stay in the store until a question needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import distinct, is_among
from .bits import Matrix, RowNumbers, encode


class UnreadCodes:
    """Codes of the first `size` rows that were left in the store when an index was loaded, and those of them that were
    read meanwhile: one question needs a few hundred. They have an array of their own, because writing them to their
    places would make the system clear the memory between them, too."""

    def __init__(
        self,
        size: int,
        dimension: int,
        read_vectors: Callable[[RowNumbers], Matrix],
        read_all: Callable[[], Iterator[npt.NDArray[np.int8]]],
        lock: AbstractContextManager[Any],
    ) -> None:
        self.size, self.lock = size, lock
        self._read_vectors, self.read_all = read_vectors, read_all
        self.read = np.empty(0, np.int64), np.empty((0, dimension), np.int8)  # rows, ascending, and their codes

    def missing(self, rows: RowNumbers) -> RowNumbers:
        """Return those of some rows that are left in the store, ascending."""
        wanted = distinct(rows[rows < self.size])
        return wanted[~is_among(wanted, self.read[0])]

    def fetch(self, rows: RowNumbers) -> None:
        """Read the codes of missing rows."""
        vectors = self._read_vectors(rows)
        with self.lock:
            left = ~is_among(rows, self.read[0])  # others may have been replaced meanwhile
            self.replace(rows[left], encode(vectors[left])[0])

    def replace(self, rows: RowNumbers, codes: npt.NDArray[np.int8]) -> None:
        """Set the codes of some rows. Callers hold the lock."""
        known = self.read[0]
        kept = ~is_among(known, np.sort(rows))
        merged = np.concatenate([known[kept], rows])
        order = np.argsort(merged)
        self.read = merged[order], np.concatenate([self.read[1][kept], codes])[order]
