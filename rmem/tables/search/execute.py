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
from .plan import SearchPlan, SearchRun, has_search, plan_search, start_search

_FIRST, _MORE = 4, 8  # times as many rows as are wanted; times as many again
_MOST = 4  # a try with more than this part of a table is a try with all


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A bound statement with its search plan, if any, and what it needs to run."""

    tree: exp.Expression
    search: SearchPlan | None
    catalogue: Mapping[str, Table]
    parameters: Sequence[Any] = ()
    max_rows: int | None = None
    max_bytes: int | None = None

    def plan_on(self, search: SearchRun, candidates: Mapping[str, RowNumbers]) -> StatementPlan:
        return StatementPlan(
            tree=self.tree if self.search is None else self.search.tree,
            parameters=self.parameters,
            scores=search.scores,
            candidates=candidates,
            timeout=left(),
            max_rows=self.max_rows,
            max_bytes=self.max_bytes,
        )


def run(engine: Engine, indexes: SearchIndexes, statement: BoundStatement) -> Result:
    """Run a statement and return the whole result."""
    search = _start(engine, indexes, statement)
    found = _run_on_the_best(engine, search, statement)
    return engine.run(statement.plan_on(search, search.narrowed)) if found is None else found


def stream(engine: Engine, indexes: SearchIndexes, statement: BoundStatement, batch_size: int) -> Iterator[Result]:
    """Run a SELECT and yield its result in batches."""
    search = _start(engine, indexes, statement)
    found = _run_on_the_best(engine, search, statement)
    if found is None:
        yield from engine.stream(statement.plan_on(search, search.narrowed), batch_size)
    else:
        yield from found.batches(batch_size)


def explain(engine: Engine, indexes: SearchIndexes, statement: BoundStatement) -> list[str]:
    """Return how a statement would run: its searches, then the engine's own plan."""
    search = _start(engine, indexes, statement)
    lines = [] if statement.search is None else statement.search.lines(statement.parameters)
    return lines + engine.explain(statement.plan_on(search, search.narrowed))


def _start(engine: Engine, indexes: SearchIndexes, statement: BoundStatement) -> SearchRun:
    if statement.search is None:
        return SearchRun([], {})

    def run_query(query: exp.Expression) -> Result:
        plan = plan_search(query.copy(), statement.catalogue, statement.parameters) if has_search(query) else None
        return run(engine, indexes, BoundStatement(query, plan, statement.catalogue, statement.parameters))

    return start_search(statement.search, statement.catalogue, indexes, statement.parameters, run_query)


def _run_on_the_best(engine: Engine, search: SearchRun, statement: BoundStatement) -> Result | None:
    """Return the result if the best rows are enough; None if all rows are needed."""
    plan = statement.search
    ranking = None if plan is None else plan.ranking
    counts = None if ranking is None else ranking.counts(statement.parameters)
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
        found = engine.run(statement.plan_on(search, {**search.narrowed, ranking.alias: candidates}))
        if len(found.rows) >= limit:
            return found
        passed = skipped + len(found.rows) if found.rows else 0
        share = passed / rows.size
        count = max(count * _MORE, int(1.5 * wanted / share) if share else count * _MORE**2)
    return None
