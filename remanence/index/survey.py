"""A survey: the rows inside one filter, laid out for ranking. The recall engine sees nothing else of a store."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..filters import Filter
from .bits import top
from .columns import RowNumbers
from .recall_index import RecallIndex

Scores = npt.NDArray[np.float32]
Links = npt.NDArray[np.int64]


class Matches(NamedTuple):
    """Where one term occurs in a survey (positions, ascending) and how often."""

    at: npt.NDArray[np.int64]
    counts: npt.NDArray[np.uint16]


class RowSource(Protocol):
    """What a survey reads of the rows themselves, by seq."""

    def vectors_at(self, seqs: npt.NDArray[np.int64], dimension: int) -> npt.NDArray[np.float32]:
        """The original vectors, one line each; zeros where there is none of that dimension."""

    def texts_at(self, seqs: npt.NDArray[np.int64]) -> list[str]:
        """The texts; empty for rows that are gone."""


class Survey:
    """Rows by position 0…size-1 in order of arrival; every array here is indexed by that position."""

    def __init__(self, index: RecallIndex, where: Filter, source: RowSource) -> None:
        with index.lock:
            self._lock = index.lock
            self._postings, self._vocabulary = index.postings, index.vocabulary
            self._in_session, self._actors = index.columns.in_session, index.columns.actors
            self._rows: RowNumbers | None = index.select(where)
            self._end = index.size
            self.size = self._end if self._rows is None else int(self._rows.size)
            self.average_length = index.average_length(self._rows)
            self._vectors = index.vectors
            self._columns = {name: index.columns[name] for name in _COLUMNS}
            self._source = source
            self.cosine_error = 0.0  # standard error of the last estimate

    def column(self, name: str) -> npt.NDArray[Any]:
        whole = self._columns[name]
        return whole if self._rows is None else whole[self._rows]

    @cached_property
    def seq(self) -> npt.NDArray[np.int64]:
        return self.column("seq").astype(np.int64, copy=False)

    @cached_property
    def length(self) -> npt.NDArray[np.int32]:
        return self.column("length").astype(np.int32, copy=False)

    @cached_property
    def flags(self) -> npt.NDArray[np.uint8]:
        return self.column("flags").astype(np.uint8, copy=False)

    @cached_property
    def groups(self) -> npt.NDArray[np.int32]:
        """The session of each row as a number; -1 for a memory outside any session."""
        group = self.column("group").astype(np.int32, copy=False)
        if self._in_session.all():
            return group
        return np.where(self._in_session[group], group, np.int32(-1))

    @cached_property
    def previous(self) -> Links:
        return self._links("previous")

    @cached_property
    def next(self) -> Links:
        return self._links("next")

    def _links(self, name: str) -> Links:
        """Positions of neighbours; -1 where there is none inside the survey."""
        rows = self._columns[name]
        if self._rows is None:
            return np.where(rows < self._end, rows, -1).astype(np.int64) if rows.size else rows.astype(np.int64)
        wanted = rows[self._rows].astype(np.int64)
        if not self._rows.size:
            return wanted
        at = np.minimum(np.searchsorted(self._rows, wanted), self._rows.size - 1)
        return np.where(self._rows[at] == wanted, at, -1)

    def actors_named(self, text: str) -> list[tuple[int, str]]:
        """(code, name) of those who act in these rows and are named in a text."""
        with self._lock:
            named = self._actors.named_in(text)
            names = self._actors.names
        if not named:
            return []
        present = self.column("actor")
        return [(code, str(names[code])) for code in named if (present == code).any()]

    def matches(self, term: int) -> Matches:
        """Positions that hold a term, ascending, and how often each does."""
        with self._lock:
            found, counts = self._postings.lookup(term)
        rows = self._rows
        if rows is None:
            inside = int(np.searchsorted(found, self._end))
            return Matches(found[:inside].astype(np.int64), counts[:inside])
        if found.size == 0 or rows.size == 0:
            return Matches(np.empty(0, np.int64), counts[:0])
        if found.size <= rows.size:
            at = np.minimum(np.searchsorted(rows, found), rows.size - 1)
            held = rows[at] == found
            return Matches(at[held], counts[held])
        at = np.minimum(np.searchsorted(found, rows), found.size - 1)
        held = found[at] == rows
        return Matches(np.flatnonzero(held), counts[at[held]])

    def relatives(self, word: str, floor: float, most: int) -> list[tuple[int, str, float]]:
        """(term, word, cosine) of words in the memories that are close in meaning to a question word."""
        with self._lock:
            return self._vocabulary.relatives(word, floor)[:most]

    @property
    def dimension(self) -> int | None:
        return None if self._vectors is None else self._vectors.dimension

    @cached_property
    def absent(self) -> npt.NDArray[np.bool_] | None:
        """Rows without a vector; None if every row has one."""
        if self._vectors is None or not self._vectors.absent:
            return None
        scales = self._vectors.scales[: self._end] if self._rows is None else self._vectors.scales[self._rows]
        missing: npt.NDArray[np.bool_] = scales == 0
        return missing

    def cosines(self, query: npt.NDArray[np.float32], absent: float | None = None) -> Scores:
        """An estimate of the cosine for every row; `absent` (default: the mean) for rows without a vector."""
        if self._vectors is None:
            return np.zeros(self.size, np.float32)
        scores, self.cosine_error = self._vectors.estimate(query, self._rows, self._end)
        return self._filled(scores, absent)

    def all_close_cosines(self, query: npt.NDArray[np.float32]) -> Scores:
        """The same to about 0.001, for surveys that are small."""
        return self._filled(self.close_cosines(query, np.arange(self.size)), None)

    def _filled(self, scores: Scores, absent: float | None) -> Scores:
        if self.absent is not None:
            present = scores[~self.absent]
            scores[self.absent] = absent if absent is not None else present.mean() if present.size else 0.0
        return scores

    def close_cosines(self, query: npt.NDArray[np.float32], at: npt.NDArray[np.int64]) -> Scores:
        """Cosines of some positions, to about 0.001."""
        if self._vectors is None:
            return np.zeros(at.size, np.float32)
        return self._vectors.close(query, at if self._rows is None else self._rows[at])

    def exact_cosines(self, query: npt.NDArray[np.float32], at: npt.NDArray[np.int64]) -> Scores:
        """Cosines of some positions from the original vectors."""
        if self._vectors is None:
            return np.zeros(at.size, np.float32)
        result: Scores = self._source.vectors_at(self.seq[at], query.size) @ query
        return result

    def texts(self, at: npt.NDArray[np.int64]) -> list[str]:
        """The texts of some positions."""
        return self._source.texts_at(self.seq[at])


_COLUMNS = (
    "seq",
    "group",
    "actor",
    "time",
    "step",
    "importance",
    "length",
    "distinct",
    "flags",
    "specific",
    "previous",
    "next",
)


_FIRST, _ERRORS, _MOST = 1024, 4.0, 0.1


def nearest_rows(
    survey: Survey, query: npt.NDArray[np.float32], k: int, allowed: npt.NDArray[np.bool_] | None = None
) -> tuple[npt.NDArray[np.int64], Scores]:
    """Positions and cosines of the k nearest.

    Estimates for all; codes for the best of them and then for every row whose estimate is within a few standard
    errors of the k-th best; the originals have the last word.
    """
    estimates = survey.cosines(query, absent=-np.inf)
    if allowed is not None:
        estimates[~allowed] = -np.inf
    many = top(estimates, max(_FIRST, 4 * k))
    many = many[estimates[many] > -np.inf]
    close = survey.close_cosines(query, many)
    if survey.cosine_error and many.size > k:
        bar = float(close[top(close, k)[-1]]) - _ERRORS * survey.cosine_error
        within = np.flatnonzero(estimates >= bar)
        if within.size > many.size:
            many = within if within.size <= _MOST * survey.size else top(estimates, int(_MOST * survey.size) + k)
            close = survey.close_cosines(query, many)
    few = many[top(close, max(64, 2 * k))]
    exact = survey.exact_cosines(query, few)
    best = top(exact, k)
    return few[best], exact[best]
