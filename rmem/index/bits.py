"""Vectors for search. Each is kept as 8-bit codes (a quarter of its size, a cosine within about 0.001) and
as sign bits, stored by column: one array per 64-bit word. Hamming distance over the bits gives an estimate
for every row in well under a microsecond a hundred rows; the codes then score the best of them closely, and
the store holds the float32 originals for the last word.

Signs are taken around a centre, the mean of the first thousand vectors, because real embeddings crowd into one
half of their space; until there are that many, the codes are scanned. Vectors are rotated first, because the
dimensions of an embedding differ in variance and the sign of a small one says little: half as many candidates then
hold the nearest ones. Vectors of few dimensions are projected onto 512 fixed directions instead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import checks
from ..errors import VectorError
from ..forks import cached_property
from .arrays import products
from .best_scores import least

if TYPE_CHECKING:
    from .unread_codes import UnreadCodes

Matrix = npt.NDArray[np.float32]
Vector = npt.NDArray[np.float32]
RowNumbers = npt.NDArray[np.int64]
Distances = npt.NDArray[np.uint8 | np.uint16]

FEW_DIMENSIONS = 32  # up to here the codes are scanned, which costs no more than bits
_MIN_BITS = 256
_FEW_ROTATED = 8  # vectors, such as those of a question, that are rotated in this thread alone
_MAX_ROTATED = 512  # dimensions; rotating longer vectors takes longer than all else about them
_PROJECTED_BITS = 512  # sign bits for vectors with fewer dimensions
_SAMPLE = 256
ALL_CLOSE = 2048  # rows up to which comparing codes is as fast as comparing bits
_CENTRE_FROM = 1024
_FEW_READ = 1024  # codes that are read one by one, each of which takes as long as 40 of a segment
_CHUNK = 2048  # rows converted to float at a time, so that they stay in the processor's cache
_SEED = 20_260_501
# The first 512 draws of default_rng(_SEED).choice([-1, 1]). Importing numpy.random takes longer than all else here.
_RANDOM_SIGNS = (
    "349eed4f7512da383144914b12defdd59692f8b024a9a6f54b21f12aee12f1f4"
    "2bece5d19112fab9c22ba3bcf6f8d90b17c33150d0147e448b83454b3bca4ea2"
)
_WORDS_PER_BYTE = 4  # 64-bit words whose differing bits fit into one byte


def unit(matrix: Matrix) -> Matrix:
    """Scale rows to length one; rows of zeros stay zeros."""
    peaks = np.abs(matrix).max(axis=1, initial=0.0)[
        :, None
    ]  # scale first, because squares of very large or small numbers overflow
    matrix = np.divide(matrix, peaks, out=np.zeros_like(matrix), where=peaks > 0)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    result: Matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return result


def unit_vector(field: str, value: object) -> Vector:
    """Check a vector from the caller and scale it to length one."""
    array = checks.vector(field, value)
    peak = np.abs(array).max()
    if not peak:
        raise VectorError(f"{field} must not be all zeros", field=field)
    array = array / peak  # as in `unit`, which takes three times as long for one
    scaled: Vector = array / np.sqrt(np.einsum("i,i->", array, array))
    return scaled


def encode(vectors: Matrix) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Quantise rows to 8-bit codes and a scale each: vector ≈ codes × scale."""
    peaks = np.abs(vectors).max(axis=1, initial=0.0)
    scales = (peaks / 127.0).astype(np.float32)
    safe = np.where(scales > 0, scales, 1.0)[:, None]
    return np.rint(vectors / safe).astype(np.int8), scales


@lru_cache(maxsize=8)
def directions(dimension: int) -> Matrix | None:
    """Return the directions whose signs are the bits of a vector, as rows; None for its own dimensions."""
    if dimension < _MIN_BITS:
        rng = np.random.default_rng(_SEED)
        return np.ascontiguousarray(rng.standard_normal((dimension, _PROJECTED_BITS)).T, np.float32)
    if dimension > _MAX_ROTATED:
        return None
    # A cosine transform with random signs: orthogonal, and made in a millisecond.
    numbers = np.arange(dimension, dtype=np.float32)
    waves: Matrix = np.cos(np.outer(numbers + np.float32(0.5), numbers * np.float32(np.pi / dimension)))
    signs = np.unpackbits(np.frombuffer(bytes.fromhex(_RANDOM_SIGNS), np.uint8))[:dimension]
    waves *= (2 * signs.astype(np.float32) - 1)[:, None]
    return np.ascontiguousarray(waves.T)


