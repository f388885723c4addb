"""Apply ALTER TABLE to the catalogue, checked before any engine sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError, TableExistsError
from ..catalog import Check, Table
from .define import MAX_COLUMNS, Builder
from .parse import parse
from .scope import fold_name, missing_column, only, shown, unsupported


def apply_alter(table: Table, tree: exp.Alter, catalogue: Mapping[str, Table], workspace: str) -> Table:
    """Return the table after an ALTER TABLE."""
    only(tree, "this", "kind", "exists", "actions")
    actions = tree.args["actions"]
    dropped = {
        fold_name(node.this) for action in actions if isinstance(action, exp.Drop) for node in action.args["tables"]
    }
    if any(fold_name(action.this) in dropped for action in actions if isinstance(action, exp.ColumnDef)):
        raise unsupported("ALTER TABLE that drops and adds one column", "Use two statements")
    for action in actions:
        table = _apply_action(table, action, catalogue, workspace)
    return table


def _apply_action(table: Table, action: exp.Expression, catalogue: Mapping[str, Table], workspace: str) -> Table:
    if isinstance(action, exp.ColumnDef):
        return _add_column(table, action, catalogue, workspace)
    if isinstance(action, exp.Drop):
        return _drop_columns(table, action, catalogue)
    raise unsupported(f"ALTER TABLE … {shown(action)}", "ADD COLUMN, UPDATE and DROP COLUMN change a column")


def _add_column(table: Table, action: exp.ColumnDef, catalogue: Mapping[str, Table], workspace: str) -> Table:
    name = fold_name(action.this)
    if table.column(name) is not None:
        if action.args.get("exists"):
            return table
        raise TableExistsError(f'column "{name}" of relation "{table.name}" already exists')
    builder = Builder(table.name, catalogue, workspace)
    column = builder.column(action)
    if builder.key:
        raise SqlUnsupportedError("ADD COLUMN … PRIMARY KEY is not supported")
    if len(table.columns) >= MAX_COLUMNS:
        raise SqlError(f"a table may have {MAX_COLUMNS} columns")
    return builder.add_constraints(replace(table, columns=(*table.columns, column)))


def _drop_columns(table: Table, action: exp.Drop, catalogue: Mapping[str, Table]) -> Table:
    if action.args.get("kind") != "COLUMN":
        raise SqlUnsupportedError(f"ALTER TABLE … {shown(action)} is not supported")
    for node in action.args["tables"]:
        name = fold_name(node.this)
        if table.column(name) is None:
            if action.args.get("exists"):
                continue
            raise missing_column(name, table)
        if len(table.columns) == 1:
            raise SqlUnsupportedError(f'table "{table.name}" must keep at least one column')
        for other in catalogue.values():
            for reference in other.references:
                if reference.table == table.name and name in reference.targets:
                    raise SqlError(f'cannot drop column "{name}": constraint "{reference.name}" depends on it')
        checks = tuple(check for check in table.checks if name not in _columns_of(check))
        table = replace(
            table,
            columns=tuple(column for column in table.columns if column.name != name),
            primary_key=() if name in table.primary_key else table.primary_key,
            indexes=tuple(index for index in table.indexes if name not in index.columns),
            checks=checks,
            references=tuple(reference for reference in table.references if name not in reference.columns),
        )
    return table


def _columns_of(check: Check) -> set[str]:
    return {fold_name(column.this) for column in parse(f"SELECT {check.condition}").tree.find_all(exp.Column)}
