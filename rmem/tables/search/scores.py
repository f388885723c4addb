"""What a search operator gives the rows of its table: cosines, BM25, MaxSim, or words and vectors together.

Scores are taken from the indexes as they were when the statement began, and computed when they are asked for; the
best of a very large column are found without computing all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...index.bits import Matrix, Vector, least
from ...recall.fusion import blended, share_of_vector, share_of_words
from .slots import Positions, Rows
from .texts import Texts
from .vectors import Stacked, Vectors

Values = npt.NDArray[np.float64]

_NO_ROWS: Rows = np.empty(0, np.int64)
_FIRST = 2048  # rows whose estimates are checked at least
_ERRORS = 4.0  # standard errors by which an estimate may be wrong
_MOST, _WIDE = 40, 64  # at most one in so many rows is compared exactly, or so many for each that is wanted


class SearchScores(ABC):
    """Scores by row. `rows` are those that have one; the others score NULL."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._known: dict[int | None, float | None] = {None: None}
        self._complete = False

    @abstractmethod
    def _some(self, at: Positions | None) -> Values:
        """The scores at some positions of `rows`, or of all."""

    def _rough(self) -> tuple[Values, float] | None:
        """Estimates of all scores and their standard error; None where they may as well be computed."""
        return None

    @cached_property
    def values(self) -> Values:
        return self._some(None)

    def all(self) -> tuple[Rows, Values]:
        return self.rows, self.values

    def of(self, row: int | None) -> float | None:
        try:
            return self._known[row]
        except KeyError:
            if self._complete:
                return None
        self._known = {None: None, **dict(zip(self.rows.tolist(), self.values.tolist(), strict=True))}
        self._complete = True
        return self._known.get(row)

    def know(self, rows: Rows) -> None:
        """Compute the scores of rows that will be asked for."""
        if self._complete:
            return
        ascending, positions = self._ascending
        places = np.searchsorted(ascending, rows)
        held = np.append(ascending, -1)[places] == rows
        at = positions[places[held]]
        self._known |= dict.fromkeys(rows.tolist())
        self._known |= dict(zip(self.rows[at].tolist(), self._some(at).tolist(), strict=True))

    @cached_property
    def _ascending(self) -> tuple[Rows, Positions]:
        """The rows in ascending order, and their positions."""
        if (self.rows[1:] > self.rows[:-1]).all():
            return self.rows, np.arange(self.rows.size)
        order = np.argsort(self.rows, kind="stable")
        return self.rows[order], order

    def best(self, count: int, *, ties: bool = False) -> tuple[Rows, Values]:
        """The rows with the highest scores, best first and equal ones in the order of their rows; with `ties` also
        those beyond `count` that are equal to the last."""
        rough = None if "values" in self.__dict__ else self._rough()
        if rough is None or count >= self.rows.size:
            at, values = None, self.values
        else:
            at = self._promising(*rough, count)
            values = self._some(at)
        rows = self.rows if at is None else self.rows[at]
        chosen = _first(rows, values, count, ties=ties)
        return rows[chosen], values[chosen]

    def _promising(self, estimates: Values, error: float, count: int) -> Positions:
        """Positions among which the best `count` are as good as certainly: those whose estimate is near enough to the
        last of those that the best estimates lead to."""
        first = least(-estimates, max(_FIRST, 4 * count))
        exact = self._some(first)
        bar = np.partition(exact, exact.size - count)[exact.size - count]
        near = np.flatnonzero(estimates >= bar - _ERRORS * error)
        most = max(_WIDE * count, estimates.size // _MOST)
        if near.size > most:
            near = near[least(-estimates[near], most)]
        return near if near.size >= first.size else first


def _first(rows: Rows, values: Values, count: int, *, ties: bool) -> Positions:
    """Positions of the `count` highest values in order; equal values by row."""
    chosen = np.arange(values.size)
    if count < values.size:
        bar = np.partition(values, values.size - count)[values.size - count] if count else np.inf
        above, equal = np.flatnonzero(values > bar), np.flatnonzero(values == bar)
        missing = count - above.size
        if not ties and missing < equal.size:
            equal = equal[np.argpartition(rows[equal], missing - 1)[:missing]] if missing else equal[:0]
        chosen = np.concatenate([above, equal])
    return chosen[np.lexsort((rows[chosen], -values[chosen]))]


class NoScores(SearchScores):
    """Of a query that is NULL."""

    def __init__(self) -> None:
        super().__init__(_NO_ROWS)

    def _some(self, at: Positions | None) -> Values:
        return np.empty(0)


class CosineScores(SearchScores):
    def __init__(self, vectors: Vectors, query: Vector) -> None:
        super().__init__(vectors.rows)
        self._vectors, self._query = vectors, query

    def _some(self, at: Positions | None) -> Values:
        return self._vectors.exact(self._query, at)

    def _rough(self) -> tuple[Values, float] | None:
        return self._vectors.estimate(self._query)


class TextScores(SearchScores):
    def __init__(self, texts: Texts, question: str) -> None:
        super().__init__(texts.rows)
        self._texts, self._question = texts, question

    def _some(self, at: Positions | None) -> Values:
        return self.values[at] if at is not None else self._texts.scored(self._question).scores.astype(np.float64)


class MaxSimScores(SearchScores):
    def __init__(self, stacked: Stacked, queries: Matrix) -> None:
        super().__init__(stacked.rows)
        self._stacked, self._queries = stacked, queries

    def _some(self, at: Positions | None) -> Values:
        return self.values[at] if at is not None else self._stacked.maxsim(self._queries)


class HybridScores(SearchScores):
    """Words and vectors, each as a share of 1, in their weighted mean. What is NULL on one side has no share there."""

    def __init__(
        self,
        vectors: Vectors,
        query: Vector,
        texts: Texts,
        question: str,
        weight_vector: float,
        weight_words: float,
    ) -> None:
        self._vectors, self._query, self._texts, self._question = vectors, query, texts, question
        self._weights = weight_words, weight_vector
        self._together = _Together(texts.rows, vectors.rows)
        super().__init__(self._together.rows)

    @cached_property
    def _words(self) -> Values:
        """The share of the words for each of `rows`."""
        shares = share_of_words(*self._texts.scored(self._question))
        return self._together.left(shares)

    def _fused(self, cosines: Values) -> Values:
        return blended(self._words, self._together.right(share_of_vector(cosines)), *self._weights)

    def _some(self, at: Positions | None) -> Values:
        if at is None:
            return self._fused(self._vectors.exact(self._query))
        places, held = self._together.right_places(at)
        shares = np.zeros(at.size)
        shares[held] = share_of_vector(self._vectors.exact(self._query, places))
        return blended(self._words[at], shares, *self._weights)

    def _rough(self) -> tuple[Values, float] | None:
        rough = self._vectors.estimate(self._query)
        if rough is None:
            return None
        words, vector = self._weights
        return self._fused(rough[0]), rough[1] / 2 * vector / (words + vector)


class _Together:
    """The rows of two columns side by side; most often they are the same."""

    def __init__(self, left: Rows, right: Rows) -> None:
        self.same = np.array_equal(left, right)
        self.rows = left if self.same else np.union1d(left, right)
        if not self.same:
            self._left, self._right = np.searchsorted(self.rows, left), np.searchsorted(self.rows, right)

    def left(self, values: Values) -> Values:
        """Values of the left column for each row; 0 where it has none."""
        return values if self.same else self._spread(values, self._left)

    def right(self, values: Values) -> Values:
        return values if self.same else self._spread(values, self._right)

    def _spread(self, values: Values, places: Positions) -> Values:
        spread = np.zeros(self.rows.size)
        spread[places] = values
        return spread

    def right_places(self, at: Positions) -> tuple[Positions, npt.NDArray[np.bool_]]:
        """Where some rows stand in the right column, and which of them do."""
        if self.same:
            return at, np.ones(at.size, np.bool_)
        places = np.full(self.rows.size, -1, np.int64)
        places[self._right] = np.arange(self._right.size)
        found = places[at]
        return found[found >= 0], found >= 0
