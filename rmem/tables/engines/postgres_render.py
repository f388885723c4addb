"""A checked statement as PostgreSQL gets it: every table with its schema, parameters in the order of their use, and
the scores of searches joined in as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sqlglot import exp

from ...errors import SqlError
from ..catalog import ROW, Kind
from ..sql.dialect import Dialect
from ..sql.types import KINDS
from .base import Plan, Rows, Scores, Values
from .postgres_values import Array, sent

SCORE = "rmem_score"
_KEPT = "rmem_postgres"


class Statement(NamedTuple):
    """Text for the server with its values; `writes` says whether it may change anything."""

    text: bytes
    values: list[Any]
    writes: bool


class _Kept(NamedTuple):
    """What a statement became, for the next time: all of it but the values."""

    tree: int
    """The tree itself; a copy of it, which takes this along, may have been changed."""
    schema: str
    max_rows: int | None
    text: bytes
    places: list[tuple[int, Kind | None]]
    writes: bool


def rendered(plan: Plan, schema: str) -> Statement:
    """Trees are bound, and those that were bound once come again: what they became is kept with them."""
    kept = plan.tree.meta.get(_KEPT)
    if isinstance(kept, _Kept) and kept[:3] == (id(plan.tree), schema, plan.max_rows):
        return Statement(kept.text, _sent(plan, kept.places), kept.writes)
    rendering = _Rendering(plan, schema)
    statement = rendering.statement()
    if not plan.scores and not plan.candidates:
        kept = _Kept(id(plan.tree), schema, plan.max_rows, statement.text, rendering.places, statement.writes)
        plan.tree.meta[_KEPT] = kept
    return statement


def _sent(plan: Plan, places: list[tuple[int, Kind | None]]) -> list[Any]:
    return [sent(plan.parameters[number - 1], kind) for number, kind in places]


def sql_of(tree: exp.Expression) -> str:
    """The tree in PostgreSQL's words; names are quoted, so that none is taken for a keyword. The tree is changed."""
    for name in tree.find_all(exp.Identifier):
        if not name.args.get("quoted"):
            name.set("this", name.name.lower())
            name.set("quoted", True)
    return tree.sql(dialect=Dialect, copy=False)


def real_tables(node: exp.Expression, ctes: frozenset[str]) -> Iterator[exp.Table]:
    """The tables of a statement that are no names of its WITH; inner names hide outer ones as they do in SQL."""
    with_ = node.args.get("with_")
    if isinstance(with_, exp.With):
        names = [cte.alias for cte in with_.expressions]
        inside = ctes | set(names) if with_.recursive else ctes
        for cte, name in zip(with_.expressions, names, strict=True):
            yield from real_tables(cte.this, inside)
            inside = inside | {name}
        ctes = inside
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not _is_cte(node, ctes):
        yield node
    for child in node.iter_expressions():
        if child is not with_:
            yield from real_tables(child, ctes)


def _is_cte(table: exp.Table, ctes: frozenset[str]) -> bool:
    return not table.args.get("db") and table.name in ctes


