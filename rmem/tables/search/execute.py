"""Run a statement. A search for the best few rows runs on those, and on more until enough pass its WHERE; the result is
that of a run on all rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from ..catalog import Table
from ..deadline import left
from ..engines.base import Engine, RowNumbers, StatementPlan
from ..results import Result
from .indexes import SearchIndexes
from .plan import SearchPlan, SearchRun, plan_search, start_search

_FIRST, _MORE = 4, 8  # times as many rows as are wanted; times as many again
_MOST = 4  # a try with more than this part of a table is a try with all


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A statement bound to a catalogue, with its search plan, if any. Many runs may use it at a time."""

    tree: exp.Expression
    catalogue: dict[str, Table]
    search: SearchPlan | None
    facts: tuple[str, ...] = ()
    """Which tables of `fact_tables` it reads; their rows are its last parameters."""


@dataclass(frozen=True, slots=True)
class StatementRun:
    """One run of a bound statement: its values and the limits of its answer."""

    engine: Engine
    indexes: SearchIndexes
    bound: BoundStatement
    parameters: Sequence[Any] = ()
    max_rows: int | None = None
    max_bytes: int | None = None

    def result(self) -> Result:
        """Run the statement and return the whole result."""
        search = start_search(self.bound.search, self.bound.catalogue, self.indexes, self.parameters, self._run_inner)
        found = self._run_on_the_best(search)
        return self.engine.run(self._plan(search, search.narrowed)) if found is None else found

    def stream(self, batch_size: int) -> Iterator[Result]:
        """Run a SELECT and yield its result in batches."""
        search = start_search(self.bound.search, self.bound.catalogue, self.indexes, self.parameters, self._run_inner)
        found = self._run_on_the_best(search)
        if found is None:
            yield from self.engine.stream(self._plan(search, search.narrowed), batch_size)
        else:
            yield from found.batches(batch_size)

    def explain(self) -> list[str]:
        """Return how the statement would run: its searches, then the engine's own plan."""
        search = start_search(self.bound.search, self.bound.catalogue, self.indexes, self.parameters, self._run_inner)
        lines = [] if self.bound.search is None else self.bound.search.lines(self.parameters)
        return lines + self.engine.explain(self._plan(search, search.narrowed))

    def _plan(self, search: SearchRun, candidates: Mapping[str, RowNumbers]) -> StatementPlan:
        tree = self.bound.tree if self.bound.search is None else self.bound.search.tree
        return StatementPlan(tree, self.parameters, search.scores, candidates, left(), self.max_rows, self.max_bytes)

    def _run_inner(self, query: exp.Expression) -> Result:
        bound = BoundStatement(query, self.bound.catalogue, plan_search(query))
        return StatementRun(self.engine, self.indexes, bound, self.parameters).result()

    def _run_on_the_best(self, search: SearchRun) -> Result | None:
        """Return the result if the best rows are enough; None if all rows are needed."""
        plan = self.bound.search
        ranking = None if plan is None else plan.ranking
        counts = None if ranking is None else ranking.counts(self.parameters)
        if plan is None or ranking is None or counts is None:
            return None
        limit, skipped = counts
        scores = search.scores[ranking.score]
        narrowed = search.narrowed.get(ranking.alias)
        wanted = limit + skipped
        count = _FIRST * wanted
        while count * _MOST <= scores.rows.size:
            rows, _ = scores.best(count, ties=ranking.ties)
            candidates = rows if narrowed is None else rows[np.isin(rows, narrowed)]
            for score, operator in zip(search.scores, plan.operators, strict=True):
                if operator.alias == ranking.alias:
                    score.know(candidates)
            found = self.engine.run(self._plan(search, {**search.narrowed, ranking.alias: candidates}))
            if len(found.rows) >= limit:
                return found
            passed = skipped + len(found.rows) if found.rows else 0
            share = passed / rows.size
            count = max(count * _MORE, int(1.5 * wanted / share) if share else count * _MORE**2)
        return None
