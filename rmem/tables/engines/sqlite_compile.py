"""Compile bound queries to SQLite SQL, with names of our own, rewriting what SQLite lacks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from ...errors import NoSuchTableError, SqlError, SqlUnsupportedError
from ..catalog import ROW, Table, Type
from ..deadline import check
from ..sql.expression_types import type_of
from ..sql.group_by import has_aggregates
from ..sql.scope import Source, fold_name, shown
from .base import StaleCatalogueError
from .sqlite_aggregates import single_row
from .sqlite_expressions import ExpressionSql
from .sqlite_functions import MAX_ARGUMENTS, Udf
from .sqlite_sets import set_call
from .sqlite_storage import Physical, collation, fit_limits, has_limits, named_column, stored_value

MAX_SQL = 64_000_000  # characters of one expression
_WRITTEN, _WRITTEN_AT_LEAST = 10, 10_000  # expressions that may be written: for each node of the tree, and in all


@dataclass(frozen=True, slots=True)
class Placed:
    """A source of FROM in the SQL: its alias and columns."""

    alias: str
    columns: dict[str, str]


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter slot: which parameter, and its bound type."""

    parameter: int
    kind: str
    limits: Type | None = None
    column: str = ""
    """The column that it is written into, whose limits it has to keep."""


@dataclass(slots=True)
class Compiled:
    """SQL for SQLite with everything needed to run it."""

    sql: str
    slots: list[Slot]
    udfs: list[Udf]
    columns: tuple[tuple[str, str], ...] = ()
    target: Physical | None = None
    """The table that is written to."""


def parameter_values(compiled: Compiled, parameters: Sequence[Any], rows: Mapping[str, Any]) -> list[Any]:
    """Return the values for the slots of a statement, in stored form."""
    values: list[Any] = []
    for slot in compiled.slots:
        if slot.parameter < 0:
            values.append(json.dumps([int(row) for row in rows[slot.kind]]))
        else:
            with named_column(slot.column):
                value = stored_value(parameters[slot.parameter], slot.kind)
            values.append(value if slot.limits is None else fit_limits(value, slot.limits, slot.column))
    return values


