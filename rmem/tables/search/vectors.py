"""The vectors of a column: unit vectors packed in one array, and for very large columns sign bits for a first
estimate, as recall has them for memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...forks import new_rlock
from ...index.bits import FEW_DIMENSIONS, Matrix, Vector, VectorColumns, unit
from .slots import Growing, Positions, Rows, Slots

_ALL_EXACT = 1 << 26  # numbers up to which every vector is compared; about twenty milliseconds
_AT_ONCE = 1 << 22  # numbers that are compared at a time


def cosines(matrix: Matrix, query: Vector) -> npt.NDArray[np.float64]:
    """Of unit vectors. A row has the same cosine to the last bit wherever it stands; `@` would not do that."""
    found: npt.NDArray[np.float32] = np.einsum("ij,j->i", matrix, query)
    return np.clip(found, -1, 1).astype(np.float64)


class _Group:
    """All vectors of one dimension."""

    def __init__(self, dimension: int) -> None:
        self.slots = Slots()
        self._matrix = Growing(np.float32, (dimension,))
        self._bits: VectorColumns | None = None
        self.dimension = dimension
        self.snapshot: Vectors | None = None

    @property
    def nbytes(self) -> int:
        bits = 0 if self._bits is None else self._bits.codes.nbytes + sum(word.nbytes for word in self._bits.words)
        return self.slots.nbytes + self._matrix.nbytes + bits

    def drop(self, rows: Rows) -> None:
        slots = self.slots.drop(rows)
        if not slots.size:
            return
        self.snapshot = None
        if self._bits is not None:
            self._bits.absent += int((self._bits.scales[slots] > 0).sum())
            self._bits.scales[slots] = 0
        if self.slots.mostly_dead:
            living = self.slots.living()
            assert living is not None
            rows, matrix = self.slots.rows[living], self._matrix.array[living]
            self.slots, self._matrix, self._bits = Slots(), Growing(np.float32, (self.dimension,)), None
            self.add(rows, matrix)

    def add(self, rows: Rows, units: Matrix) -> None:
        self.snapshot = None
        self.slots.add(rows)
        self._matrix.append(units)
        if self._bits is not None:
            self._bits.append(units)
        elif self._matrix.array.size > _ALL_EXACT and self.dimension > FEW_DIMENSIONS:
            self._bits = VectorColumns(self.dimension)
            self._bits.reserve(self._matrix.size)
            for start in range(0, self._matrix.size, 65_536):
                self._bits.append(self._matrix.array[start : start + 65_536])
            dead = np.ones(self._matrix.size, np.bool_)
            living = self.slots.living()
            dead[slice(None) if living is None else living] = False
            self._bits.absent += int((self._bits.scales[: dead.size][dead] > 0).sum())
            self._bits.scales[: dead.size][dead] = 0

    def vectors(self) -> Vectors:
        if self.snapshot is None:
            self.snapshot = Vectors(self.slots.rows, self._matrix.array, self.slots.living(), self._bits)
        return self.snapshot


class Vectors:
    """The living vectors of one dimension by position. Stays as it is when the column changes."""

    def __init__(self, rows: Rows, matrix: Matrix, living: Positions | None, bits: VectorColumns | None) -> None:
        self._matrix, self._living, self._bits = matrix, living, bits
        self.rows: Rows = rows if living is None else rows[living]
        self.size = int(self.rows.size)

    def exact(self, query: Vector, at: Positions | None = None) -> npt.NDArray[np.float64]:
        """The cosines of some positions, or of all."""
        slots = self._living if at is None else at if self._living is None else self._living[at]
        if slots is None:
            return cosines(self._matrix, query)
        step = max(1, _AT_ONCE // max(1, query.size))
        parts = [cosines(self._matrix[slots[start : start + step]], query) for start in range(0, slots.size, step)]
        return np.concatenate(parts) if parts else np.empty(0)

    def estimate(self, query: Vector) -> tuple[npt.NDArray[np.float64], float] | None:
        """The cosines of all positions as the sign bits tell them, and their standard error; None where it is as well
        to compare them all."""
        if self._bits is None or self._bits.centre is None:
            return None
        size = len(self._matrix)
        estimate = self._bits.estimate(query, None, size)
        values = estimate.at(np.arange(size))
        values[self._bits.scales[:size] == 0] = 0  # a vector of zeros, unless it is dead
        return (values if self._living is None else values[self._living]).astype(np.float64), estimate.error


class VectorColumn:
    """The index of one FLOAT4[] column. Rows whose vector is NULL, or not of finite numbers, are not in it."""

    def __init__(self) -> None:
        self.lock = new_rlock()
        self._groups: dict[int, _Group] = {}

    @property
    def nbytes(self) -> int:
        return sum(group.nbytes for group in self._groups.values())

    def change(self, gone: Rows, rows: Rows, values: Sequence[Any]) -> None:
        with self.lock:
            replaced = np.concatenate([gone, rows])
            for group in self._groups.values():
                group.drop(replaced)
            arrays = [as_vector(value) for value in values]
            sizes = np.array([-1 if array is None else array.size for array in arrays], np.int64)
            for dimension in sorted({int(size) for size in sizes if size > 0}):
                at = np.flatnonzero(sizes == dimension)
                matrix = np.stack([array for array in map(arrays.__getitem__, at.tolist()) if array is not None])
                finite = np.isfinite(matrix).all(axis=1)
                group = self._groups.setdefault(dimension, _Group(dimension))
                group.add(rows[at[finite]], unit(matrix[finite]))
            self._groups = {size: group for size, group in self._groups.items() if group.slots.size > group.slots.dead}

    def dimensions(self) -> list[int]:
        """The dimensions of the vectors that are here."""
        with self.lock:
            return sorted(self._groups)

    def vectors(self, dimension: int) -> Vectors:
        """All vectors of a dimension as they are now."""
        with self.lock:
            group = self._groups.get(dimension)
            return _Group(dimension).vectors() if group is None else group.vectors()


class VectorsColumn:
    """The index of one FLOAT4[][] column: the vectors of all rows in one array, and where those of each row begin."""

    def __init__(self) -> None:
        self.lock = new_rlock()
        self._rows: Rows = np.empty(0, np.int64)
        self._held: list[Matrix] = []
        self._stacked: Stacked | None = None

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + 2 * sum(matrix.nbytes for matrix in self._held)

    def change(self, gone: Rows, rows: Rows, values: Sequence[Any]) -> None:
        with self.lock:
            self._stacked = None
            stay = np.flatnonzero(~np.isin(self._rows, np.concatenate([gone, rows])))
            matrices = [as_vectors(value) for value in values]
            kept = [at for at, matrix in enumerate(matrices) if matrix is not None]
            self._rows = np.concatenate([self._rows[stay], rows[kept]])
            self._held = [self._held[at] for at in stay.tolist()]
            self._held += [unit(matrix) for matrix in matrices if matrix is not None]

    def dimensions(self) -> list[int]:
        with self.lock:
            return sorted({matrix.shape[1] for matrix in self._held if matrix.size})

    def stacked(self, dimension: int) -> Stacked:
        with self.lock:
            if self._stacked is None or self._stacked.dimension != dimension:
                own = [at for at, matrix in enumerate(self._held) if not matrix.size or matrix.shape[1] == dimension]
                matrices = [self._held[at] for at in own]
                self._stacked = Stacked(self._rows[own], matrices, dimension)
            return self._stacked


class Stacked:
    """Many vectors for each row, for MaxSim."""

    def __init__(self, rows: Rows, matrices: Sequence[Matrix], dimension: int) -> None:
        self.rows, self.dimension = rows, dimension
        self._sizes = np.array([len(matrix) for matrix in matrices], np.int64)
        filled = [matrix for matrix in matrices if matrix.size]
        self._matrix = np.concatenate(filled) if filled else np.empty((0, dimension), np.float32)

    def maxsim(self, queries: Matrix) -> npt.NDArray[np.float64]:
        """For each row the sum over the query's vectors of the best cosine among its own; 0 if it has none."""
        total = np.zeros(self.rows.size)
        filled = np.flatnonzero(self._sizes)
        if filled.size:
            starts = np.cumsum(self._sizes)[filled] - self._sizes[filled]
            for query in queries:
                total[filled] += np.maximum.reduceat(cosines(self._matrix, query), starts)
        return total


def as_vector(value: Any) -> Vector | None:
    """A vector as an engine gives it: numbers, an array, or little-endian float32 in bytes."""
    if value is None:
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        return np.frombuffer(value, "<f4")
    if isinstance(value, np.ndarray):
        return value.astype(np.float32, copy=False).reshape(-1)
    return _floats(value)


def as_vectors(value: Any) -> Matrix | None:
    """Vectors of one row; None if they are NULL, of different lengths, or not of finite numbers."""
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        matrix: Matrix = value.astype(np.float32, copy=False)
    else:
        lines = [_floats(line) for line in value]
        if len({line.size for line in lines}) > 1:
            return None
        matrix = np.stack(lines) if lines else np.empty((0, 0), np.float32)
    return matrix if matrix.ndim == 2 and np.isfinite(matrix).all() else None


def _floats(values: Iterable[Any]) -> Vector:
    return np.array([np.nan if number is None else number for number in values], np.float32)