class VectorColumns:
    """The vectors of an index by row number. Rows without a vector have scale 0 and score 0."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.size = 0
        self.absent = 0  # rows without a vector
        self.unread: UnreadCodes | None = None
        self._left = 0  # first rows whose codes were not given
        self._codes: npt.NDArray[np.int8] = np.empty((0, dimension), np.int8)
        self.scales: npt.NDArray[np.float32] = np.empty(0, np.float32)
        self.words: list[npt.NDArray[np.uint64]] = []
        self.centre: Vector | None = None
        self._sampled: tuple[tuple[int, int], Matrix] | None = None
        self._directions: Matrix | None = None
        if dimension > FEW_DIMENSIONS:
            self._directions = directions(dimension)
            self.words = [np.empty(0, np.uint64) for _ in range(-(-self.used_bits // 64))]

    @property
    def codes(self) -> npt.NDArray[np.int8]:
        """The codes of all rows; reads those that were left in the store."""
        if self.unread is not None:
            with self.unread.lock:
                unread, end = self.unread, 0
                if unread is not None:  # no other thread was faster
                    for codes in unread.read_all():
                        start, end = end, end + len(codes)
                        self._codes[start:end] = codes
                    rows, codes = unread.read
                    self._codes[rows] = codes  # some may have been replaced since
                    self.unread, self._left = None, 0
        return self._codes

    def _codes_at(self, rows: RowNumbers) -> npt.NDArray[np.int8]:
        unread = self.unread
        if unread is None:
            return self._codes.take(rows, axis=0)
        missing = unread.missing(rows)
        if missing.size + unread.read[0].size > _FEW_READ:
            return self.codes.take(rows, axis=0)
        if missing.size:
            unread.fetch(missing)
        read, codes = unread.read
        added = rows >= unread.size
        found = codes.take(np.where(added, 0, np.searchsorted(read, rows)), axis=0)
        found[added] = self._codes[rows[added]]
        return found

    def reserve(self, rows: int) -> None:
        """Allocate space for `rows` rows in total, so that loading a large store copies nothing twice."""
        if rows > self._codes.shape[0]:
            self._grow(rows)

    def _grow(self, rows: int) -> None:
        """Copy everything into new arrays with space for `rows` rows."""
        self._codes = _enlarge(self._codes, rows, self._left)
        self.scales = _enlarge(self.scales, rows)
        self.words = [_enlarge(word, rows) for word in self.words]

    def append(self, vectors: Matrix) -> None:
        """Append rows of unit length (zeros: no vector)."""
        codes, scales = encode(vectors)
        self.append_codes(codes, scales, None, None)

    def append_codes(
        self,
        codes: npt.NDArray[np.int8] | None,
        scales: npt.NDArray[np.float32],
        bits: npt.NDArray[np.uint64] | None,
        centre: Vector | None,
    ) -> None:
        """Append rows in packed form. `bits` (one row per 64-bit word) are used if they have the same centre; then
        `codes` may be None, to be read by `unread`."""
        first, end = self.size, self.size + len(scales)
        if first == end:
            return
        if first == 0 and self._codes.shape[0] == 0 and bits is not None and centre is not None and self.words:
            # A store loaded from one segment keeps its read-only arrays until rows are added.
            self._left = end if codes is None else 0
            self._codes = np.empty((end, self.dimension), np.int8) if codes is None else codes
            self.scales, self.words, self.centre = scales, list(bits), centre
            self.size, self.absent = end, int((scales == 0).sum())
            return
        if end > self._codes.shape[0] or not self.scales.flags.writeable:
            self._grow(max(end, self._codes.shape[0] * 3 // 2, 1024))
        self.absent += int((scales == 0).sum())
        if codes is None:
            self._left = end
        else:
            self._codes[first:end] = codes
        self.scales[first:end] = scales
        self.size = end
        if not self.words:
            return
        mean = self.centre
        if mean is None:
            mean = centre if centre is not None else self._first_centre()
            if mean is None:
                return
            self._fill_signs(0, first, mean)
        if bits is not None and centre is not None and np.array_equal(centre, mean):
            for word, line in zip(self.words, bits, strict=True):
                word[first:end] = line
        else:
            self._fill_signs(first, end, mean)
        self.centre = mean  # last, because readers take no lock

    def replace(self, rows: RowNumbers, vectors: Matrix) -> None:
        """Replace the vectors of existing rows (unit length; zeros: no vector)."""
        if not self.scales.flags.writeable:
            self._grow(self._codes.shape[0])
        codes, scales = encode(vectors)
        self.absent += int((scales == 0).sum()) - int((self.scales[rows] == 0).sum())
        self.scales[rows] = scales
        loaded = rows < (0 if self.unread is None else self.unread.size)
        self._codes[rows[~loaded]] = codes[~loaded]
        if self.unread is not None:
            self.unread.replace(rows[loaded], codes[loaded])
        if self.words and self.centre is not None:
            for word, line in zip(self.words, self._signs(codes * scales[:, None], self.centre), strict=True):
                word[rows] = line

    def _first_centre(self) -> Vector | None:
        """Return the mean of the vectors, once there are enough of them; None before."""
        if self.size - self.absent < _CENTRE_FROM:
            return None
        known = self.scales[: self.size] > 0
        total = np.zeros(self.dimension, np.float64)
        for start in range(0, self.size, 65_536):
            stop = min(self.size, start + 65_536)
            total += (self._codes[start:stop] * self.scales[start:stop, None]).sum(axis=0, dtype=np.float64)
        centre: Vector = (total / known.sum()).astype(np.float32)
        return centre

    def _fill_signs(self, first: int, end: int, centre: Vector) -> None:
        for start in range(first, end, 65_536):
            stop = min(end, start + 65_536)
            packed = self._signs(self._codes[start:stop] * self.scales[start:stop, None], centre)
            for word, line in zip(self.words, packed, strict=True):
                word[start:stop] = line

    def _signs(self, vectors: Matrix, centre: Vector) -> npt.NDArray[np.uint64]:
        """Return the sign bits around a centre, one row per 64-bit word."""
        vectors = vectors - centre
        if self._directions is not None:
            few = vectors.shape[0] <= _FEW_ROTATED
            vectors = np.vecdot(vectors[:, None, :], self._directions) if few else vectors @ self._directions.T
        packed = np.packbits(vectors > 0, axis=1)
        missing = len(self.words) * 8 - packed.shape[1]
        if missing:
            packed = np.pad(packed, ((0, 0), (0, missing)))
        return np.ascontiguousarray(np.ascontiguousarray(packed).view(np.uint64).T)

    def cosines_at(self, query: Vector, rows: RowNumbers | slice) -> Matrix:
        """Return the cosines of some rows, from their codes."""
        if isinstance(rows, slice):
            span = range(*rows.indices(self.size))
            parts = [
                products(self.codes[start : min(start + _CHUNK, span.stop)].astype(np.float32), query)
                for start in range(span.start, span.stop, _CHUNK)
            ]
        else:
            parts = [
                products(self._codes_at(rows[start : start + _CHUNK]).astype(np.float32), query)
                for start in range(0, rows.size, _CHUNK)
            ]
        result: Matrix = np.concatenate(parts) if parts else np.empty(0, np.float32)
        result *= self.scales[rows]
        return result

    def decode_rows(self, rows: RowNumbers) -> Matrix:
        """Decode some rows to float32."""
        return self._codes_at(rows) * self.scales[rows, None]

    def decode_sample(self, rows: RowNumbers) -> Matrix:
        """Decode some rows to float32 and cache them: every query uses the same sample."""
        key = (rows.size, int(rows[-1]))
        known = self._sampled
        if known is None or known[0] != key:
            known = self._sampled = (key, self.decode_rows(rows))
        return known[1]

    def estimate(self, query: Vector, rows: RowNumbers | None, size: int) -> Estimate:
        """Estimate the cosines of the first `size` rows (or of `rows`) from the sign bits."""
        if self.centre is None or (size if rows is None else rows.size) <= ALL_CLOSE:
            return self.wrap_cosines(query, rows, self.cosines_at(query, slice(0, size) if rows is None else rows))
        return Estimate(self, query, rows, None, self.distances(query, rows, size))

    def wrap_cosines(self, query: Vector, rows: RowNumbers | None, cosines: Matrix) -> Estimate:
        """Wrap known cosines as an Estimate."""
        return Estimate(self, query, rows, cosines, None)

    def distances(self, query: Vector, rows: RowNumbers | None, size: int) -> Distances:
        """Return the Hamming distance of each row to the query."""
        assert self.centre is not None
        return _hamming_distances(
            self.words, self._signs(query[None, :], self.centre)[:, 0], slice(size) if rows is None else rows
        )

    def expected_distances(self, query: Vector, rows: RowNumbers) -> Matrix:
        """Return the Hamming distance that the angle between the query and some rows predicts."""
        assert self.centre is not None
        away, direction = unit(self.decode_rows(rows) - self.centre), unit((query - self.centre)[None, :])[0]
        result: Matrix = np.arccos(np.clip(products(away, direction), -1, 1)) * np.float32(self.used_bits / np.pi)
        return result

    def nearby(self, queries: Matrix, share: float) -> list[tuple[RowNumbers, Matrix]]:
        """Return for each query the rows within `share` of the sign bits, and their cosines; all rows while there are
        no bits."""
        if self.centre is None:
            every = np.arange(self.size)
            return [(every, self.cosines_at(query, slice(0, self.size))) for query in queries]
        bar = int(share * self.used_bits)
        signs = self._signs(queries, self.centre).T
        near = [
            np.flatnonzero(_hamming_distances(self.words, query_signs, slice(self.size)) <= bar)
            for query_signs in signs
        ]
        rows = np.concatenate(near)
        cosines = np.vecdot(self._codes_at(rows).astype(np.float32)[:, None, :], queries)
        cosines *= self.scales[rows, None]
        found, end = [], 0
        for number, rows_near in enumerate(near):
            start, end = end, end + rows_near.size
            found.append((rows_near, cosines[start:end, number]))
        return found

    @cached_property
    def cosines_by_distance(self) -> npt.NDArray[np.float64]:
        """Return the cosine around the centre for each Hamming distance."""
        return np.cos(np.pi * np.arange(65 * len(self.words)) / self.used_bits)

    @property
    def used_bits(self) -> int:
        """Return the number of sign bits of a vector; the rest of its last word is zeros."""
        return _PROJECTED_BITS if self.dimension < _MIN_BITS else self.dimension


class Estimate:
    """Cosines of a query with many rows: exact to about 0.001 where looked at closely, estimated elsewhere.

    An angle shows as its share of differing bits, so cos(π · distance / bits) is the cosine around the centre; a
    line through a sample of rows looked at closely leads back to the origin.
    """

    searched = False
    """Whether `best` has to look for rows elsewhere, so that asking for all of them is no good idea."""

    def __init__(
        self,
        columns: VectorColumns,
        query: Vector,
        rows: RowNumbers | None,
        values: Matrix | None,
        distance: Distances | None,
    ) -> None:
        self._columns, self._query, self._rows = columns, query, rows
        self._values, self._distance = values, distance
        self.error = 0.0
        self._known: Matrix | None = None  # NaN where no accurate cosine was computed
        self.absent: float | None = None
        if distance is not None:
            self._table = self._calibrate(distance)
        self._missing = self._find_missing()

    def _find_missing(self) -> npt.NDArray[np.bool_] | None:
        if not self._columns.absent:
            return None
        size = self._values.size if self._values is not None else self._distance.size  # type: ignore[union-attr]
        scales = self._columns.scales[:size] if self._rows is None else self._columns.scales[self._rows]
        missing: npt.NDArray[np.bool_] = scales == 0
        present = ~missing
        sample = np.flatnonzero(present)[: 4 * _SAMPLE]
        self.absent = float(self._raw(sample).mean()) if sample.size else 0.0
        return missing

    def _calibrate(self, distance: Distances) -> Matrix:
        around = self._columns.cosines_by_distance
        sample = np.arange(0, distance.size, max(1, distance.size // _SAMPLE))
        exact = (
            self._close(sample)
            if self._rows is not None
            else products(self._columns.decode_sample(sample), self._query)
        )
        x = around[distance[sample]]
        mean_x, mean = float(x.sum()) / sample.size, float(exact.sum()) / sample.size
        x, exact = x - mean_x, exact - np.float32(mean)
        spread = float(x @ x)
        slope = max(float(x @ exact) / spread if spread > 0 else 0.0, 1e-6)
        away = exact - slope * x
        self.error = math.sqrt(float(away @ away) / sample.size)
        return (slope * around + (mean - slope * mean_x)).astype(np.float32)

    def _close(self, at: RowNumbers) -> Matrix:
        return self._columns.cosines_at(self._query, at if self._rows is None else self._rows[at])

    def _raw(self, at: RowNumbers) -> Matrix:
        if self._values is not None:
            return self._values.take(at)
        assert self._distance is not None
        result: Matrix = self._table.take(self._distance.take(at))
        return result

    def all(self) -> Matrix:
        """Return the cosines of all positions; arbitrary for rows without a vector."""
        if self._values is not None:
            return self._values
        assert self._distance is not None
        result: Matrix = self._table.take(self._distance)
        return result

    def at(self, at: RowNumbers) -> Matrix:
        """Return the cosines of some positions; the mean for rows without a vector."""
        result = self._raw(at)
        if self._known is not None:
            known = self._known.take(at)
            result = np.where(np.isnan(known), result, known)
        if self._missing is not None:
            result = np.where(self._missing[at], np.float32(self.absent or 0.0), result)
        return result

    @property
    def estimated(self) -> bool:
        """Whether some cosines are only estimated."""
        return self._distance is not None

    def look_closely(self, at: RowNumbers) -> None:
        """Compute accurate cosines of some positions from their codes."""
        if self._distance is not None:
            self._known = np.full(self._distance.size, np.nan, np.float32)
            self._known[at] = self._close(at)

    def best(self, count: int, allowed: npt.NDArray[np.bool_] | None = None) -> RowNumbers:
        """Return at least `count` positions with the highest estimates, unordered, all with a vector."""
        excluded = self._missing if allowed is None else ~allowed if self._missing is None else self._missing | ~allowed
        if self._values is not None:
            values = self._values if excluded is None else np.where(excluded, np.float32(-9), self._values)
            found = least(-values, count)
        else:
            assert self._distance is not None
            distance = self._distance
            if excluded is not None:
                distance = np.where(excluded, np.iinfo(distance.dtype).max, distance)
            found = least(distance, count)
        return found if excluded is None else found[~excluded[found]]

    def rivals(self, at: RowNumbers, errors: float) -> RowNumbers:
        """Return all positions that may be as near as those given, within `errors` standard errors of the estimate."""
        assert self._distance is not None
        expected = self._columns.expected_distances(self._query, at if self._rows is None else self._rows[at])
        share = expected / self._columns.used_bits
        reach = expected + errors * np.sqrt(expected * (1 - share))
        found = np.flatnonzero(self._distance <= min(int(reach.max(initial=0)), np.iinfo(self._distance.dtype).max))
        return found if self._missing is None else found[~self._missing[found]]


def _hamming_distances(
    words: Sequence[npt.NDArray[np.uint64]], query_bits: npt.NDArray[np.uint64], rows: RowNumbers | slice
) -> Distances:
    """Return the Hamming distances of some rows to the query's bits."""
    distance: Distances = np.empty(0, np.uint8)
    for number, (word, bits) in enumerate(zip(words, query_bits, strict=True)):
        differing = np.bitwise_count(word[rows] ^ bits)
        if number == 0:
            distance = differing
        elif number < _WORDS_PER_BYTE:
            if number == _WORDS_PER_BYTE - 1 and int(distance.max(initial=0)) + int(differing.max(initial=0)) > 255:
                np.minimum(
                    differing, np.uint8(63), out=differing
                )  # so that 256 differing bits do not overflow a byte; one bit less does not matter
            distance += differing
        else:
            distance = np.add(distance, differing, dtype=np.uint16)
    return distance


def _enlarge(array: npt.NDArray[Any], rows: int, first: int = 0) -> npt.NDArray[Any]:
    """Copy an array, from its row `first` on, into one with more rows."""
    larger = np.zeros((rows, *array.shape[1:]), array.dtype)
    larger[first : array.shape[0]] = array[first:]
    return larger
