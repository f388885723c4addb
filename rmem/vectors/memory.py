"""Vectors in an array of this process, all compared: exact, and not persistent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..forks import new_rlock
from ..index.arrays import products
from ..index.best_scores import top
from .base import FieldFilter, Fields, Matrix, Vector, VectorIndex, check_batch, check_dimension

_FIRST_SIZE = 64  # rows


class MemoryIndex(VectorIndex):
    """`MemoryIndex()`: the default of VectorMemoryStore."""

    name = "memory"

    def __init__(self) -> None:
        self._lock = new_rlock()
        self._row_of: dict[int, int] = {}
        self._fields: dict[int, Fields] = {}
        self._free: list[int] = []
        self._matrix: Matrix | None = None
        self._ids: npt.NDArray[np.int64] = np.full(0, -1, np.int64)  # -1: unused

    def upsert(self, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields]) -> None:
        with self._lock:
            dimension = check_batch(self.name, ids, vectors, fields, self._dimension)
            if self._matrix is None:
                self._matrix = np.zeros((0, dimension), np.float32)
            for number, vector, row_fields in zip(ids, vectors, fields, strict=True):
                row = self._row_of.get(number)
                if row is None:
                    row = self._row_of[number] = self._new_row()
                self._matrix[row], self._ids[row], self._fields[number] = vector, number, row_fields

    @property
    def _dimension(self) -> int | None:
        return None if self._matrix is None else int(self._matrix.shape[1])

    def _new_row(self) -> int:
        assert self._matrix is not None
        if self._free:
            return self._free.pop()
        row = len(self._row_of)
        if row >= len(self._matrix):
            larger = np.zeros((max(_FIRST_SIZE, 2 * row), self._matrix.shape[1]), np.float32)
            larger[:row] = self._matrix
            self._matrix = larger
            self._ids = np.concatenate([self._ids, np.full(len(larger) - len(self._ids), -1, np.int64)])
        return row

    def delete(self, ids: Sequence[int]) -> None:
        with self._lock:
            for number in ids:
                row = self._row_of.pop(number, None)
                if row is not None and self._matrix is not None:
                    self._matrix[row], self._ids[row] = 0, -1
                    del self._fields[number]
                    self._free.append(row)

    def search(self, vector: Vector, k: int, where: FieldFilter | None = None) -> list[tuple[int, float]]:
        with self._lock:
            if self._matrix is None or not self._row_of:
                return []
            check_dimension(self.name, vector.size, self._dimension)
            size = len(self._row_of) + len(self._free)
            scores = products(self._matrix[:size], vector)
            rows = np.flatnonzero(self._ids[:size] >= 0)
            if where is not None:
                rows = np.array([row for row in rows.tolist() if self._inside(int(self._ids[row]), where)], np.int64)
            best = rows[top(scores[rows], k)] if rows.size else rows
            return list(zip(self._ids[best].tolist(), scores[best].tolist(), strict=True))

    def _inside(self, number: int, where: FieldFilter) -> bool:
        row_fields = self._fields[number]
        if any(getattr(row_fields, name) not in names for name, names in where.names.items()):
            return False
        return (where.since is None or row_fields.time >= where.since) and (
            where.until is None or row_fields.time <= where.until
        )

    def clear(self, known: Sequence[int] = ()) -> None:
        with self._lock:
            self._matrix, self._ids = None, np.full(0, -1, np.int64)
            self._row_of.clear()
            self._fields.clear()
            self._free.clear()

    def count(self) -> int:
        return len(self._row_of)
