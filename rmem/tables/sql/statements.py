"""Bind INSERT, UPDATE and DELETE. What is found is in the statement's `meta`: `table`, `targets` (the columns that
are written), `source` (the target as RETURNING and WHERE see it) and `columns` (what RETURNING gives)."""

from __future__ import annotations

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from ..catalog import Table
from .bind import Binder, BoundColumns
from .expression_types import NAMES, UNKNOWN, assignable, long_name
from .scope import (
    NameScope,
    Source,
    base_table,
    fold_name,
    identifier,
    missing_column,
    only,
    shown,
    table_name,
    table_source,
    unsupported,
)


def bind_statement(binder: Binder, tree: exp.Expression) -> BoundColumns:
    """Bind a statement that reads or writes rows; return its result columns."""
    if isinstance(tree, exp.Query):
        return binder.query(tree, None)
    if isinstance(tree, exp.Insert):
        return _insert(binder, tree)
    if isinstance(tree, exp.Update | exp.Delete):
        return _change(binder, tree)
    raise SqlUnsupportedError(f"{type(tree).__name__.upper()} statements are not supported")


def _target(binder: Binder, node: exp.Expression, scope: NameScope) -> tuple[Table, Source]:
    if not isinstance(node, exp.Table) or isinstance(node.this, exp.Anonymous):
        raise SqlUnsupportedError(f"{shown(node)} cannot be written to")
    only(node, "this", "db", "catalog", "alias", "only")
    table = base_table(table_name(node, binder.workspace), binder.catalogue, binder.workspace)
    alias = node.args.get("alias")
    seen = fold_name(alias.this) if alias is not None else table.name
    source = scope.sources[seen] = table_source(binder.alias(seen), table)
    node.set("this", identifier(table.name))
    node.set("db", None)
    node.set("only", None)
    node.set("alias", exp.TableAlias(this=identifier(source.alias)))
    node.meta.update(table=table, source=source)
    return table, source


def _bind_value(binder: Binder, node: exp.Expression, scope: NameScope, table: Table, column: str) -> None:
    found = table.column(column)
    if found is None:
        raise missing_column(column, table)
    kind = NAMES[found.type.kind]
    if isinstance(node, exp.Var) and node.name.upper() == "DEFAULT":
        node.meta.update(default=column, type=kind)
        return
    try:
        have = binder.expressions.bind(node, scope, kind)
    except SqlError as error:
        if "column" in str(error) or isinstance(error, SqlUnsupportedError):
            raise
        raise SqlError(f'column "{column}": {error}') from None
    check_assignable(have, kind, column)


def check_assignable(have: str, kind: str, column: str) -> None:
    if have != UNKNOWN and not assignable(have, kind):
        raise SqlError(f'column "{column}" is of type {long_name(kind)} but expression is of type {long_name(have)}')


def _bind_returning(binder: Binder, tree: exp.Expression, scope: NameScope) -> BoundColumns:
    clause = tree.args.get("returning")
    if clause is None:
        return ()
    only(clause, "expressions")
    columns = binder.bind_list(clause, scope)
    tree.meta["columns"] = columns
    target = tree.meta["source"].alias
    inner = {source.alias for name, source in scope.sources.items() if source.alias != target}
    for column in clause.find_all(exp.Column):
        if column.table in inner:
            raise unsupported(f"RETURNING {column.name} of a joined table")
    return columns


def _insert(binder: Binder, tree: exp.Insert) -> BoundColumns:
    only(tree, "this", "expression", "conflict", "returning", "default", "with_")
    outer = NameScope()
    binder.with_queries(tree, outer)
    schema = tree.this
    node = schema.this if isinstance(schema, exp.Schema) else schema
    scope = NameScope(outer=outer)
    table, source = _target(binder, node, scope)
    named = [fold_name(column) for column in schema.expressions] if isinstance(schema, exp.Schema) else []
    for name in named:
        if table.column(name) is None:
            raise missing_column(name, table)
        if named.count(name) > 1:
            raise SqlError(f'column "{name}" specified more than once')
    if isinstance(schema, exp.Schema):
        schema.set("expressions", [identifier(name) for name in named])
    targets = named or [column.name for column in table.columns]
    body = tree.expression
    if tree.args.get("default"):
        raise unsupported("DEFAULT VALUES", "Write VALUES (DEFAULT)")
    if isinstance(body, exp.Values) and not any(body.args.get(key) for key in ("order", "limit", "offset", "with_")):
        targets = _insert_rows(binder, body, outer, table, targets, bool(named))
    else:
        targets = _insert_query(binder, body, outer, table, targets, bool(named))
    tree.meta.update(table=table, targets=targets, source=source)
    _conflict(binder, tree, table, scope)
    return _bind_returning(binder, tree, scope)


def _insert_rows(
    binder: Binder, body: exp.Values, outer: NameScope, table: Table, targets: list[str], named: bool
) -> list[str]:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in body.expressions]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise SqlError("VALUES lists must all be the same length")
    targets = _fit_targets(targets, width, named)
    scope = NameScope(outer=outer)
    for row in rows:
        for item, column in zip(row, targets, strict=True):
            _bind_value(binder, item, scope, table, column)
    return targets


