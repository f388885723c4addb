"""Rows for recall whose nearest vectors are found by an engine. Only candidates come from the engine: cosines and
filters are computed by the store, which also compares the rows that the engine lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ..filters import Filter
from ..index.analyser import Word
from ..index.bits import Estimate, Matrix, RowNumbers, VectorColumns
from ..index.candidate_source import CandidateRequest, CandidateSource
from ..index.filtered_rows import FilteredRows
from .base import Vector
from .follower import MAX_BEHIND, VectorFollower

MIN_ROWS = 4096  # inside a filter; fewer are all compared, which is exact and as fast


def with_engine(
    rows: FilteredRows | CandidateSource, where: Filter, follower: VectorFollower
) -> FilteredRows | CandidateSource:
    """Return the same rows, whose nearest vectors are found by an engine."""
    if isinstance(rows, CandidateSource):
        return EngineCandidates(rows, where, follower)
    return EngineRows(rows, where, follower) if rows.size > MIN_ROWS else rows


class EngineRows(FilteredRows):
    """Rows in memory. All are compared if the engine fails."""

    def __init__(self, rows: FilteredRows, where: Filter, follower: VectorFollower) -> None:
        self.__dict__.update(rows.__dict__)
        self._where, self._follower = where, follower

    def cosines(self, query: Vector) -> Estimate | None:
        if self._vectors is None:
            return None
        plain = super().cosines
        return EngineEstimate(self._vectors, query, self._rows, self._end, self._neighbours, lambda: plain(query))

    def _neighbours(self, query: Vector, count: int) -> RowNumbers | None:
        """Return positions of the approximately nearest rows and of all that the engine lacks; None if too few of them
        are among these rows."""
        found = self._follower.nearest(query, count, self._where)
        if found is None:
            return None
        order: npt.NDArray[np.int64] = self.once("order of seqs", lambda: np.argsort(self.seq))
        ranked = self.seq[order]
        wanted = np.asarray(found, np.int64)
        at = np.minimum(np.searchsorted(ranked, wanted), ranked.size - 1)
        here = order[at[ranked[at] == wanted]]
        late = order[np.searchsorted(ranked, self._follower.position.row, side="right") :]
        if late.size > MAX_BEHIND or here.size + late.size < min(count, self.size):
            return None
        return np.unique(np.concatenate([here, late]))


class EngineEstimate(Estimate):
    """Cosines estimated from sign bits; the best rows are found by an engine."""

    searched = True

    def __init__(
        self,
        columns: VectorColumns,
        query: Vector,
        rows: RowNumbers | None,
        end: int,
        find: Callable[[Vector, int], RowNumbers | None],
        plain: Callable[[], Estimate | None],
    ) -> None:
        self._columns, self._query, self._rows = columns, query, rows
        self._size = end if rows is None else rows.size
        self._find, self._plain = find, plain
        self._fallback: Estimate | None = None
        self.error, self.absent = 0.0, 0.0

    @property
    def estimated(self) -> bool:
        return False if self._fallback is None else self._fallback.estimated

    def at(self, at: RowNumbers) -> Matrix:
        if self._fallback is not None:
            return self._fallback.at(at)
        cosines, present = self._close(at), self._scales(at) > 0
        if not present.all():  # the mean for rows without a vector
            cosines = np.where(present, cosines, cosines[present].mean() if present.any() else np.float32(0))
        return cosines.astype(np.float32, copy=False)

    def all(self) -> Matrix:
        return self._close(np.arange(self._size)) if self._fallback is None else self._fallback.all()

    def look_closely(self, at: RowNumbers) -> None:
        if self._fallback is not None:
            self._fallback.look_closely(at)

    def rivals(self, at: RowNumbers, errors: float) -> RowNumbers:
        assert self._fallback is not None
        return self._fallback.rivals(at, errors)

    def best(self, count: int, allowed: npt.NDArray[np.bool_] | None = None) -> RowNumbers:
        if self._fallback is None:
            found = self._find(self._query, count)
            if found is not None:
                found = found[self._scales(found) > 0]
                return found if allowed is None else found[allowed[found]]
            self._fallback = self._plain()
        return np.arange(self._size) if self._fallback is None else self._fallback.best(count, allowed)

    def _scales(self, at: RowNumbers) -> Matrix:
        scales: Matrix = self._columns.scales[at if self._rows is None else self._rows[at]]
        return scales


class EngineCandidates(CandidateSource):
    """Rows that stay in a database, which collects the other candidates."""

    def __init__(self, rows: CandidateSource, where: Filter, follower: VectorFollower) -> None:
        self._rows, self._where, self._follower = rows, where, follower
        self.size, self.average_length, self.dimension = rows.size, rows.average_length, rows.dimension

    def actors_named(self, text: str) -> list[str]:
        return self._rows.actors_named(text)

    def relatives(self, words: Sequence[Word]) -> dict[str, list[tuple[int, str, float]]]:
        return self._rows.relatives(words)

    def row_counts(self, terms: Sequence[int]) -> dict[int, int]:
        return self._rows.row_counts(terms)

    def gather(self, request: CandidateRequest) -> FilteredRows:
        if request.vector is not None and not self._needs_database:
            found = self._follower.nearest(request.vector, request.side, self._where)
            if found is not None:
                request.seqs = [*found, *self._follower.nearest_unsent(request.vector, request.side)]
                request.vector = None
        return self._rows.gather(request)

    @property
    def _needs_database(self) -> bool:
        """Whether the engine cannot apply the whole filter: then the database searches better."""
        return bool(self._where) and not self._follower.applies(self._where)