class _Rendering:
    def __init__(self, plan: Plan, schema: str) -> None:
        self.plan = plan
        self.schema = schema
        self.tree = plan.tree.copy()
        self.places: list[tuple[int, Kind | None]] = []
        self.values: list[Any] = []

    def statement(self) -> Statement:
        tables = list(real_tables(self.tree, frozenset()))
        self._name_columns()
        nodes = list(self.tree.walk())
        self._parameters([node for node in nodes if isinstance(node, exp.Parameter | exp.Placeholder)])
        for node in nodes:
            if isinstance(node, exp.Subquery) and node.meta.get("lateral"):
                _say_lateral(node)
            elif isinstance(node, exp.Anonymous):
                _say_function(node)
            elif isinstance(node, exp.DataType) and node.this == exp.DType.JSON:
                node.set("this", exp.DType.JSONB)
        for table in tables:
            table.set("db", exp.to_identifier(self.schema, quoted=True))
            table.set("catalog", None)
        self._scores([node for node in nodes if isinstance(node, exp.Anonymous) and node.name.lower() == SCORE], tables)
        self._limit()
        writes = any(isinstance(node, exp.Insert | exp.Update | exp.Delete) for node in nodes)
        return Statement(sql_of(self.tree).encode(), self.values, writes)

    def _name_columns(self) -> None:
        """INSERT without columns means all that the user made, not the hidden ones."""
        insert = self.tree if isinstance(self.tree, exp.Insert) else None
        if insert is not None and not isinstance(insert.this, exp.Schema) and not insert.args.get("default"):
            names = [exp.to_identifier(name, quoted=True) for name in insert.meta["targets"]]
            insert.set("this", exp.Schema(this=insert.this, expressions=names))

    def _limit(self) -> None:
        """Never fetch more than one row beyond those that the answer may have."""
        most = self.plan.max_rows
        limit = self.tree.args.get("limit")
        if most is None or not isinstance(self.tree, exp.Select | exp.SetOperation) or isinstance(limit, exp.Fetch):
            return
        said = limit.expression if limit is not None else None
        if said is None or (isinstance(said, exp.Literal) and said.name.isdecimal() and int(said.name) > most):
            self.tree.set("limit", exp.Limit(expression=exp.Literal.number(most + 1)))

    # Parameters

    def _parameters(self, nodes: list[exp.Expr]) -> None:
        """Each parameter with the type that binding gave it, so that PostgreSQL has nothing to guess; one that is used
        as two types is sent twice."""
        numbers: dict[tuple[int, str], int] = {}
        for node in nodes:
            number, kind = int(node.name), str(node.meta["type"])
            if (number, kind) not in numbers:
                self.places.append((number, KINDS.get(kind)))
                numbers[number, kind] = len(self.places)
            node.replace(exp.Var(this=f"CAST(${numbers[number, kind]} AS {kind})"))
        self.values = _sent(self.plan, self.places)

    def _value(self, value: Any) -> int:
        self.values.append(value)
        return len(self.values)

    # Scores of searches

    def _scores(self, calls: list[exp.Expr], tables: list[exp.Table]) -> None:
        wanted: dict[int, tuple[exp.Table, list[int]]] = {}
        for call in calls:
            number, alias = int(call.expressions[0].name), call.expressions[1].args["table"].name
            table, scope = _home(call, alias)
            narrowed = self.plan.candidates.get(alias)
            if table is None:
                raise SqlError(f"a search must stand beside the table it searches; {alias!r} is not in its FROM")
            if isinstance(scope, exp.Select) and not scope.args.get("group"):
                joined = wanted.setdefault(id(table), (table, []))[1]
                if number not in joined:
                    joined.append(number)
                call.replace(exp.column("_score", f"rmem_scored_{number}", quoted=True))
            else:
                call.replace(self._looked_up(self.plan.scores[number], alias, narrowed))
        for table in tables:
            if table.alias_or_name in self.plan.candidates and isinstance(table.parent, exp.From | exp.Join):
                wanted.setdefault(id(table), (table, []))
        for table, numbers in wanted.values():
            self._joined(table, numbers, self.plan.candidates.get(table.alias_or_name))
        self._narrow_target()

    def _joined(self, table: exp.Table, numbers: list[int], narrowed: Rows | None) -> None:
        """The table joined with its scores, in brackets, so that it is still one side of a join."""
        row = _row_of(table.alias_or_name)
        parts = [sql_of(table)]
        if narrowed is not None:
            rows = self._value(Array(np.asarray(narrowed, np.int64)))
            parts.append(f'JOIN UNNEST(${rows}) AS "rmem_found_{rows}"("_at") ON "rmem_found_{rows}"."_at" = {row}')
        for number in numbers:
            rows, values = (self._value(Array(part)) for part in _pairs(self.plan.scores[number], narrowed))
            name = f'"rmem_scored_{number}"'
            parts.append(f'LEFT JOIN UNNEST(${rows}, ${values}) AS {name}("_at", "_score") ON {name}."_at" = {row}')
        table.replace(exp.Var(this=f"({' '.join(parts)})"))

    def _looked_up(self, scores: Scores, alias: str, narrowed: Rows | None) -> exp.Expr:
        """A score where nothing can be joined: in UPDATE, DELETE and beside GROUP BY."""
        rows, values = _pairs(scores, narrowed)
        known = self._value(sent(dict(zip(map(str, rows.tolist()), values.tolist(), strict=True))))
        return exp.Var(this=f"CAST(${known} ->> CAST({_row_of(alias)} AS TEXT) AS DOUBLE PRECISION)")

    def _narrow_target(self) -> None:
        if not isinstance(self.tree, exp.Update | exp.Delete):
            return
        alias = self.tree.this.alias_or_name
        rows = self.plan.candidates.get(alias)
        if rows is not None:
            number = self._value(Array(np.asarray(rows, np.int64)))
            self.tree.where(exp.Var(this=f"{_row_of(alias)} = ANY(${number})"), copy=False)