def _fit_targets(targets: list[str], width: int, named: bool) -> list[str]:
    if width > len(targets):
        raise SqlError(f"INSERT has more expressions than target columns: {width} for {len(targets)}")
    if named and width < len(targets):
        raise SqlError(f"INSERT has more target columns than expressions: {len(targets)} for {width}")
    return targets[:width]


def _insert_query(
    binder: Binder, body: exp.Expr, outer: NameScope, table: Table, targets: list[str], named: bool
) -> list[str]:
    kinds = [kind for name in targets if (kind := table_source("", table).type_of(name))]
    columns = binder.query(body, outer, kinds)
    targets = _fit_targets(targets, len(columns), named)
    for (_, have), kind, name in zip(columns, kinds, targets, strict=False):
        check_assignable(have, kind, name)
    return targets


def _conflict(binder: Binder, tree: exp.Insert, table: Table, scope: NameScope) -> None:
    clause = tree.args.get("conflict")
    if clause is None:
        return
    only(clause, "action", "conflict_keys", "expressions", "where", "constraint")
    action = clause.args["action"].name.upper()
    if action not in ("DO NOTHING", "DO UPDATE"):
        raise SqlUnsupportedError(f"ON CONFLICT {action} is not supported")
    keys = _conflict_keys(clause, table)
    if action == "DO UPDATE" and not keys:
        raise SqlError("ON CONFLICT DO UPDATE requires inference specification or constraint name")
    clause.meta["keys"] = keys
    if action == "DO NOTHING":
        return
    excluded = table_source(binder.alias("excluded"), table)
    inside = NameScope(outer=scope.outer, sources={**scope.sources, "excluded": excluded})
    clause.meta["excluded"] = excluded
    # A bare column of the right side means the row that is there, so "excluded" is only found by its name.
    plain = NameScope(outer=inside, sources=dict(scope.sources))
    clause.set("expressions", _assignments(binder, clause.expressions, plain, table))
    if clause.args.get("where") is not None:
        binder.expressions.boolean(clause.args["where"].this, plain, "WHERE")


def _conflict_keys(clause: exp.OnConflict, table: Table) -> list[str]:
    if clause.args.get("constraint") is not None:
        raise unsupported("ON CONFLICT ON CONSTRAINT", "Name the columns: ON CONFLICT (…)")
    keys = []
    for key in clause.args.get("conflict_keys") or []:
        column = key.this if isinstance(key, exp.Ordered) else key
        if not isinstance(column, exp.Column) or column.args.get("table"):
            raise SqlUnsupportedError(f"ON CONFLICT takes columns only, not {shown(key)}")
        name = fold_name(column.this)
        if table.column(name) is None:
            raise missing_column(name, table)
        keys.append(name)
    if keys:
        known = [table.primary_key, *(index.columns for index in table.indexes if index.unique)]
        if not any(set(keys) == set(columns) for columns in known):
            raise SqlError("there is no unique or exclusion constraint matching the ON CONFLICT specification")
        clause.set("conflict_keys", [identifier(name) for name in keys])
    return keys


def _assignments(binder: Binder, items: list[exp.Expression], scope: NameScope, table: Table) -> list[exp.Expression]:
    """Bind SET a = 1, b = 2: one assignment per column."""
    done: list[exp.Expression] = []
    seen: set[str] = set()
    for item in items:
        if not isinstance(item, exp.EQ):
            raise SqlUnsupportedError(f"SET takes column = value, not {shown(item)}")
        left, right = item.this, item.expression
        if isinstance(left, (exp.Tuple, exp.Paren)):
            raise unsupported("SET (…) = (…)", "Write SET a = 1, b = 2")
        if not isinstance(left, exp.Column) or left.args.get("table"):
            raise SqlUnsupportedError(f"SET takes columns only, not {shown(left)}")
        name = fold_name(left.this)
        if table.column(name) is None:
            raise missing_column(name, table)
        if name in seen:
            raise SqlError(f'multiple assignments to same column "{name}"')
        seen.add(name)
        if isinstance(right, exp.Column) and right.sql().upper() == "DEFAULT":
            right = exp.Var(this="DEFAULT")
        pair = exp.EQ(this=exp.Column(this=identifier(name)), expression=right.copy())
        _bind_value(binder, pair.expression, scope, table, name)
        pair.meta["column"] = name
        done.append(pair)
    return done


def _change(binder: Binder, tree: exp.Update | exp.Delete) -> BoundColumns:
    only(tree, "this", "expressions", "from_", "using", "where", "returning", "with_")
    outer = NameScope()
    binder.with_queries(tree, outer)
    scope = NameScope(outer=outer)
    table, source = _target(binder, tree.this, scope)
    if tree.args.get("from_") is not None:
        binder.relations.bind_from(tree, scope)
    for relation in tree.args.get("using") or []:
        binder.relations.relation(relation, scope)
    tree.meta.update(table=table, source=source)
    if isinstance(tree, exp.Update):
        tree.set("expressions", _assignments(binder, tree.expressions, scope, table))
    if tree.args.get("where") is not None:
        binder.expressions.boolean(tree.args["where"].this, scope, "WHERE")
    return _bind_returning(binder, tree, scope)
