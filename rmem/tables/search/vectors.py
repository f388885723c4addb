"""The vector index of a column: unit vectors in one array or, if there are many, codes and sign bits for an estimate,
as recall has for memories; the original vectors are then read from the table for the few best rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...forks import new_rlock
from ...index.bits import FEW_DIMENSIONS, Matrix, Vector, VectorColumns, unit
from ...index.segments import Segment, sound_vectors
from ..engines.base import RowNumbers
from .slots import LAST, GrowingArray, Positions, Prints, Slots, fingerprint, replaced_rows

Originals = Callable[[RowNumbers], Mapping[int, bytes]]
"""Reads vectors of rows from their table: little-endian float32 by row, without those that are NULL or gone."""

_ALL_EXACT = 1 << 26  # numbers up to which every vector is compared; about twenty milliseconds
_HELD = 1 << 22  # numbers up to which vectors are held in memory although they can be read from their table
_AT_ONCE = 1 << 19  # numbers that are compared at a time, so that they stay in the processor's cache
_MANY = 512  # rows read for one question; once such questions have read as many as there are, all are held in memory
_BATCH = 8192  # vectors that are brought to unit length, or read, at a time
_CERTAIN = 4.0  # roundings of one number by which the cosine of codes is off in one of 10^13 rows at most


def cosines(matrix: Matrix, query: Vector) -> npt.NDArray[np.float64]:
    """Return cosines of unit vectors. Bit-identical wherever a row stands, which `@` does not guarantee."""
    found: npt.NDArray[np.float32] = np.einsum("ij,j->i", matrix, query)
    return np.clip(found, -1, 1).astype(np.float64)


class _Group:
    """All vectors of one dimension: in memory, or as codes and sign bits if `originals` can be read."""

    def __init__(self, dimension: int, originals: Originals | None = None) -> None:
        self.slots = Slots()
        self.dimension, self._originals = dimension, originals
        self._matrix: GrowingArray | None = GrowingArray(np.float32, (dimension,))
        self._bits: VectorColumns | None = None
        self.snapshot: VectorSnapshot | None = None

    @property
    def nbytes(self) -> int:
        bits = 0 if self._bits is None else self._bits.codes.nbytes + sum(word.nbytes for word in self._bits.words)
        matrix = 0 if self._matrix is None else self._matrix.nbytes
        read = 0 if self.snapshot is None else self.snapshot.nbytes
        return self.slots.nbytes + matrix + bits + read

    def drop(self, rows: RowNumbers) -> None:
        slots = self.slots.drop(rows)
        if not slots.size:
            return
        self.snapshot = None
        self._forget(slots)
        if self.slots.mostly_dead:
            packed = self.to_arrays(self.slots.between(0, LAST))
            self.slots, self._matrix, self._bits = Slots(), GrowingArray(np.float32, (self.dimension,)), None
            self.absorb(packed)

    def _forget(self, slots: Positions) -> None:
        if self._bits is not None:
            self._bits.absent += int((self._bits.scales[slots] > 0).sum())
            self._bits.scales[slots] = 0

    def add(self, rows: RowNumbers, units: Matrix, prints: Prints) -> None:
        self.snapshot = None
        self.slots.add(rows, prints)
        if self._bits is not None:
            self._bits.append(units)
        if self._matrix is not None:
            self._matrix.append(units)
            most = _ALL_EXACT if self._originals is None else _HELD
            if self._bits is None and self._matrix.array.size > most and self.dimension > FEW_DIMENSIONS:
                self._encode()

    def _encode(self) -> None:
        """Add codes and sign bits; drop the vectors if the table can provide them."""
        assert self._matrix is not None
        self._bits = VectorColumns(self.dimension)
        self._bits.reserve(self._matrix.size)
        for start in range(0, self._matrix.size, 65_536):
            self._bits.append(self._matrix.array[start : start + 65_536])
        dead = np.ones(self._matrix.size, np.bool_)
        living = self.slots.live_slots()
        dead[slice(None) if living is None else living] = False
        self._forget(np.flatnonzero(dead))
        if self._originals is not None:
            self._matrix = None

    def to_arrays(self, slots: Positions) -> dict[str, npt.NDArray[Any]]:
        """Some slots as named arrays."""
        arrays: dict[str, npt.NDArray[Any]] = {"rows": self.slots.rows[slots], "prints": self.slots.prints[slots]}
        if self._matrix is not None:
            return arrays | {"matrix": self._matrix.array[slots]}
        assert self._bits is not None
        arrays |= {"codes": self._bits.codes[slots], "scales": self._bits.scales[slots]}
        if self._bits.centre is not None:
            arrays |= {"signs": np.stack([word[slots] for word in self._bits.words]), "centre": self._bits.centre}
        return arrays

    def absorb(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add the rows of such arrays, none of which is here."""
        if "matrix" in arrays:
            self.add(arrays["rows"], arrays["matrix"], arrays["prints"])
            return
        self.snapshot = None
        if self._bits is None:
            self._encode()
        assert self._bits is not None
        self.slots.add(arrays["rows"], arrays["prints"])
        # The scales are copied because they say which vectors are gone.
        self._bits.append_codes(arrays["codes"], arrays["scales"].copy(), arrays.get("signs"), arrays.get("centre"))

    def vectors(self) -> VectorSnapshot:
        if self.snapshot is None:
            matrix = None if self._matrix is None else self._matrix.array
            self.snapshot = VectorSnapshot(
                self.slots.rows, self.slots.live_slots(), matrix, self._bits, self._originals
            )
        return self.snapshot


