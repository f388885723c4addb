"""Running a statement that searches. One that wants the best few rows is run on the best few, and on more of them
until enough pass its WHERE; the answer is what a run on all rows would give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlglot import exp

from ..catalog import Table
from ..deadline import left
from ..engines.base import Engine, Plan, Rows
from ..results import Result
from .indexes import SearchIndexes
from .plan import Planned, Ranking, has_search, planned

_FIRST, _MORE = 4, 8  # times as many rows as are wanted; times as many again
_MOST = 4  # a try with more than this part of a table is a try with all


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that was checked, and what it needs to run."""

    tree: exp.Expression
    catalogue: Mapping[str, Table]
    parameters: Sequence[Any] = ()
    max_rows: int | None = None
    max_bytes: int | None = None


def run(engine: Engine, indexes: SearchIndexes, statement: Statement) -> Result:
    search = _planned(engine, indexes, statement)
    if search.ranking is not None:
        found = _run_on_the_best(engine, search, search.ranking, statement)
        if found is not None:
            return found
    return engine.run(_plan(search, statement, search.narrowed))


def stream(engine: Engine, indexes: SearchIndexes, statement: Statement, batch_size: int) -> Iterator[Result]:
    search = _planned(engine, indexes, statement)
    if search.ranking is not None:
        found = _run_on_the_best(engine, search, search.ranking, statement)
        if found is not None:
            for start in range(0, max(1, len(found.rows)), batch_size):
                rows = found.rows[start : start + batch_size]
                yield Result(found.columns, found.types, rows, len(rows))
            return
    yield from engine.stream(_plan(search, statement, search.narrowed), batch_size)


def explain(engine: Engine, indexes: SearchIndexes, statement: Statement) -> list[str]:
    search = _planned(engine, indexes, statement)
    lines = search.lines()
    if search.ranking is not None:
        lines.append(f"Best rows first: the best of {search.ranking.alias} until {search.ranking.limit} are found")
    return lines + engine.explain(_plan(search, statement, search.narrowed))


def _planned(engine: Engine, indexes: SearchIndexes, statement: Statement) -> Planned:
    def ask(query: exp.Expression) -> Result:
        inner = replace(statement, tree=query)
        if has_search(query):
            return run(engine, indexes, inner)
        return engine.run(Plan(query, inner.parameters, timeout=left()))

    return planned(statement.tree, statement.catalogue, indexes, statement.parameters, ask)


def _plan(search: Planned, statement: Statement, candidates: Mapping[str, Rows]) -> Plan:
    return Plan(
        tree=search.tree,
        parameters=statement.parameters,
        scores=search.scores,
        candidates=candidates,
        timeout=left(),
        max_rows=statement.max_rows,
        max_bytes=statement.max_bytes,
    )


def _run_on_the_best(engine: Engine, search: Planned, ranking: Ranking, statement: Statement) -> Result | None:
    """The answer if the best rows hold it; None if all rows have to be asked."""
    scores = search.scores[ranking.score]
    narrowed = search.narrowed.get(ranking.alias)
    wanted = ranking.limit + ranking.skipped
    count = _FIRST * wanted
    while count * _MOST <= scores.rows.size:
        rows, _ = scores.best(count, ties=ranking.ties)
        candidates = rows if narrowed is None else rows[np.isin(rows, narrowed)]
        for one, searched in zip(search.scores, search.searches, strict=True):
            if searched.alias == ranking.alias:
                one.know(candidates)
        found = engine.run(_plan(search, statement, {**search.narrowed, ranking.alias: candidates}))
        if len(found.rows) >= ranking.limit:
            return found
        passed = ranking.skipped + len(found.rows) if found.rows else 0
        share = passed / rows.size
        count = max(count * _MORE, int(1.5 * wanted / share) if share else count * _MORE**2)
    return None
