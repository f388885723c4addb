"""Vectors for search. Each is kept as 8-bit codes (a quarter of its size, error below 0.001 in a cosine) and
as sign bits, stored by column: one array per 64-bit word. Hamming distance over the bits gives an estimate
for every row in well under a microsecond a hundred rows; the codes then score the best of them closely, and
the store holds the float32 originals for the last word.

Signs are taken around a centre, the mean of the first thousand vectors, because real embeddings crowd into one
half of their space; until there are that many, the codes are scanned. Vectors of few dimensions are projected
onto 256 fixed directions first."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
Vector = npt.NDArray[np.float32]
RowNumbers = npt.NDArray[np.int64]

FEW_DIMENSIONS = 32  # up to here the codes themselves are scanned: it costs no more than bits would
_MIN_BITS = 256
_SAMPLE = 512
_CENTRE_FROM = 1024


def unit(matrix: Matrix) -> Matrix:
    """Rows scaled to length one; rows of zeros stay zeros."""
    peaks = np.abs(matrix).max(axis=1, initial=0.0)[:, None]  # squares of very large or small numbers do not fit
    matrix = np.divide(matrix, peaks, out=np.zeros_like(matrix), where=peaks > 0)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    result: Matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return result


def encode(vectors: Matrix) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """8-bit codes and a scale for each row: vector ≈ codes × scale."""
    peaks = np.abs(vectors).max(axis=1, initial=0.0)
    scales = (peaks / 127.0).astype(np.float32)
    safe = np.where(scales > 0, scales, 1.0)[:, None]
    return np.rint(vectors / safe).astype(np.int8), scales


class VectorColumns:
    """The vectors of an index by row number. Rows without a vector have scale 0 and score 0."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.size = 0
        self.absent = 0  # rows without a vector
        self.codes: npt.NDArray[np.int8] = np.empty((0, dimension), np.int8)
        self.scales: npt.NDArray[np.float32] = np.empty(0, np.float32)
        self.words: list[npt.NDArray[np.uint64]] = []
        self.centre: Vector | None = None
        self._directions: Matrix | None = None
        if FEW_DIMENSIONS < dimension < _MIN_BITS:
            rng = np.random.default_rng(20_260_501)
            self._directions = rng.standard_normal((dimension, _MIN_BITS)).astype(np.float32)
        if dimension > FEW_DIMENSIONS:
            self.words = [np.empty(0, np.uint64) for _ in range(-(-max(dimension, _MIN_BITS) // 64))]

    def reserve(self, rows: int) -> None:
        """Room for `rows` rows in all, so that loading a large store copies nothing twice."""
        if rows <= self.codes.shape[0]:
            return
        self.codes = _grown(self.codes, rows)
        self.scales = _grown(self.scales, rows)
        self.words = [_grown(word, rows) for word in self.words]

    def append(self, vectors: Matrix) -> None:
        """Rows of unit length (zeros: no vector)."""
        codes, scales = encode(vectors)
        self.append_codes(codes, scales, None, None)

    def append_codes(
        self,
        codes: npt.NDArray[np.int8],
        scales: npt.NDArray[np.float32],
        bits: npt.NDArray[np.uint64] | None,
        centre: Vector | None,
    ) -> None:
        """Rows in packed form. `bits` (one line per word) are used if they were taken around our centre."""
        first, end = self.size, self.size + len(scales)
        if end > self.codes.shape[0]:
            self.reserve(max(end, self.codes.shape[0] * 3 // 2, 1024))
        self.absent += int((scales == 0).sum())
        self.codes[first:end] = codes
        self.scales[first:end] = scales
        self.size = end
        if not self.words:
            return
        if self.centre is None:
            self.centre = centre if centre is not None else self._first_centre()
            if self.centre is None:
                return
            self._fill_signs(0, first)
        if bits is not None and centre is not None and np.array_equal(centre, self.centre):
            for word, line in zip(self.words, bits, strict=True):
                word[first:end] = line
        else:
            self._fill_signs(first, end)

    def _first_centre(self) -> Vector | None:
        """The mean of the vectors so far, once there are enough of them to mean something."""
        if self.size - self.absent < _CENTRE_FROM:
            return None
        known = self.scales[: self.size] > 0
        total = np.zeros(self.dimension, np.float64)
        for start in range(0, self.size, 65_536):
            stop = min(self.size, start + 65_536)
            total += (self.codes[start:stop] * self.scales[start:stop, None]).sum(axis=0, dtype=np.float64)
        centre: Vector = (total / known.sum()).astype(np.float32)
        return centre

    def _fill_signs(self, first: int, end: int) -> None:
        for start in range(first, end, 65_536):
            stop = min(end, start + 65_536)
            packed = self._signs(self.codes[start:stop] * self.scales[start:stop, None])
            for word, line in zip(self.words, packed, strict=True):
                word[start:stop] = line

    def _signs(self, vectors: Matrix) -> npt.NDArray[np.uint64]:
        """Sign bits, one line per 64-bit word."""
        assert self.centre is not None
        vectors = vectors - self.centre
        if self._directions is not None:
            vectors = vectors @ self._directions
        packed = np.packbits(vectors > 0, axis=1)
        missing = len(self.words) * 8 - packed.shape[1]
        if missing:
            packed = np.pad(packed, ((0, 0), (0, missing)))
        return np.ascontiguousarray(np.ascontiguousarray(packed).view(np.uint64).T)

    def close(self, query: Vector, rows: RowNumbers | slice) -> Matrix:
        """Cosines of some rows from their codes."""
        if isinstance(rows, slice):
            span = range(*rows.indices(self.size))
            parts = [
                self.codes[start : min(start + 16_384, span.stop)].astype(np.float32) @ query
                for start in range(span.start, span.stop, 16_384)
            ]
            products = np.concatenate(parts) if parts else np.empty(0, np.float32)
        else:
            products = self.codes[rows].astype(np.float32) @ query
        result: Matrix = products * self.scales[rows]
        return result

    def estimate(self, query: Vector, rows: RowNumbers | None, size: int) -> tuple[Matrix, float]:
        """Cosines of the first `size` rows (or of `rows`) as far as the bits tell, and their standard error."""
        if self.centre is None:
            return self.close(query, slice(0, size) if rows is None else rows), 0.0
        asked = self._signs(query[None, :])[:, 0]
        distance: npt.NDArray[np.uint16] | None = None
        for word, bits in zip(self.words, asked, strict=True):
            column = word[:size] if rows is None else word[rows]
            differing = np.bitwise_count(column ^ bits)
            if distance is None:
                distance = differing.astype(np.uint16)
            else:
                distance += differing
        assert distance is not None
        return self._calibrated(query, distance, rows)

    def _calibrated(
        self, query: Vector, distance: npt.NDArray[np.uint16], rows: RowNumbers | None
    ) -> tuple[Matrix, float]:
        """From distances to cosines. An angle shows as its share of differing bits, so cos(π · distance / bits) is
        the cosine around the centre; a line through a sample of rows scored closely leads back to the origin."""
        count, bits = distance.size, 64 * len(self.words) if self._directions is None else _MIN_BITS
        if count == 0:
            return np.empty(0, np.float32), 0.0
        around = np.cos(np.pi * np.arange(bits + 1) / min(bits, max(self.dimension, _MIN_BITS)))
        sample = np.append(np.arange(0, count, max(1, count // _SAMPLE)), int(distance.argmin()))
        exact = self.close(query, sample if rows is None else rows[sample])
        x = around[distance[sample]]
        spread = float(x.var())
        slope = float(((x - x.mean()) * (exact - exact.mean())).mean()) / spread if spread > 0 else 0.0
        slope = max(slope, 1e-6)
        level = float(exact.mean()) - slope * float(x.mean())
        error = float(np.std(exact - (slope * x + level)))
        table = (slope * around + level).astype(np.float32)
        return table[distance], error


def _grown(array: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    larger = np.zeros((rows, *array.shape[1:]), array.dtype)
    larger[: array.shape[0]] = array
    return larger


def top(scores: npt.NDArray[np.floating[Any]], count: int) -> RowNumbers:
    """Positions of the `count` highest scores, best first; ties go to the earlier position.

    A partition of a million scores costs ten milliseconds. A threshold guessed from a sample leaves a few
    thousand to sort; a guess that left too few is not used.
    """
    size = scores.size
    if count >= size:
        return np.argsort(-scores, kind="stable")
    if size > 50_000 and count * 8 < size:
        step = max(1, size // 16_384)
        sample = scores[::step]
        keep = min(sample.size - 1, int(count / step * 1.5) + 24)
        threshold = np.partition(sample, sample.size - 1 - keep)[sample.size - 1 - keep]
        near = np.flatnonzero(scores >= threshold)
        if count <= near.size < size // 4:
            return near[_best(scores[near], count)]
    return _best(scores, count)


def _best(scores: npt.NDArray[np.floating[Any]], count: int) -> RowNumbers:
    if count < scores.size:
        cut = np.partition(scores, scores.size - count)[scores.size - count]
        above = np.flatnonzero(scores > cut)
        equal = np.flatnonzero(scores == cut)[: count - above.size]
        chosen = np.sort(np.concatenate([above, equal]))
    else:
        chosen = np.arange(scores.size)
    return chosen[np.argsort(-scores[chosen], kind="stable")]