class VectorSnapshot:
    """A snapshot of the live vectors of one dimension by position."""

    def __init__(
        self,
        rows: RowNumbers,
        living: Positions | None,
        matrix: Matrix | None,
        bits: VectorColumns | None,
        originals: Originals | None,
    ) -> None:
        self._living, self._matrix, self._bits, self._originals = living, matrix, bits, originals
        self._slots = int(rows.size)
        self.rows: RowNumbers = rows if living is None else rows[living]
        self.size = int(self.rows.size)
        self._read: Matrix | None = None  # by position
        self._requests = 0
        self.beside: tuple[object, object] | None = None
        """The texts of the last hybrid search, and their rows and these side by side."""

    @property
    def nbytes(self) -> int:
        """Of what was read from the table."""
        return 0 if self._read is None else self._read.nbytes

    def exact(self, query: Vector, at: Positions | None = None) -> npt.NDArray[np.float64]:
        """Return the cosines of some positions, or of all."""
        matrix = self._matrix
        if matrix is None:
            self._requests += self.size if at is None else at.size if at.size > _MANY else 0
            if self._read is None and at is not None and self._requests <= self.size:
                return cosines(self._originals_at(at), query)
            if self._read is None:
                self._read = self._originals_at(np.arange(self.size))
            matrix, slots = self._read, at
        else:
            slots = self._living if at is None else at if self._living is None else self._living[at]
        if slots is None:
            return cosines(matrix, query)
        step = max(1, _AT_ONCE // max(1, query.size))
        parts = [cosines(matrix[slots[start : start + step]], query) for start in range(0, slots.size, step)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _originals_at(self, at: Positions) -> Matrix:
        """Read the vectors of some positions from their table; decode those that were deleted meanwhile."""
        assert self._originals is not None
        assert self._bits is not None
        matrix = np.empty((at.size, self._bits.dimension), np.float32)
        for start in range(0, at.size, _BATCH):
            some = at[start : start + _BATCH]
            found = self._originals(self.rows[some])
            raw = [found.get(row, b"") for row in self.rows[some].tolist()]
            missing = [place for place, vector in enumerate(raw) if len(vector) != 4 * self._bits.dimension]
            for place in missing:
                slot = some[place] if self._living is None else self._living[some[place]]
                raw[place] = self._bits.decode_rows(np.array([slot])).astype("<f4").tobytes()
            part = np.frombuffer(b"".join(raw), "<f4").reshape(-1, self._bits.dimension)
            if not np.isfinite(part).all():
                part = np.where(np.isfinite(part), part, np.float32(0))
            matrix[start : start + _BATCH] = unit(part)
        return matrix

    def cosines_with_error(self, query: Vector, at: Positions) -> tuple[npt.NDArray[np.float64], float]:
        """Return the cosines of some positions, and their possible error."""
        if self._matrix is not None or self._bits is None:
            return self.exact(query, at), 0.0
        if at.size == self._slots and bool((at[1:] > at[:-1]).all()):
            found, scales = self._bits.cosines_at(query, slice(0, self._slots)), self._bits.scales[: self._slots]
        else:
            slots = at if self._living is None else self._living[at]
            found, scales = self._bits.cosines_at(query, slots), self._bits.scales[slots]
        return np.clip(found, -1, 1).astype(np.float64), _CERTAIN * float(scales.max(initial=0))

    def estimate(self, query: Vector) -> tuple[npt.NDArray[np.float32], float] | None:
        """Estimate all cosines from sign bits, with their standard error; None if comparing all is as cheap."""
        if self._bits is None or self._bits.centre is None:
            return None
        estimate = self._bits.estimate(query, None, self._slots)
        values = estimate.all()
        if self._bits.absent:
            values[self._bits.scales[: self._slots] == 0] = 0  # a vector of zeros, unless it is dead
        return values if self._living is None else values[self._living], estimate.error


class VectorColumn:
    """The index of one FLOAT4[] column, without NULL and non-finite vectors."""

    def __init__(self, originals: Originals | None = None) -> None:
        self.lock = new_rlock()
        self._originals = originals
        self._groups: dict[int, _Group] = {}

    @property
    def nbytes(self) -> int:
        return sum(group.nbytes for group in self._groups.values())

    def change(self, gone: RowNumbers, rows: RowNumbers, values: Sequence[Any]) -> None:
        """Apply deleted rows and current rows. Rows with the same vector are kept."""
        with self.lock:
            arrays = [_as_vector(value) for value in values]
            sizes = np.array([-1 if array is None else array.size for array in arrays], np.int64)
            prints = np.array([fingerprint(array) for array in arrays], np.uint64)
            same = self._drop_changed(gone, rows, prints)
            for dimension in sorted({int(size) for size in sizes[~same] if size > 0}):
                every = np.flatnonzero((sizes == dimension) & ~same)
                group = self._group(dimension)
                for start in range(0, every.size, _BATCH):
                    at = every[start : start + _BATCH]
                    matrix = np.stack([array for array in map(arrays.__getitem__, at.tolist()) if array is not None])
                    finite = np.isfinite(matrix).all(axis=1)
                    group.add(rows[at[finite]], unit(matrix[finite]), prints[at[finite]])
            self._drop_empty()

    def drop_changed(self, gone: RowNumbers, rows: RowNumbers, values: Sequence[Any]) -> bool:
        """Drop rows that are deleted or have another vector; return whether there were any."""
        with self.lock:
            dead = sum(group.slots.dead for group in self._groups.values())
            self._drop_changed(gone, rows, np.array([fingerprint(_as_vector(value)) for value in values], np.uint64))
            return sum(group.slots.dead for group in self._groups.values()) > dead

    def _drop_changed(self, gone: RowNumbers, rows: RowNumbers, prints: Prints) -> npt.NDArray[np.bool_]:
        """Drop changed rows; return which rows have the same vector as before."""
        same = np.zeros(rows.size, np.bool_)
        for group in self._groups.values():
            same |= group.slots.find_unchanged(rows, prints)
        replaced = replaced_rows(gone, rows, same)
        for group in self._groups.values():
            group.drop(replaced)
        return same

    def _group(self, dimension: int) -> _Group:
        return self._groups.setdefault(dimension, _Group(dimension, self._originals))

    def _drop_empty(self) -> None:
        self._groups = {size: group for size, group in self._groups.items() if group.slots.size > group.slots.dead}

    def pack(self, first: int, last: int, changes: int) -> Segment:
        """Pack the rows first…last as a segment."""
        with self.lock:
            arrays: dict[str, npt.NDArray[Any]] = {}
            rows = 0
            for dimension, group in self._groups.items():
                slots = group.slots.between(first, last)
                rows += slots.size
                if slots.size:
                    arrays |= {f"{dimension}.{name}": array for name, array in group.to_arrays(slots).items()}
            return Segment(first, last, rows, changes, arrays)

    def absorb(self, segment: Segment) -> None:
        """Add the rows of a segment, none of which is here."""
        with self.lock:
            for dimension, arrays in _by_dimension(segment).items():
                self._group(dimension).absorb(arrays)

    @staticmethod
    def is_sound(segment: Segment) -> bool:
        """Return whether the parts of a segment are consistent."""
        rows = 0
        for dimension, arrays in _by_dimension(segment).items():
            size = arrays["rows"].size
            rows += size
            if arrays["prints"].shape != (size,):
                return False
            if "matrix" in arrays and arrays["matrix"].shape != (size, dimension):
                return False
            if "codes" in arrays and not sound_vectors(segment.arrays, str(dimension), size):
                return False
        return rows == segment.rows

    def dimensions(self) -> list[int]:
        with self.lock:
            return sorted(self._groups)

    def vectors(self, dimension: int) -> VectorSnapshot:
        with self.lock:
            group = self._groups.get(dimension)
            return _Group(dimension).vectors() if group is None else group.vectors()


def _by_dimension(segment: Segment) -> dict[int, dict[str, npt.NDArray[Any]]]:
    found: dict[int, dict[str, npt.NDArray[Any]]] = {}
    for name, array in segment.arrays.items():
        dimension, _, part = name.partition(".")
        found.setdefault(int(dimension), {})[part] = array
    return found


class VectorsColumn:
    """The index of one FLOAT4[][] column: all vectors in one array, and where each row begins."""

    def __init__(self) -> None:
        self.lock = new_rlock()
        self._rows: RowNumbers = np.empty(0, np.int64)
        self._held: list[Matrix] = []
        self._stacked: Stacked | None = None

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + 2 * sum(matrix.nbytes for matrix in self._held)

    def change(self, gone: RowNumbers, rows: RowNumbers, values: Sequence[Any]) -> None:
        with self.lock:
            self._stacked = None
            stay = np.flatnonzero(~np.isin(self._rows, np.concatenate([gone, rows])))
            matrices = [_as_vectors(value) for value in values]
            kept = [at for at, matrix in enumerate(matrices) if matrix is not None]
            self._rows = np.concatenate([self._rows[stay], rows[kept]])
            self._held = [self._held[at] for at in stay.tolist()]
            self._held += [unit(matrix) for matrix in matrices if matrix is not None]

    def dimensions(self) -> list[int]:
        with self.lock:
            return sorted({matrix.shape[1] for matrix in self._held if matrix.size})

    def stack(self, dimension: int) -> Stacked:
        with self.lock:
            if self._stacked is None or self._stacked.dimension != dimension:
                own = [at for at, matrix in enumerate(self._held) if not matrix.size or matrix.shape[1] == dimension]
                matrices = [self._held[at] for at in own]
                self._stacked = Stacked(self._rows[own], matrices, dimension)
            return self._stacked


class Stacked:
    """Several vectors per row, for MaxSim."""

    def __init__(self, rows: RowNumbers, matrices: Sequence[Matrix], dimension: int) -> None:
        self.rows, self.dimension = rows, dimension
        self._sizes = np.array([len(matrix) for matrix in matrices], np.int64)
        filled = [matrix for matrix in matrices if matrix.size]
        self._matrix = np.concatenate(filled) if filled else np.empty((0, dimension), np.float32)

    def maxsim(self, queries: Matrix) -> npt.NDArray[np.float64]:
        """Return for each row the sum over the query vectors of its best cosine; 0 if it has no vectors."""
        total = np.zeros(self.rows.size)
        filled = np.flatnonzero(self._sizes)
        if filled.size:
            starts = np.cumsum(self._sizes)[filled] - self._sizes[filled]
            for query in queries:
                total[filled] += np.maximum.reduceat(cosines(self._matrix, query), starts)
        return total


def _as_vector(value: Any) -> Vector | None:
    """Convert a vector from an engine: numbers or an array."""
    return None if value is None else np.asarray(value, np.float32).reshape(-1)


def _as_vectors(value: Any) -> Matrix | None:
    """Convert the vectors of one row; None if NULL or not finite."""
    if value is None:
        return None
    matrix: Matrix = np.asarray(value, np.float32) if len(value) else np.empty((0, 0), np.float32)
    return matrix if np.isfinite(matrix).all() else None
