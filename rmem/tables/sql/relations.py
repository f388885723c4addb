"""Bind FROM: tables, WITH queries, subqueries, functions and joins; and expand stars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from ..catalog import Table
from . import functions
from .expression_types import common, type_of
from .parse import parse
from .scope import (
    NameScope,
    Source,
    bound_column,
    fold_name,
    identifier,
    known_table,
    only,
    shown,
    table_name,
    table_source,
    unsupported,
)
from .system import SYSTEM, system_relation

if TYPE_CHECKING:
    from .bind import Binder


MAX_VIEWS = 100


class Relations:
    """The part of a Binder that binds FROM."""

    def __init__(self, binder: Binder) -> None:
        self.binder = binder
        self._views = 0

    def bind_from(self, node: exp.Expression, scope: NameScope) -> None:
        clause = node.args.get("from_")
        if clause is not None:
            only(clause, "this")
            self.relation(clause.this, scope)
        for join in node.args.get("joins") or []:
            self.join(join, scope)

    def relation(self, node: exp.Expression, scope: NameScope) -> Source:
        """Bind one relation and add it to the scope."""
        if isinstance(node, exp.Lateral):
            raise unsupported(
                "LATERAL",
                "A function in FROM sees what stands before it; for a subquery, use a window function, or a subquery "
                "in the list of the SELECT",
            )
        if isinstance(node, exp.Table):
            source = self._table(node, scope)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            raise unsupported("a join in brackets", "Write the joins one after another, or as WITH queries")
        elif isinstance(node, exp.Values | exp.Subquery):
            source = self._subquery_source(node, scope)
        else:
            raise SqlUnsupportedError(f"{type(node).__name__} in FROM is not supported: {shown(node)}")
        for join in node.args.get("joins") or []:
            self.join(join, scope)
        return source

    def _table(self, node: exp.Table, scope: NameScope) -> Source:
        if isinstance(node.this, exp.Anonymous):
            return self._function(node, scope)
        only(node, "this", "db", "catalog", "alias", "joins", "only")
        name = fold_name(node.this)
        if not node.args.get("db") and (query := scope.query(name)) is not None:
            node.meta["query"], columns = query
            return self._add_source(node, scope, name, columns)
        schema = fold_name(node.args["db"]) if node.args.get("db") else ""
        if (schema, name) in SYSTEM or (not schema and ("pg_catalog", name) in SYSTEM):
            replaced = system_relation(name, node, self.binder.catalogue, self.binder.workspace)
            return self._subquery_source(replaced, scope)
        table = known_table(table_name(node, self.binder.workspace), self.binder.catalogue, self.binder.workspace)
        if table.view is not None:
            return self._view(node, table, scope)
        node.set("this", identifier(table.name))
        node.set("db", None)
        node.set("only", None)
        node.meta["table"] = table
        return self._add_source(node, scope, table.name, table_source("", table).columns)

    def _view(self, node: exp.Table, view: Table, scope: NameScope) -> Source:
        """Replace a view by its query, with the columns it had when it was created."""
        if view.name in self.binder.views:
            raise SqlError(f'view "{view.name}" would read itself')
        self._views += 1
        if self._views > MAX_VIEWS:
            raise SqlError(f"a statement may read {MAX_VIEWS} views, counting those that views read")
        names = [identifier(column.name) for column in view.columns]
        alias = exp.TableAlias(this=identifier(view.name), columns=names)
        query = exp.Subquery(this=parse(view.view or "").tree, alias=alias)
        items = [exp.Column(this=name.copy()) for name in names]
        replaced = exp.Subquery(
            this=exp.Select(expressions=items, from_=exp.From(this=query)),
            alias=node.args.get("alias") or exp.TableAlias(this=identifier(view.name)),
            joins=node.args.get("joins"),
        )
        replaced.meta["view"] = view.name
        node.replace(replaced)
        before = self.binder.views
        self.binder.views = (*before, view.name)
        source = self._subquery_source(replaced, scope, NameScope())
        self.binder.views = before
        return source

    def _function(self, node: exp.Table, scope: NameScope) -> Source:
        if node.args.get("ordinality"):
            raise unsupported("WITH ORDINALITY", "Number the elements with generate_series(1, cardinality(…))")
        only(node, "this", "alias", "joins")
        call = node.this
        name = fold_name(call.this)
        if name not in functions.sets:
            if name in functions.scalars:
                raise SqlUnsupportedError(f"{name}() in FROM is not supported")
            raise functions.unknown_function(name)
        inside = NameScope(outer=scope)
        gives = self.binder.expressions.call(call, functions.sets, name, call.expressions, inside)
        call.meta["type"] = gives
        named = functions.SET_COLUMNS.get(name)
        alias = node.args.get("alias")
        single = fold_name(alias.this) if alias is not None and alias.this is not None else name
        return self._add_source(node, scope, name, named or ((single, gives),))

    def _subquery_source(self, node: exp.Expression, scope: NameScope, around: NameScope | None = None) -> Source:
        """Bind a subquery, which sees nothing but `around`, if given."""
        around = around or NameScope(outer=scope.outer, queries=scope.queries)
        if isinstance(node, exp.Values):
            columns = self.binder.query(node, around)
        else:
            only(node, "this", "alias", "joins", "with_", "order", "limit", "offset")
            if node.args.get("joins"):
                inner = exp.Subquery(this=node.this, alias=node.args.get("alias"))
                columns = self.binder.query(inner, around)
                node.meta["columns"] = columns
            else:
                columns = self.binder.query(node, around)
        return self._add_source(node, scope, "subquery", columns)

    def _add_source(
        self, node: exp.Expression, scope: NameScope, name: str, columns: tuple[tuple[str, str], ...]
    ) -> Source:
        alias = node.args.get("alias")
        if alias is not None:
            only(alias, "this", "columns")
        seen = fold_name(alias.this) if alias is not None and alias.this is not None else name
        names = [fold_name(column) for column in (alias.args.get("columns") or [] if alias is not None else [])]
        under = tuple(column for column, _ in columns)
        columns = self.binder.rename_columns(columns, names, seen)
        if seen in scope.sources:
            raise SqlError(f'table name "{seen}" specified more than once')
        unique = self.binder.alias(seen)
        source = Source(unique, columns, node.meta.get("table"), under)
        scope.sources[seen] = source
        keep = names or not isinstance(node, exp.Table) or isinstance(node.this, exp.Anonymous)
        named = [identifier(column) for column, _ in columns] if keep else None
        node.set("alias", exp.TableAlias(this=identifier(unique), columns=named))
        node.meta["source"] = source
        return source

    # -- joins --------------------------------------------------------------------------------------------

    def join(self, join: exp.Join, scope: NameScope) -> None:
        only(join, "this", "side", "kind", "method", "on", "using")
        method, side, kind = ((join.args.get(part) or "").upper() for part in ("method", "side", "kind"))
        if method or side not in ("", "LEFT", "RIGHT", "FULL") or kind not in ("", "INNER", "OUTER", "CROSS"):
            raise unsupported(" ".join(filter(None, (method, side, kind, "JOIN"))), "Write ON or USING")
        before = dict(scope.sources)
        self.relation(join.this, scope)
        added = {seen: source for seen, source in scope.sources.items() if seen not in before}
        shared = [fold_name(column) for column in join.args.get("using") or []]
        if shared:
            self._merge(join, scope, before, added, shared, side)
        if join.args.get("on") is not None:
            self.binder.expressions.boolean(join.args["on"], scope, "JOIN/ON")
        elif side:
            raise SqlError(f"{side} JOIN needs ON or USING")

    def _merge(
        self,
        join: exp.Join,
        scope: NameScope,
        before: dict[str, Source],
        added: dict[str, Source],
        shared: list[str],
        side: str,
    ) -> None:
        """Bind USING (a): merge the columns of both sides and write out the condition."""
        conditions = []
        for name in shared:
            left = self._using_column(name, before, scope.merged)
            right = self._using_column(name, added, {})
            kind = common([type_of(left), type_of(right)], "JOIN/USING")
            conditions.append(exp.EQ(this=left.copy(), expression=right.copy()))
            if side == "FULL":
                merged: exp.Expression = exp.Anonymous(this="coalesce", expressions=[left.copy(), right.copy()])
                call = functions.resolve(functions.scalars, "coalesce", [type_of(left), type_of(right)])
                merged.meta.update(type=kind, call=call, name=name)
            else:
                merged = (right if side == "RIGHT" else left).copy()
            scope.merged[name] = merged
        join.set("using", None)
        join.set("on", exp.and_(*conditions, copy=False))

    @staticmethod
    def _using_column(name: str, sources: dict[str, Source], merged: dict[str, exp.Expression]) -> exp.Expression:
        if name in merged:
            return merged[name]
        found = [(source, kind) for source in sources.values() if (kind := source.type_of(name)) is not None]
        if not found:
            raise SqlError(f'column "{name}" specified in USING clause does not exist on both sides')
        if len(found) > 1:
            raise SqlError(f'common column name "{name}" appears more than once on one side of a join')
        source, kind = found[0]
        return bound_column(source, name, kind)

    # -- stars --------------------------------------------------------------------------------------------

    def expand_star(self, item: exp.Expression, scope: NameScope) -> list[exp.Expression]:
        """Return the columns of `*` and `t.*`."""
        if isinstance(item, exp.Star):
            only(item)
            if not scope.sources:
                raise SqlError("SELECT * with no tables specified is not valid")
            found = [self._with_alias(node.copy(), name) for name, node in scope.merged.items()]
            for source in scope.sources.values():
                found += [column for column in self._columns(source) if column.alias not in scope.merged]
            return found
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            only(item.this)
            seen = fold_name(item.args["table"])
            if seen not in scope.sources:
                raise SqlError(f'missing FROM-clause entry for table "{seen}"')
            return self._columns(scope.sources[seen])
        return [item]

    @staticmethod
    def _with_alias(node: exp.Expression, name: str) -> exp.Expression:
        return exp.Alias(this=node, alias=identifier(name))

    def _columns(self, source: Source) -> list[exp.Expression]:
        return [self._with_alias(bound_column(source, name, kind), name) for name, kind in source.columns]

    def lift(self, node: exp.Select, call: exp.Anonymous, scope: NameScope) -> None:
        """Move a set function from the SELECT list into FROM."""
        name = fold_name(call.this)
        if any(item.meta.get("lifted") for item in node.find_all(exp.Column)) or (
            name in functions.SET_COLUMNS and len(functions.SET_COLUMNS[name]) > 1
        ):
            raise SqlUnsupportedError(f"{name}() is supported once in the list of a SELECT: {shown(call)}")
        table = exp.Table(
            this=call.copy(), alias=exp.TableAlias(this=identifier(f"{name}_rows"), columns=[identifier(name)])
        )
        item = call.parent
        column = exp.Column(this=identifier(name), table=identifier(f"{name}_rows"))
        column.meta["lifted"] = True
        if isinstance(item, exp.Alias):
            call.replace(column)
        else:
            call.replace(exp.Alias(this=column, alias=identifier(name)))
        if node.args.get("from_") is None:
            node.set("from_", exp.From(this=table))
        else:
            node.append("joins", exp.Join(this=table, kind="CROSS"))
        self.relation(table, scope)