class Compiler:
    """Compiles one bound query; collects its parameter slots and the functions that it calls."""

    def __init__(
        self,
        tables: Mapping[str, Physical],
        candidates: Iterable[str] = (),
        long_patterns: frozenset[int] = frozenset(),
        *,
        nodes: int = 0,
    ) -> None:
        """`long_patterns` are the numbers of parameters that are long patterns of LIKE. `nodes` is the size of the
        tree, of which so many times as many expressions may be written."""
        self.tables = tables
        self._most = _WRITTEN * nodes + _WRITTEN_AT_LEAST
        self.expressions = ExpressionSql(self)
        self.slots: list[Slot] = []
        self.udfs: dict[str, Udf] = {}
        self.placed: dict[str, Placed] = {}
        self.candidates = frozenset(candidates)
        self.long_patterns = long_patterns
        self.target: Physical | None = None
        self._queries: list[dict[str, Placed]] = [{}]
        self._count = 0
        self._numbers: dict[Slot, int] = {}
        self._written = 0

    def count(self, text: str) -> None:
        """Count the written expressions. Some are written twice, so nested ones four times."""
        check()
        self._written += 1
        if self._written > self._most or len(text) > MAX_SQL:
            raise SqlError("the statement is nested too deeply to be run; move parts of it into WITH")

    def finish(self, sql: str, columns: tuple[tuple[str, str], ...] = ()) -> Compiled:
        return Compiled(sql, self.slots, list(self.udfs.values()), columns, self.target)

    # -- what expressions need ------------------------------------------------------------------------------

    def slot(self, parameter: int, kind: str, limits: Type | None = None, column: str = "") -> str:
        slot = Slot(parameter, kind, limits if limits is not None and has_limits(limits) else None, column)
        number = self._numbers.setdefault(slot, len(self.slots) + 1)
        if number > len(self.slots):
            self.slots.append(slot)
        return f"?{number}"

    def call(self, udf: Udf, arguments: Sequence[str]) -> str:
        if len(arguments) > MAX_ARGUMENTS:
            raise SqlError(f"cannot pass more than {MAX_ARGUMENTS} arguments to a function")
        self.udfs[udf.name] = udf
        return f"{udf.name}({', '.join(arguments)})"

    def column(self, alias: str, name: str) -> str:
        placed = self.placed.get(alias)
        if placed is None:
            raise SqlError(f'invalid reference to "{alias}"')
        if name == ROW:
            return f"{placed.alias}.{ROW}"
        if name not in placed.columns:
            raise NoSuchTableError(f'column "{name}" does not exist in "{alias}"')
        return f"{placed.alias}.{placed.columns[name]}" if placed.alias else placed.columns[name]

    def single(self, node: exp.Subquery) -> str:
        """Compile a scalar subquery: more than one row is an error."""
        text = self.query(node)
        if _is_single(node):
            return f"({text})"
        return f"(SELECT {self.call(single_row(), ['o1'])} FROM ({text}))"

    def order_sql(self, key: exp.Ordered) -> str:
        """Compile one ORDER BY key."""
        node = key.this
        if "output" in node.meta:
            # The name stands for its expression, and so would the collations in that.
            text = self.expressions.collate(f"o{node.meta['output'] + 1}", type_of(node), " COLLATE ")
        else:
            text = self.expressions.key(node)
        return text + _direction(key)

    # -- queries --------------------------------------------------------------------------------------------

    def query(self, node: exp.Expr, wants: Sequence[str] | None = None) -> str:
        """Compile a query with columns o1, o2 …, converted to the wanted types."""
        self._queries.append({})
        try:
            if isinstance(node, exp.Subquery):
                return self._subquery(node, wants)
            if isinstance(node, exp.Select):
                return self._select(node, wants)
            if isinstance(node, exp.SetOperation):
                return self._set_operation(node, wants)
            if isinstance(node, exp.Values):
                return self._values(node, wants)
            raise SqlUnsupportedError(f"{type(node).__name__} is not supported")
        finally:
            self._queries.pop()

    def with_queries(self, node: exp.Expression) -> str:
        clause = node.args.get("with_")
        if clause is None:
            return ""
        parts = []
        for query in clause.expressions:
            name = fold_name(query.args["alias"].this)
            columns = query.meta["columns"]
            self._count += 1
            placed = Placed(f"w{self._count}", {column: f"o{at}" for at, (column, _) in enumerate(columns, 1)})
            recursive = bool(clause.args.get("recursive"))
            if recursive:
                self._queries[-1][name] = placed
            body = self.query(query.this, [kind for _, kind in columns])
            self._queries[-1][name] = placed
            materialized = query.args.get("materialized")
            word = "" if materialized is None else " MATERIALIZED" if materialized else " NOT MATERIALIZED"
            parts.append(f"{placed.alias}({', '.join(placed.columns.values())}) AS{word} ({body})")
        return f"WITH {'RECURSIVE ' if clause.args.get('recursive') else ''}{', '.join(parts)} "

    def _subquery(self, node: exp.Subquery, wants: Sequence[str] | None) -> str:
        head = self.with_queries(node)
        body = self.query(node.this, wants)
        if not head and not any(node.args.get(key) for key in ("order", "limit", "offset")):
            return body
        return f"{head}SELECT * FROM ({body}){self.tail(node)}"

    def tail(self, node: exp.Expression) -> str:
        text = ""
        order = node.args.get("order")
        if order is not None:
            text += " ORDER BY " + ", ".join(self.order_sql(key) for key in order.expressions)
        return text + self._limits(node)

    def _limits(self, node: exp.Expression) -> str:
        limit, offset = node.args.get("limit"), node.args.get("offset")
        text = ""
        if limit is not None:
            number = self.expressions.sql_as(limit.expression, "int8")
            text += f" LIMIT {number}" if number.isdecimal() else f" LIMIT rmem_limit({number}, 'LIMIT')"
        if offset is not None:
            text += "" if limit is not None else " LIMIT -1"
            text += f" OFFSET max(rmem_limit({self.expressions.sql_as(offset.expression, 'int8')}, 'OFFSET'), 0)"
        return text

    def _select(self, node: exp.Select, wants: Sequence[str] | None) -> str:
        head = self.with_queries(node)
        source = self.from_sql(node)
        distinct = node.args.get("distinct")
        items = self._items(node, wants, collated=distinct is not None and distinct.args.get("on") is None)
        rest = source
        if node.args.get("where") is not None:
            rest += f" WHERE {self.expressions.sql_as(node.args['where'].this, 'bool')}"
        rest += self.group_sql(node)
        if distinct is not None and distinct.args.get("on") is not None:
            return head + self._distinct_on(node, items, rest)
        word = "DISTINCT " if distinct is not None else ""
        return f"{head}SELECT {word}{', '.join(items)}{rest}{self.tail(node)}"

    def group_sql(self, node: exp.Select) -> str:
        text = ""
        group = node.args.get("group")
        if group is not None and group.expressions:
            keys = [
                node.expressions[key.meta["output"]].this if "output" in key.meta else key for key in group.expressions
            ]
            constant = (exp.Literal, exp.Parameter, exp.Boolean, exp.Null)  # would be taken for the number of a column
            text += " GROUP BY " + ", ".join(
                f"+({self.expressions.sql(key)})" if isinstance(key.unnest(), constant) else self.expressions.key(key)
                for key in keys
            )
        if node.args.get("having") is not None:
            if group is None and not any(has_aggregates(item.this) for item in node.expressions):
                text += " GROUP BY NULL"
            text += f" HAVING {self.expressions.sql_as(node.args['having'].this, 'bool')}"
        return text

    def _items(self, node: exp.Select, wants: Sequence[str] | None, *, collated: bool) -> list[str]:
        items = []
        for at, item in enumerate(node.expressions):
            kind = wants[at] if wants is not None and at < len(wants) else type_of(item.this)
            text = self.expressions.sql_as(item.this, kind)
            items.append(f"{self.expressions.collate(text, kind) if collated else text} AS o{at + 1}")
        return items

    def _distinct_on(self, node: exp.Select, items: list[str], rest: str) -> str:
        """Select the first row of each DISTINCT ON group, by row_number in the order of the query."""
        on = node.args["distinct"].args["on"]
        keys = on.expressions if isinstance(on, exp.Tuple) else [on.unnest()]
        order = node.args.get("order")
        ordered = order.expressions if order is not None else []

        def text(key: exp.Expression) -> str:
            inner = node.expressions[key.meta["output"]].this if "output" in key.meta else key
            return self.expressions.key(inner)

        partition = ", ".join(text(key) for key in keys)
        inside = ", ".join(text(key.this) + _direction(key) for key in ordered)
        extra = [f"{text(key.this)} AS k{at}" for at, key in enumerate(ordered, 1)]
        number = f"row_number() OVER (PARTITION BY {partition}{' ORDER BY ' + inside if inside else ''}) AS n1"
        outputs = ", ".join(f"o{at}" for at in range(1, len(items) + 1))
        outside = ", ".join(
            self.expressions.collate(f"k{at}", type_of(key.this)) + _direction(key) for at, key in enumerate(ordered, 1)
        )
        body = f"SELECT {', '.join([*items, *extra, number])}{rest}"
        tail = (f" ORDER BY {outside}" if outside else "") + self._limits(node)
        return f"SELECT {outputs} FROM ({body}) WHERE n1 = 1{tail}"

    def _set_operation(self, node: exp.SetOperation, wants: Sequence[str] | None) -> str:
        head = self.with_queries(node)
        kinds = list(wants or [kind for _, kind in node.meta["columns"]])
        word = type(node).__name__.upper() if node.args.get("distinct") else "UNION ALL"
        # SQLite, too, works from left to right.
        first = self.query(node.this, kinds) if _is_bare(node.this) else self._side(node.this, kinds)
        body = f"{first} {word} {self._side(node.expression, kinds)}"
        outputs = [f"o{at}" for at in range(1, len(kinds) + 1)]
        if head or any(node.args.get(key) for key in ("order", "limit", "offset")):
            return f"{head}SELECT {', '.join(outputs)} FROM ({body}){self.tail(node)}"
        return body

    def _side(self, node: exp.Expression, kinds: list[str]) -> str:
        body = self.query(node, kinds)
        simple = isinstance(node, exp.Select) and not any(
            node.args.get(key) for key in ("order", "limit", "offset", "with_", "distinct")
        )
        if simple and not any(collation(kind) for kind in kinds):
            return body
        items = [f"{self.expressions.collate(f'o{at}', kind)} AS o{at}" for at, kind in enumerate(kinds, 1)]
        return f"SELECT {', '.join(items)} FROM ({body})"

    def _values(self, node: exp.Values, wants: Sequence[str] | None) -> str:
        head = self.with_queries(node)
        kinds = list(wants or [kind for _, kind in node.meta["columns"]])
        names = [f"column{at} AS o{at}" for at in range(1, len(kinds) + 1)]
        rows = []
        for row in node.expressions:
            pairs = zip(row.expressions if isinstance(row, exp.Tuple) else [row], kinds, strict=True)
            rows.append(f"({', '.join(self.expressions.sql_as(item, kind) for item, kind in pairs)})")
        return f"{head}SELECT {', '.join(names)} FROM (VALUES {', '.join(rows)}){self.tail(node)}"

    # -- FROM -----------------------------------------------------------------------------------------------

    def from_sql(self, node: exp.Expression) -> str:
        clause = node.args.get("from_")
        if clause is None:
            return ""
        return " FROM " + self.relation(clause.this) + self.joins(node)

    def joins(self, node: exp.Expression) -> str:
        return "".join(self._join(join) for join in node.args.get("joins") or [])

    def _join(self, join: exp.Join) -> str:
        side = (join.args.get("side") or "").upper()
        relation = self.relation(join.this)
        on = join.args.get("on")
        if on is None:
            return f" CROSS JOIN {relation}"
        return f" {side + ' ' if side else ''}JOIN {relation} ON {self.expressions.sql_as(on, 'bool')}"

    def relation(self, node: exp.Expression) -> str:
        source: Source = node.meta["source"]
        self._count += 1
        alias = f"s{self._count}"
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
            text = set_call(self, node, source, alias)
        elif isinstance(node, exp.Table):
            text = self._table(node, source, alias)
        else:
            body = self.query(node)
            self.place(source, alias, [f"o{at}" for at in range(1, len(source.columns) + 1)])
            text = f"({body}) AS {alias}"
        joins = self.joins(node) if not isinstance(node, exp.Values) else ""
        return f"({text}{joins})" if joins else text

    def place(self, source: Source, alias: str, columns: Sequence[str]) -> None:
        """Let the columns of a source stand for those of an alias; without one, for expressions."""
        names = [name for name, _ in source.columns]
        self.placed[source.alias] = Placed(alias, dict(zip(names, columns, strict=True)))

    def _table(self, node: exp.Table, source: Source, alias: str) -> str:
        if source.table is None:
            name = fold_name(node.this)
            placed = next((level[name] for level in reversed(self._queries) if name in level), None)
            if placed is None:
                raise SqlError(f"{shown(node)} cannot be referred to here")
            self.place(source, alias, [f"o{at}" for at in range(1, len(source.columns) + 1)])
            return f"{placed.alias} AS {alias}"
        physical = self.physical(source.table)
        self.place(source, alias, [physical.columns[name] for name in source.under])
        if source.alias in self.candidates:
            inside = f"SELECT value FROM json_each({self.slot(-1, source.alias)})"
            return f"(SELECT * FROM {physical.name} WHERE {ROW} IN ({inside})) AS {alias}"
        return f"{physical.name} AS {alias}"

    def physical(self, table: Table) -> Physical:
        found = self.tables.get(table.name)
        if found is None or found.table != table:
            raise StaleCatalogueError(table.name)
        return found


def _direction(key: exp.Ordered) -> str:
    """Return the direction of an ORDER BY key; always with the place of NULL."""
    nulls = "FIRST" if key.args.get("nulls_first") else "LAST"
    return f"{' DESC' if key.args.get('desc') else ''} NULLS {nulls}"


def _is_single(node: exp.Expr) -> bool:
    """Return whether a query can give at most one row."""
    while isinstance(node, exp.Subquery) and node.args.get("limit") is None:
        node = node.this
    limit = node.args.get("limit")
    if limit is not None and isinstance(limit.expression, exp.Literal) and limit.expression.this in ("0", "1"):
        return True
    if not isinstance(node, exp.Select):
        return False
    if node.args.get("from_") is None:
        return True
    return node.args.get("group") is None and any(has_aggregates(item.this) for item in node.expressions)


def _is_bare(node: exp.Expression) -> bool:
    """Return whether a set operation needs no brackets before another one."""
    return isinstance(node, exp.SetOperation) and not any(
        node.args.get(key) for key in ("order", "limit", "offset", "with_")
    )
