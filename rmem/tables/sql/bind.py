"""Bind a statement to the tables of a workspace: names to sources, stars to columns, a type to everything.

A bound tree says the same as before, so any engine can run it; what binding found is in the nodes' `meta`: `type`
of expressions, `call` of functions, `operand` of comparisons, `source` of relations, `output` of references to the
list of a SELECT, `columns` of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from ..catalog import Table
from . import functions
from .dialect import Dialect
from .expression_types import UNKNOWN, common, type_of
from .expressions import Expressions
from .group_by import check_distinct, check_grouping
from .relations import Relations
from .scope import NameScope, fold_name, identifier, only, shown, unsupported
from .sources import first_select

BoundColumns = tuple[tuple[str, str], ...]
"""Names and types of what a query gives."""


MAX_RESULTS = 1664
"""Columns of an answer, as in PostgreSQL; SQLite has 2,000."""
_GROUPINGS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)


class Binder:
    """Binds one statement to a catalogue."""

    def __init__(
        self,
        catalogue: Mapping[str, Table],
        workspace: str,
        parameters: Sequence[Any] = (),
        *,
        views: tuple[str, ...] = (),
    ) -> None:
        """`views` are those whose queries are being bound; none of them may name itself."""
        self.catalogue = catalogue
        self.workspace = workspace
        self.parameters = parameters
        self.views = views
        self.expressions = Expressions(self)
        self.relations = Relations(self)
        self._aliases: set[str] = set()

    def value(self, node: exp.Parameter) -> Any:
        return self.parameters[int(node.name) - 1]

    def alias(self, name: str) -> str:
        """Return an alias that no source of the statement has."""
        chosen, count = name, 1
        while chosen in self._aliases:
            count += 1
            chosen = f"{name}_{count}"
        self._aliases.add(chosen)
        return chosen

    def query(self, node: exp.Expr | None, outer: NameScope | None, wants: Sequence[str] | None = None) -> BoundColumns:
        """Bind a query; `wants` are the types for its columns that have none."""
        scope = NameScope(outer=outer)
        if isinstance(node, exp.Select):
            found = self._select(node, scope, wants)
        elif isinstance(node, exp.Subquery | exp.SetOperation | exp.Values):
            only(node, "this", "expression", "expressions", "distinct", "alias", "order", "limit", "offset", "with_")
            self.with_queries(node, scope)
            if isinstance(node, exp.Subquery):
                found = self.query(node.this, scope, wants)
            else:
                bind = self._values if isinstance(node, exp.Values) else self._set_operation
                found = bind(node, scope, wants)
            self._tail(node, scope, found)
        else:
            raise SqlUnsupportedError(f"{type(node).__name__} is not supported: {shown(node)}" if node else "no query")
        node.meta["columns"] = found
        return found

    def with_queries(self, node: exp.Expression, scope: NameScope) -> None:
        """Bind WITH, whose queries the rest of the statement sees."""
        clause = node.args.get("with_")
        if clause is None:
            return
        only(clause, "expressions", "recursive")
        for query in clause.expressions:
            only(query, "this", "alias", "materialized")
            name = fold_name(query.args["alias"].this)
            if name in scope.queries:
                raise SqlError(f'WITH query name "{name}" specified more than once')
            names = [fold_name(column) for column in query.args["alias"].args.get("columns") or []]
            body = query.this
            if not isinstance(body, exp.Query):
                raise SqlUnsupportedError(f"WITH is supported for SELECT only: {shown(query)}")
            unique = self.alias(name)
            if clause.args.get("recursive") and isinstance(body, exp.SetOperation) and self._names(body, name):
                columns = self._recursive(body, scope, name, names, unique)
            else:
                columns = self.rename_columns(self.query(body, scope), names, name)
            scope.queries[name] = unique, columns
            query.meta["columns"] = columns
            query.meta["name"] = unique
            query.set(
                "alias", exp.TableAlias(this=identifier(name), columns=[identifier(column) for column, _ in columns])
            )

    @staticmethod
    def _names(body: exp.Expression, name: str) -> bool:
        return any(fold_name(table.this) == name and not table.args.get("db") for table in body.find_all(exp.Table))

    def _recursive(
        self, body: exp.SetOperation, scope: NameScope, name: str, names: list[str], unique: str
    ) -> BoundColumns:
        if not isinstance(body, exp.Union):
            raise SqlError(f'recursive query "{name}" does not have the form non-recursive-term UNION recursive-term')
        only(body, "this", "expression", "distinct")
        first = self.query(body.this, scope)
        columns = self.rename_columns(first, names, name)
        inner = NameScope(outer=scope)
        inner.queries[name] = unique, columns
        second = self.query(body.expression, inner, [kind for _, kind in columns])
        if len(second) != len(columns):
            raise SqlError("each UNION query must have the same number of columns")
        for (column, kind), (_, other) in zip(columns, second, strict=True):
            if common([kind, other], "UNION") != kind:
                raise SqlError(f'recursive query "{name}" column "{column}" has type {kind} at first but {other} later')
        body.meta["columns"] = columns
        return columns

    @staticmethod
    def rename_columns(columns: BoundColumns, names: list[str], relation: str) -> BoundColumns:
        if len(names) > len(columns):
            raise SqlError(f'"{relation}" has {len(columns)} columns available but {len(names)} columns specified')
        return tuple((names[at] if at < len(names) else name, kind) for at, (name, kind) in enumerate(columns))

    # -- SELECT -------------------------------------------------------------------------------------------

    def _select(self, node: exp.Select, scope: NameScope, wants: Sequence[str] | None) -> BoundColumns:
        if node.args.get("windows"):
            raise unsupported("WINDOW", "Write OVER (…) each time")
        only(
            node,
            *("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset"),
            *("distinct", "with_"),
        )
        self.with_queries(node, scope)
        self.relations.bind_from(node, scope)
        for item in node.expressions:
            if isinstance(call := item.unalias(), exp.Anonymous) and fold_name(call.this) in functions.sets:
                self.relations.lift(node, call, scope)
        expressions = self.expressions
        if node.args.get("where") is not None:
            expressions.boolean(node.args["where"].this, scope, "WHERE")
        scope.aggregates = scope.windows = True
        if not node.expressions:
            raise SqlUnsupportedError("a SELECT without columns is not supported")
        columns = self.bind_list(node, scope, wants)
        if node.args.get("group") is not None:
            only(node.args["group"], "expressions")
            for key in [*node.args["group"].expressions]:
                self._group_key(key, node, scope)
        if node.args.get("having") is not None:
            scope.windows = False
            expressions.boolean(node.args["having"].this, scope, "HAVING")
            scope.windows = True
        distinct, order = node.args.get("distinct"), node.args.get("order")
        if distinct is not None:
            only(distinct, "on", "expressions")
            on = distinct.args.get("on")
            for key in on.expressions if isinstance(on, exp.Tuple) else [on] if on is not None else []:
                self._order_key(key, scope, columns, "DISTINCT ON")
        for key in order.expressions if order is not None else []:
            only(key, "this", "desc", "nulls_first")
            self._order_key(key.this, scope, columns, "ORDER BY")
        check_distinct(node)
        scope.aggregates = scope.windows = False
        self._limits(node, scope)
        check_grouping(node, scope)
        return columns

    def bind_list(self, node: exp.Expression, scope: NameScope, wants: Sequence[str] | None = None) -> BoundColumns:
        """Bind the list of SELECT or RETURNING: expand stars, name each expression."""
        items: list[exp.Expression] = []
        for item in node.expressions:
            items += self.relations.expand_star(item, scope)
            if len(items) > MAX_RESULTS:
                raise SqlError(f"an answer may have {MAX_RESULTS:,} columns, this one has more")
        node.set("expressions", items)
        done = []
        for at, item in enumerate(items):
            inner = item.this if isinstance(item, exp.Alias) else item
            if isinstance(item, exp.Aliases):
                raise SqlUnsupportedError(f"several aliases are not supported: {shown(item)}")
            if "type" not in inner.meta:
                self.expressions.bind(inner, scope)
            inner = item.this if isinstance(item, exp.Alias) else node.expressions[at]  # a merged column is replaced
            if type_of(inner) == UNKNOWN and wants is not None and at < len(wants):
                self.expressions.adapt(inner, wants[at])
            self.expressions.use_own_type(inner)
            if type_of(inner) in ("record", "hybrid"):
                raise SqlUnsupportedError(f"rows as values are not supported: {shown(inner)}")
            name = fold_name(item.args["alias"]) if isinstance(item, exp.Alias) else output_name(inner)
            alias = exp.Alias(this=inner.copy() if item is inner else inner, alias=identifier(name))
            alias.this.meta.update(inner.meta)
            done.append(alias)
        node.set("expressions", done)
        return tuple((item.alias, type_of(item.this)) for item in done)

    def _group_key(self, key: exp.Expression, node: exp.Select, scope: NameScope) -> None:
        if isinstance(key, _GROUPINGS):
            raise unsupported(f"GROUP BY {shown(key)}")
        at = self._place(key, len(node.expressions), "GROUP BY")
        if at is None and isinstance(key, exp.Column) and not key.args.get("table"):
            name = fold_name(key.this)
            if not any(source.type_of(name) for source in scope.sources.values()) and name not in scope.merged:
                named = [i for i, item in enumerate(node.expressions) if item.alias == name]
                at = named[0] if named else None
        if at is not None:
            key.meta["output"] = at
            key.meta["type"] = type_of(node.expressions[at].this)
            return
        self.expressions.bind_typed(key, scope.inside(aggregates=False))

    @staticmethod
    def _place(key: exp.Expression, count: int, clause: str) -> int | None:
        """Resolve `ORDER BY 2` to the second column."""
        if not isinstance(key, exp.Literal):
            return None
        if key.is_string or not key.this.isdecimal():
            raise SqlError(f"non-integer constant in {clause}")
        if not 1 <= int(key.this) <= count:
            raise SqlError(f"{clause} position {key.this} is not in select list")
        return int(key.this) - 1

    def _order_key(self, key: exp.Expression, scope: NameScope, columns: BoundColumns, clause: str) -> None:
        at = self._place(key, len(columns), clause)
        if at is None and isinstance(key, exp.Column) and not key.args.get("table"):
            named = [i for i, (name, _) in enumerate(columns) if name == fold_name(key.this)]
            select = key.find_ancestor(exp.Select) if len(named) > 1 else None
            if len(named) > 1 and (
                select is None or len({select.expressions[at].this.sql(dialect=Dialect) for at in named}) > 1
            ):
                raise SqlError(f'{clause} "{fold_name(key.this)}" is ambiguous')
            at = named[0] if named else None
            if at is not None:
                key.set("this", identifier(columns[at][0]))
        if at is not None:
            key.meta["output"] = at
            key.meta["type"] = columns[at][1]
            return
        self.expressions.bind_typed(key, scope)

    def _limits(self, node: exp.Expression, scope: NameScope) -> None:
        outside = NameScope(outer=scope.outer)
        limit = node.args.get("limit")
        if isinstance(limit, exp.Fetch):
            raise unsupported("FETCH", "Use LIMIT")
        if limit is not None:
            only(limit, "expression")
            self.expressions.number(limit.expression, outside, "LIMIT")
        if node.args.get("offset") is not None:
            only(node.args["offset"], "expression")
            self.expressions.number(node.args["offset"].expression, outside, "OFFSET")

    def _tail(self, node: exp.Expression, scope: NameScope, columns: BoundColumns) -> None:
        """Bind ORDER BY, LIMIT and OFFSET of a query that is not a plain SELECT; they see only its columns."""
        order = node.args.get("order")
        for key in order.expressions if order is not None else []:
            only(key, "this", "desc", "nulls_first")
            self._order_key(key.this, NameScope(outer=None), columns, "ORDER BY")
            if "output" not in key.this.meta:
                raise SqlError(f"ORDER BY of a UNION takes its columns only, not {shown(key.this)}")
        self._limits(node, scope)

    # -- UNION, VALUES --------------------------------------------------------------------------------------

    def _set_operation(self, node: exp.Expression, scope: NameScope, wants: Sequence[str] | None) -> BoundColumns:
        left = self.query(node.this, scope, wants)
        right = self.query(node.expression, scope, wants or [kind for _, kind in left])
        word = type(node).__name__.upper()
        if not (node.args.get("distinct") or isinstance(node, exp.Union)):
            raise unsupported(f"{word} ALL")
        if len(left) != len(right):
            raise SqlError(f"each {word} query must have the same number of columns")
        return tuple((name, common([kind, other], word)) for (name, kind), (_, other) in zip(left, right, strict=True))

    def _values(self, node: exp.Expression, scope: NameScope, wants: Sequence[str] | None) -> BoundColumns:
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
        if len({len(row) for row in rows}) != 1:
            raise SqlError("VALUES lists must all be the same length")
        for row in rows:
            for item in row:
                self.expressions.bind(item, scope)
        columns = []
        for at, items in enumerate(zip(*rows, strict=True)):
            if all(type_of(item) == UNKNOWN for item in items):
                for item in items:
                    if wants is not None and at < len(wants):
                        self.expressions.adapt(item, wants[at])
                    self.expressions.use_own_type(item)
            kind = common([type_of(item) for item in items], "VALUES")
            for item in items:
                self.expressions.adapt(item, kind)
            columns.append((f"column{at + 1}", kind))
        return tuple(columns)


# -- names of columns -------------------------------------------------------------------------------------------

_NAMED: dict[type[exp.Expr], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.Extract: "extract",
    exp.AtTimeZone: "timezone",
    exp.Exists: "exists",
    exp.Array: "array",
    exp.Case: "case",
}


def output_name(node: exp.Expr) -> str:
    """Name a result column that has no alias, as PostgreSQL names most of them."""
    if isinstance(node, (exp.Alias, exp.Column)):
        return str(node.alias_or_name)
    if isinstance(node, exp.Anonymous):
        return str(node.meta.get("name") or node.name.lower())
    if isinstance(node, (exp.Paren, exp.Window, exp.Filter, exp.Bracket, exp.Cast)):
        return output_name(node.this)
    if isinstance(node, exp.Subquery):
        select = first_select(node)
        return output_name(select.expressions[0]) if select is not None else "column1"
    return _NAMED.get(type(node), "?column?")