def _say_lateral(node: exp.Subquery) -> None:
    """Binding leaves a mark in place of the word."""
    alias = node.args.get("alias")
    node.set("alias", None)
    word = exp.Lateral(alias=alias)
    node.replace(word)
    word.set("this", node)


def _say_function(node: exp.Anonymous) -> None:
    """Functions whose name means something else to PostgreSQL: JSON is JSONB here, and types are told as texts."""
    name = node.name.lower()
    if name in ("to_json", "to_jsonb", "pg_typeof") and node.expressions[0].is_string:
        # A bare text is a text here, and of no type to PostgreSQL.
        node.set("expressions", [exp.Cast(this=node.expressions[0], to=exp.DataType.build("text"))])
    if name.startswith("json_"):
        node.set("this", f"jsonb_{name.removeprefix('json_')}")
    elif name == "to_json":
        node.set("this", "to_jsonb")
    elif name == "pg_typeof":
        word = exp.Cast(to=exp.DataType.build("text"))
        node.replace(word)
        word.set("this", node)
    elif name == "deeplake_sync_table":  # what was written is searchable at once
        node.replace(exp.Cast(this=node.expressions[0], to=exp.DataType.build("text")))


def _row_of(alias: str) -> str:
    return exp.column(ROW, alias, quoted=True).sql(dialect=Dialect)


def _home(call: exp.Expr, alias: str) -> tuple[exp.Table | None, exp.Expr | None]:
    """The table that an alias means where `call` stands, and the statement that it stands in."""
    node = call.parent
    while node is not None:
        if isinstance(node, exp.Select | exp.Update | exp.Delete):
            for table in _sources(node):
                if table.alias_or_name == alias:
                    return table, node if table.parent is not node else None
        node = node.parent
    return None, None


def _sources(statement: exp.Expression) -> Iterator[exp.Table]:
    if isinstance(statement.this, exp.Table):
        yield statement.this
    from_ = statement.args.get("from_")
    places = [from_.this] if from_ else []
    places += [join.this for join in statement.args.get("joins") or ()]
    places += statement.args.get("using") or ()
    for place in places:
        yield from _inside(place)


def _inside(place: exp.Expression) -> Iterator[exp.Table]:
    """The tables of a place in FROM, also those of a join in brackets."""
    if isinstance(place, exp.Subquery) and isinstance(place.this, exp.Table):
        yield from _inside(place.this)
    elif isinstance(place, exp.Table):
        yield place
        for join in place.args.get("joins") or ():
            yield from _inside(join.this)


def _pairs(scores: Scores, narrowed: Rows | None) -> tuple[Rows, Values]:
    if narrowed is None:
        return scores.all()
    found = [(row, score) for row in np.asarray(narrowed).tolist() if (score := scores.of(row)) is not None]
    return np.array([row for row, _ in found], np.int64), np.array([score for _, score in found], np.float64)
