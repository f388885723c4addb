"""Render a bound statement for PostgreSQL: every table with its schema, parameters in the order of their use, and
the scores of searches joined in as arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from psycopg.types.json import Jsonb
from sqlglot import exp, parse_one

from ...errors import SqlError
from ...stores.sql.postgres_arrays import Array
from ..catalog import ROW
from ..deadline import check_each
from ..sql.dialect import EUCLIDEAN_DISTANCE, Dialect, Operator
from ..sql.scope import replace_node
from .base import RowNumbers, StatementPlan, Values, pattern_parameters
from .postgres_guards import guard, is_cheap_pattern
from .postgres_values import parameter

SCORE = "rmem_score"
_KEPT = "rmem_postgres"
_PATTERNS = "patterns"


Place = Callable[[StatementPlan], Any]
"""Gives the value of a place from the parameters, scores and candidates of a run."""


class RenderedStatement(NamedTuple):
    """SQL for the server and what stands at its places; `writes` says whether it may change anything."""

    text: bytes
    places: list[Place]
    writes: bool

    def values(self, plan: StatementPlan) -> list[Any]:
        return [place(plan) for place in self.places]


def render(plan: StatementPlan, schema: str) -> RenderedStatement:
    """Render a bound statement; the result is cached with its tree."""
    tree, kept = plan.tree.meta.get(_KEPT, (0, {}))
    if tree != id(plan.tree):  # a copy of a tree, which takes this along, may have been changed
        kept = {}
        plan.tree.meta[_KEPT] = id(plan.tree), kept
    if _PATTERNS not in kept:
        kept[_PATTERNS] = pattern_parameters(plan.tree)
    cheap = frozenset(number for number in kept[_PATTERNS] if is_cheap_pattern(plan.parameters[number - 1]))
    key = schema, plan.max_rows, tuple(plan.candidates), cheap
    if key not in kept:
        rendering = _Rendering(plan, schema, cheap)
        kept[key] = RenderedStatement(rendering.text(), rendering.places, rendering.writes)
    return kept[key]  # type: ignore[no-any-return]


def sql_of(tree: exp.Expression) -> str:
    """Write a tree as PostgreSQL SQL, with quoted names, so that none is read as a keyword. Changes the tree."""
    for name in tree.find_all(exp.Identifier):
        if not name.args.get("quoted"):
            name.set("this", name.name.lower())
            name.set("quoted", True)
    return tree.sql(dialect=Dialect, copy=False)


def expression_sql(node: exp.Expression) -> str:
    """Write a bound CHECK or default, which runs inside other statements: guarded, columns without their table."""
    tree = exp.Select(expressions=[node.copy()])  # what is replaced needs a parent
    guard(tree, frozenset())
    for part in list(tree.walk()):
        if isinstance(part, exp.Column):
            part.set("table", None)
        else:
            _rewrite_node(part)
    return sql_of(tree.expressions[0])


class _Rendering:
    def __init__(self, plan: StatementPlan, schema: str, cheap_patterns: frozenset[int]) -> None:
        self.plan = plan
        self.cheap_patterns = cheap_patterns
        self.schema = schema
        self.tree = plan.tree.copy()
        self.places: list[Place] = []
        self.writes = self.tree.find(exp.Insert, exp.Update, exp.Delete) is not None

    def text(self) -> bytes:
        tables = [node for node in self.tree.find_all(exp.Table) if node.meta.get("table") is not None]
        self._name_columns()
        guard(self.tree, self.cheap_patterns)
        nodes = list(self.tree.walk())
        self._parameters([node for node in nodes if isinstance(node, exp.Parameter | exp.Placeholder)])
        for node in nodes:
            _rewrite_node(node)
        for table in tables:
            table.set("db", exp.to_identifier(self.schema, quoted=True))
        self._scores([node for node in nodes if isinstance(node, exp.Anonymous) and node.name.lower() == SCORE], tables)
        self._limit()
        return sql_of(self.tree).encode()

    def _name_columns(self) -> None:
        """Write out the columns of an INSERT without columns, without the hidden ones."""
        if isinstance(self.tree, exp.Insert) and not isinstance(self.tree.this, exp.Schema):
            names = [exp.to_identifier(name, quoted=True) for name in self.tree.meta["targets"]]
            self.tree.set("this", exp.Schema(this=self.tree.this, expressions=names))

    def _limit(self) -> None:
        """Fetch at most one row beyond the row limit."""
        most, limit = self.plan.max_rows, self.tree.args.get("limit")
        if most is None or not isinstance(self.tree, exp.Select | exp.SetOperation):
            return
        written = limit.expression.name if limit is not None and isinstance(limit.expression, exp.Literal) else ""
        if limit is None or (written.isdecimal() and int(written) > most):
            self.tree.set("limit", exp.Limit(expression=exp.Literal.number(most + 1)))

    # Parameters

    def _parameters(self, nodes: list[exp.Expr]) -> None:
        """Send each parameter with its bound type, so that PostgreSQL need not guess; one used as two types is sent
        twice."""
        numbers: dict[tuple[int, str], int] = {}
        for node in check_each(nodes):
            number, kind = int(node.name), str(node.meta["type"])
            if (number, kind) not in numbers:
                numbers[number, kind] = self._place(partial(_parameter, number=number, kind=kind))
            replace_node(node, exp.Var(this=f"CAST(${numbers[number, kind]} AS {kind})"))

    def _candidates(self, alias: str) -> int:
        return self._place(lambda plan: Array(np.asarray(plan.candidates[alias], np.int64)))

    def _place(self, place: Place) -> int:
        self.places.append(place)
        return len(self.places)

    # Scores of searches

    def _scores(self, calls: list[exp.Expr], tables: list[exp.Table]) -> None:
        wanted: dict[int, tuple[exp.Table, list[int]]] = {}
        known = {table.alias_or_name: table for table in tables}
        for call in check_each(calls):
            number, alias = int(call.expressions[0].name), call.expressions[1].args["table"].name
            table = known.get(alias)
            if table is None:
                raise SqlError(f"a search must stand beside the table it searches; {alias!r} is not in its FROM")
            scope = table.find_ancestor(exp.Select, exp.Update, exp.Delete)
            if isinstance(scope, exp.Select) and not scope.args.get("group"):
                joined = wanted.setdefault(id(table), (table, []))[1]
                if number not in joined:
                    joined.append(number)
                replace_node(call, exp.column("_score", f"rmem_scored_{number}", quoted=True))
            else:
                replace_node(call, self._lookup_score(number, alias))
        for table in tables:
            if table.alias_or_name in self.plan.candidates and isinstance(table.parent, exp.From | exp.Join):
                wanted.setdefault(id(table), (table, []))
        for table, numbers in wanted.values():
            self._join_scores(table, numbers)
        self._narrow_target()

    def _join_scores(self, table: exp.Table, numbers: list[int]) -> None:
        """Join a table with its scores, in brackets, so that it stays one side of a join."""
        alias = table.alias_or_name
        row = _row_of(alias)
        parts = [sql_of(table)]
        if alias in self.plan.candidates:
            rows = self._candidates(alias)
            parts.append(f'JOIN UNNEST(${rows}) AS "rmem_found_{rows}"("_at") ON "rmem_found_{rows}"."_at" = {row}')
        for number in numbers:
            rows, values = (self._place(partial(_side, number=number, alias=alias, side=side)) for side in (0, 1))
            name = f'"rmem_scored_{number}"'
            parts.append(f'LEFT JOIN UNNEST(${rows}, ${values}) AS {name}("_at", "_score") ON {name}."_at" = {row}')
        table.replace(exp.Var(this=f"({' '.join(parts)})"))

    def _lookup_score(self, number: int, alias: str) -> exp.Expr:
        """Look up a score where nothing can be joined: in UPDATE, DELETE and beside GROUP BY."""

        def by_row(plan: StatementPlan) -> Jsonb:
            rows, values = _pairs(plan, number, alias)
            return Jsonb(dict(zip(map(str, rows.tolist()), values.tolist(), strict=True)))

        known = self._place(by_row)
        return exp.Var(this=f"CAST(${known} ->> CAST({_row_of(alias)} AS TEXT) AS DOUBLE PRECISION)")

    def _narrow_target(self) -> None:
        if not isinstance(self.tree, exp.Update | exp.Delete):
            return
        alias = self.tree.this.alias_or_name
        if alias in self.plan.candidates:
            number = self._candidates(alias)
            self.tree.where(exp.Var(this=f"{_row_of(alias)} = ANY(${number})"), copy=False)


def _rewrite_node(node: exp.Expr) -> None:
    """Rewrite what PostgreSQL lacks or understands differently."""
    if isinstance(node, exp.Anonymous):
        _rewrite_function(node)
    elif isinstance(node, Operator) and node.op == EUCLIDEAN_DISTANCE:
        _rewrite_distance(node)
    elif isinstance(node, exp.DataType) and node.this == exp.DType.JSON:
        node.set("this", exp.DType.JSONB)


def _rewrite_function(node: exp.Anonymous) -> None:
    name = node.name.lower()
    if name == "to_jsonb" and node.expressions[0].is_string:
        # A bare text is a text here, and of no type to PostgreSQL.
        node.set("expressions", [exp.Cast(this=node.expressions[0], to=exp.DataType.build("text"))])
    if name in ("stddev", "variance"):  # of doubles here, as `sql.functions` says
        (argument,) = node.expressions
        argument = argument.expressions[0] if isinstance(argument, exp.Distinct) else argument
        cast = exp.Cast(to=exp.DataType.build("float8"))
        replace_node(argument, cast)
        cast.set("this", argument)
    if name == "deeplake_sync_table":  # what was written is searchable at once
        replace_node(node, exp.Cast(this=node.expressions[0], to=exp.DataType.build("text")))


_DISTANCE = """(SELECT CASE WHEN count(x) = 0 OR count(y) = 0 THEN NULL
WHEN count(x) <> count(y)
THEN CAST('different vector dimensions ' || CAST(count(x) AS TEXT) || ' and ' || CAST(count(y) AS TEXT) AS float8)
ELSE sqrt(sum(power(CAST(x AS float8) - CAST(y AS float8), 2))) END
FROM unnest(CAST(left_side AS REAL[]), CAST(right_side AS REAL[])) AS rmem_pair(x, y))"""


def _rewrite_distance(node: Operator) -> None:
    """Rewrite `<->`, which PostgreSQL lacks for arrays. Casting a message to a number raises the error."""
    query = parse_one(_DISTANCE, dialect=Dialect)
    sides = {"left_side": node.this, "right_side": node.expression}
    replace_node(node, query)
    for column in list(query.find_all(exp.Column)):
        if column.name in sides:
            column.replace(sides[column.name])


def _row_of(alias: str) -> str:
    return exp.column(ROW, alias, quoted=True).sql(dialect=Dialect)


def _parameter(plan: StatementPlan, *, number: int, kind: str) -> Any:
    return parameter(plan.parameters[number - 1], kind)


def _side(plan: StatementPlan, *, number: int, alias: str, side: int) -> Array:
    return Array(_pairs(plan, number, alias)[side])


def _pairs(plan: StatementPlan, number: int, alias: str) -> tuple[RowNumbers, Values]:
    """Return the rows that have a score, and their scores."""
    scores, narrowed = plan.scores[number], plan.candidates.get(alias)
    if narrowed is None:
        return scores.all()
    found = [(row, score) for row in np.asarray(narrowed).tolist() if (score := scores.by_row[row]) is not None]
    return np.array([row for row, _ in found], np.int64), np.array([score for _, score in found], np.float64)
