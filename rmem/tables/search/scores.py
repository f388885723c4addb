"""The scores of a search operator for the rows of its table: cosine, BM25, MaxSim, or words and vectors together.

Scores use the indexes as they were when the statement began, and are computed on demand; the best of a large column are
found without computing all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar
from weakref import ref

import numpy as np
import numpy.typing as npt

from ...forks import cached_property
from ...index.best_scores import least
from ...index.bits import Matrix, Vector
from ...index.bm25 import Scored
from ...recall.fusion import blend, share_of_vector, share_of_words
from ..engines.base import NO_ROWS, RowNumbers, Values
from .slots import Positions
from .texts import TextSnapshot
from .vectors import Stacked, VectorSnapshot

Rough = npt.NDArray[np.float32]
Number = TypeVar("Number", bound=np.floating)

_FIRST = 2048  # rows whose estimates are checked at least
_ERRORS = 4.0  # standard errors by which an estimate may be wrong
_MOST, _WIDE = 40, 64  # at most one in so many rows is compared exactly, or so many for each that is wanted
_TOO_MANY = 4  # where estimates leave more than one in so many rows, the codes of all are compared


class _ScoresByRow(dict[int | None, float | None]):
    """Known scores by row. The first row that is not among them makes all scores be computed."""

    def __init__(self, scores: SearchScores) -> None:
        super().__init__({None: None})
        self._scores = ref(scores)  # weak: a cycle would keep the indexes in memory for longer
        self.complete = False

    def __missing__(self, row: int | None) -> float | None:
        scores = self._scores()
        if not self.complete and scores is not None:
            self |= dict(zip(scores.rows.tolist(), scores.values.tolist(), strict=True))
            self.complete = True
        return self.get(row)


class SearchScores(ABC):
    """Scores by row. `rows` are those with a score; the others score NULL."""

    def __init__(self, rows: RowNumbers) -> None:
        self.rows = rows
        self.by_row = _ScoresByRow(self)

    @abstractmethod
    def _some(self, at: Positions | None) -> Values:
        """Return the scores at some positions of `rows`, or of all."""

    def _rough(self) -> tuple[Rough, float] | None:
        """Estimate all scores and their standard error; None if computing them is as cheap."""
        return None

    def _close(self, at: Positions) -> tuple[Values, float]:
        """Return the scores at some positions, and their possible error."""
        return self._some(at), 0.0

    @cached_property
    def values(self) -> Values:
        return self._some(None)

    def all(self) -> tuple[RowNumbers, Values]:
        return self.rows, self.values

    def know(self, rows: RowNumbers) -> None:
        """Compute the scores of rows that will be needed."""
        if self.by_row.complete:
            return
        rows = np.array([row for row in rows.tolist() if row not in self.by_row], np.int64)
        if not rows.size:
            return
        ascending, positions = self._sorted_rows
        places = np.searchsorted(ascending, rows)
        held = np.append(ascending, -1)[places] == rows
        at = positions[places[held]]
        self.by_row |= dict.fromkeys(rows.tolist())
        self.by_row |= dict(zip(self.rows[at].tolist(), self._some(at).tolist(), strict=True))

    @cached_property
    def _sorted_rows(self) -> tuple[RowNumbers, Positions]:
        """Return the rows in ascending order, and their positions."""
        if (self.rows[1:] > self.rows[:-1]).all():
            return self.rows, np.arange(self.rows.size)
        order = np.argsort(self.rows, kind="stable")
        return self.rows[order], order

    def best(self, count: int, *, ties: bool = False) -> tuple[RowNumbers, Values]:
        """Return the rows with the highest scores, best first, equal ones by row; with `ties`, also those equal to the
        last."""
        rough = None if "values" in self.__dict__ else self._rough()
        if rough is None or count >= self.rows.size:
            at, values = None, self.values
        else:
            at = self._select_candidates(*rough, count)
            values = self._some(at)
        rows = self.rows if at is None else self.rows[at]
        chosen = _first(rows, values, count, ties=ties)
        rows, values = rows[chosen], values[chosen]
        self.by_row |= dict(zip(rows.tolist(), values.tolist(), strict=True))
        return rows, values

    def _select_candidates(self, estimates: Rough, error: float, count: int) -> Positions:
        """Return positions that contain the best `count` almost certainly: first by estimate, then by the closer
        score."""
        first = least(-estimates, max(_FIRST, 4 * count))
        values, margin = self._close(first)
        near = np.flatnonzero(estimates >= _nth(values, count) - margin - _ERRORS * error)
        most = max(_WIDE * count, estimates.size // _MOST)
        if margin and near.size > estimates.size // _TOO_MANY:
            near = np.arange(estimates.size)
        elif not margin and near.size > most:
            near = near[least(-estimates[near], most)]
        if near.size > first.size:
            values, margin = self._close(near)
        else:
            near = first
        return near[values >= _nth(values, count) - 2 * margin]


def _nth(values: Values, count: int) -> float:
    """Return the lowest of the `count` highest values."""
    above = values[values > 0]  # a partition of the zeros, which most are in a search for words, takes long
    values = above if above.size >= count else values
    return float(np.partition(values, values.size - count)[values.size - count]) if count else np.inf


def _first(rows: RowNumbers, values: Values, count: int, *, ties: bool) -> Positions:
    """Return the positions of the `count` highest values in order; equal values by row."""
    chosen = np.arange(values.size)
    if count < values.size:
        bar = _nth(values, count)
        above, equal = np.flatnonzero(values > bar), np.flatnonzero(values == bar)
        missing = count - above.size
        if not ties and missing < equal.size:
            equal = equal[np.argpartition(rows[equal], missing - 1)[:missing]] if missing else equal[:0]
        chosen = np.concatenate([above, equal])
    return chosen[np.lexsort((rows[chosen], -values[chosen]))]


class NoScores(SearchScores):
    """The scores of a NULL query."""

    def __init__(self) -> None:
        super().__init__(NO_ROWS)

    def _some(self, at: Positions | None) -> Values:
        return np.empty(0)


class CosineScores(SearchScores):
    """Cosines of one query vector, estimated from sign bits where there are many rows."""

    def __init__(self, vectors: VectorSnapshot, query: Vector) -> None:
        super().__init__(vectors.rows)
        self._vectors, self._query = vectors, query

    def _some(self, at: Positions | None) -> Values:
        return self._vectors.exact(self._query, at)

    def _close(self, at: Positions) -> tuple[Values, float]:
        return self._vectors.cosines_with_error(self._query, at)

    def _rough(self) -> tuple[Rough, float] | None:
        return self._vectors.estimate(self._query)


class TextScores(SearchScores):
    """BM25 of a question."""

    def __init__(self, texts: TextSnapshot, question: str) -> None:
        super().__init__(texts.rows)
        self._texts, self._question = texts, question

    def _some(self, at: Positions | None) -> Values:
        return self.values[at] if at is not None else self._texts.score(self._question).scores.astype(np.float64)


class MaxSimScores(SearchScores):
    """MaxSim of several query vectors with several vectors per row."""

    def __init__(self, stacked: Stacked, queries: Matrix) -> None:
        super().__init__(stacked.rows)
        self._stacked, self._queries = stacked, queries

    def _some(self, at: Positions | None) -> Values:
        return self.values[at] if at is not None else self._stacked.maxsim(self._queries)


class HybridScores(SearchScores):
    """The weighted mean of words and vectors, each scaled to 0…1. A side that is NULL contributes nothing."""

    def __init__(
        self,
        vectors: VectorSnapshot,
        query: Vector,
        texts: TextSnapshot,
        question: str,
        weight_vector: float,
        weight_words: float,
    ) -> None:
        self._vectors, self._query, self._texts, self._question = vectors, query, texts, question
        self._weights = weight_words, weight_vector
        self._join_rows = _join_rows(texts, vectors)
        super().__init__(self._join_rows.rows)

    @cached_property
    def _words(self) -> Scored:
        """Return the word scores for each of `rows`."""
        scored = self._texts.score(self._question)
        return scored._replace(scores=self._join_rows.left(scored.scores))

    def _some(self, at: Positions | None) -> Values:
        if at is None:
            cosines = self._join_rows.right(share_of_vector(self._vectors.exact(self._query)))
            return blend(share_of_words(*self._words), cosines, *self._weights)
        places, held = self._join_rows.right_places(at)
        return self._fused_at(at, held, self._vectors.exact(self._query, places))

    def _fused_at(self, at: Positions, held: npt.NDArray[np.bool_], cosines: Values) -> Values:
        shares = np.zeros(at.size)
        shares[held] = share_of_vector(cosines)
        return blend(share_of_words(self._words.scores[at], self._words.possible), shares, *self._weights)

    def _close(self, at: Positions) -> tuple[Values, float]:
        places, held = self._join_rows.right_places(at)
        cosines, margin = self._vectors.cosines_with_error(self._query, places)
        return self._fused_at(at, held, cosines), self._share_of_error(margin)

    def _share_of_error(self, error: float) -> float:
        words, vector = self._weights
        return error / 2 * vector / (words + vector)

    def _rough(self) -> tuple[Rough, float] | None:
        rough = self._vectors.estimate(self._query)
        if rough is None:
            return None
        estimates, error = rough
        words, vector = (weight / sum(self._weights) for weight in self._weights)
        fused = self._join_rows.right((1 + estimates) * np.float32(vector / 2))
        if self._words.possible > 0:
            fused += np.minimum(self._words.scores * np.float32(words / self._words.possible), np.float32(words))
        return fused, self._share_of_error(error)


def _join_rows(texts: TextSnapshot, vectors: VectorSnapshot) -> _JoinedRows:
    """Return the joined rows of both, cached while neither changes."""
    known = vectors.beside
    if known is not None and known[0] is texts and isinstance(known[1], _JoinedRows):
        return known[1]
    made = _JoinedRows(texts.rows, vectors.rows)
    vectors.beside = texts, made
    return made


class _JoinedRows:
    """The rows of two columns, aligned; mostly they are the same."""

    def __init__(self, left: RowNumbers, right: RowNumbers) -> None:
        self.same = np.array_equal(left, right)
        self.rows = left if self.same else np.union1d(left, right)
        if not self.same:
            self._left, self._right = np.searchsorted(self.rows, left), np.searchsorted(self.rows, right)

    def left(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return values of the left column for each row; 0 where it has none."""
        return values if self.same else self._spread(values, self._left)

    def right(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        return values if self.same else self._spread(values, self._right)

    def _spread(self, values: npt.NDArray[Number], places: Positions) -> npt.NDArray[Number]:
        spread = np.zeros(self.rows.size, values.dtype)
        spread[places] = values
        return spread

    def right_places(self, at: Positions) -> tuple[Positions, npt.NDArray[np.bool_]]:
        """Return where some rows are in the right column, and which of them are."""
        if self.same:
            return at, np.ones(at.size, np.bool_)
        places = np.full(self.rows.size, -1, np.int64)
        places[self._right] = np.arange(self._right.size)
        found = places[at]
        return found[found >= 0], found >= 0
