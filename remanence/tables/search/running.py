"""Running a statement that searches. One that wants the best few rows is run on the best few, and on more of them
until enough pass its WHERE; the answer is what a run on all rows would give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np
from sqlglot import exp

from ...errors import StatementTimeoutError
from ..catalog import Table
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
    timeout: float | None = None
    max_rows: int | None = None
    max_bytes: int | None = None


def run(engine: Engine, indexes: SearchIndexes, statement: Statement) -> Result:
    deadline = _Deadline(statement.timeout)
    search = _planned(engine, indexes, statement, deadline)
    if search.ranking is not None:
        found = _run_on_the_best(engine, search, search.ranking, statement, deadline)
        if found is not None:
            return found
    return engine.run(_plan(search, statement, search.narrowed, deadline))


def stream(engine: Engine, indexes: SearchIndexes, statement: Statement, batch_size: int) -> Iterator[Result]:
    deadline = _Deadline(statement.timeout)
    search = _planned(engine, indexes, statement, deadline)
    if search.ranking is not None:
        found = _run_on_the_best(engine, search, search.ranking, statement, deadline)
        if found is not None:
            for start in range(0, max(1, len(found.rows)), batch_size):
                rows = found.rows[start : start + batch_size]
                yield Result(found.columns, found.types, rows, len(rows))
            return
    yield from engine.stream(_plan(search, statement, search.narrowed, deadline), batch_size)


def explain(engine: Engine, indexes: SearchIndexes, statement: Statement) -> list[str]:
    deadline = _Deadline(statement.timeout)
    search = _planned(engine, indexes, statement, deadline)
    lines = search.lines()
    if search.ranking is not None:
        lines.append(f"Best rows first: the best of {search.ranking.alias} until {search.ranking.limit} are found")
    return lines + engine.explain(_plan(search, statement, search.narrowed, deadline))


class _Deadline:
    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._end = None if timeout is None else monotonic() + timeout

    def left(self) -> float | None:
        """The seconds that are left."""
        if self._end is None:
            return None
        left = self._end - monotonic()
        if left <= 0:
            raise StatementTimeoutError(f"the statement ran longer than {self._timeout:g} s and was stopped")
        return left


def _planned(engine: Engine, indexes: SearchIndexes, statement: Statement, deadline: _Deadline) -> Planned:
    def ask(query: exp.Expression) -> Result:
        inner = replace(statement, tree=query, timeout=deadline.left())
        if has_search(query):
            return run(engine, indexes, inner)
        return engine.run(Plan(query, inner.parameters, timeout=inner.timeout))

    return planned(statement.tree, statement.catalogue, indexes, statement.parameters, ask)


def _plan(search: Planned, statement: Statement, candidates: Mapping[str, Rows], deadline: _Deadline) -> Plan:
    return Plan(
        tree=search.tree,
        parameters=statement.parameters,
        scores=search.scores,
        candidates=candidates,
        timeout=deadline.left(),
        max_rows=statement.max_rows,
        max_bytes=statement.max_bytes,
    )


def _run_on_the_best(
    engine: Engine, search: Planned, ranking: Ranking, statement: Statement, deadline: _Deadline
) -> Result | None:
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
        found = engine.run(_plan(search, statement, {**search.narrowed, ranking.alias: candidates}, deadline))
        if len(found.rows) >= ranking.limit:
            return found
        passed = ranking.skipped + len(found.rows) if found.rows else 0
        share = passed / rows.size
        count = max(count * _MORE, int(1.5 * wanted / share) if share else count * _MORE**2)
    return None
