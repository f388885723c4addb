"""Apply ALTER TABLE to the catalogue, checked before any engine sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError, TableExistsError
from ..catalog import Check, Table
from .define import MAX_COLUMNS, Builder, default_text, text
from .parse import parse
from .scope import check_name, fold_name, missing_column, only, shown, table_name, unsupported


def apply_alter(table: Table, tree: exp.Alter, catalogue: Mapping[str, Table], workspace: str) -> Table:
    """Return the table after an ALTER TABLE."""
    only(tree, "this", "kind", "exists", "actions")
    actions = tree.args["actions"]
    dropped = {
        fold_name(node.this) for action in actions if isinstance(action, exp.Drop) for node in action.args["tables"]
    }
    if any(fold_name(action.this) in dropped for action in actions if isinstance(action, exp.ColumnDef)):
        raise unsupported("ALTER TABLE that drops and adds one column", "Use two statements")
    if len(actions) > 1 and any(isinstance(action, exp.RenameColumn | exp.AlterRename) for action in actions):
        raise SqlError("ALTER TABLE … RENAME takes one action")
    for action in actions:
        table = _apply_action(table, action, catalogue, workspace)
    return table


def renamed_columns(tree: exp.Expression) -> dict[str, str]:
    """Return new column names by old ones."""
    return {
        fold_name(action.this.this): fold_name(action.args["to"].this)
        for action in tree.args["actions"]
        if isinstance(action, exp.RenameColumn)
    }


def _apply_action(table: Table, action: exp.Expression, catalogue: Mapping[str, Table], workspace: str) -> Table:
    if isinstance(action, exp.ColumnDef):
        return _add_column(table, action, catalogue, workspace)
    if isinstance(action, exp.Drop):
        return _drop_columns(table, action, catalogue)
    if isinstance(action, exp.RenameColumn):
        return _rename_column(table, fold_name(action.this.this), fold_name(action.args["to"].this))
    if isinstance(action, exp.AlterRename):
        new = check_name(table_name(action.this, workspace), "table")
        if new in catalogue:
            raise TableExistsError(f'relation "{new}" already exists')
        indexes = tuple(replace(index, table=new) for index in table.indexes)
        own = tuple(replace(ref, table=new) if ref.table == table.name else ref for ref in table.references)
        return replace(table, name=new, indexes=indexes, references=own)
    if isinstance(action, exp.AlterColumn):
        return _change_column(table, action)
    raise SqlUnsupportedError(f"ALTER TABLE … {shown(action)} is not supported")


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


def _rename_column(table: Table, old: str, new: str) -> Table:
    if table.column(old) is None:
        raise missing_column(old, table)
    check_name(new, "column")
    if table.column(new) is not None:
        raise TableExistsError(f'column "{new}" of relation "{table.name}" already exists')

    def names(columns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if name == old else name for name in columns)

    checks = []
    for check in table.checks:
        tree = parse(f"SELECT {check.condition}").tree
        for column in tree.find_all(exp.Column):
            if fold_name(column.this) == old:
                column.set("this", exp.Identifier(this=new, quoted=True))
        checks.append(replace(check, condition=text(tree.expressions[0])))
    return replace(
        table,
        columns=tuple(replace(column, name=new) if column.name == old else column for column in table.columns),
        primary_key=names(table.primary_key),
        indexes=tuple(replace(index, columns=names(index.columns)) for index in table.indexes),
        checks=tuple(checks),
        references=tuple(
            replace(
                reference,
                columns=names(reference.columns),
                targets=names(reference.targets) if reference.table == table.name else reference.targets,
            )
            for reference in table.references
        ),
    )


def _change_column(table: Table, action: exp.AlterColumn) -> Table:
    name = fold_name(action.this)
    column = table.column(name)
    if column is None:
        raise missing_column(name, table)
    only(action, "this", "allow_null", "drop", "default")
    if action.args.get("default") is not None:
        if column.serial:
            raise SqlUnsupportedError(f'column "{name}" is serial; its default cannot be changed')
        column = replace(column, default=default_text(action.args["default"], column))
    elif action.args.get("allow_null") is not None:
        allowed = bool(action.args["allow_null"])
        if allowed and name in table.primary_key:
            raise SqlError(f'column "{name}" is in a primary key')
        column = replace(column, nullable=allowed)
    elif action.args.get("drop"):
        if column.serial:
            raise SqlUnsupportedError(f'column "{name}" is serial; its default cannot be dropped')
        column = replace(column, default=None)
    else:
        raise SqlUnsupportedError(f"ALTER TABLE … {shown(action)} is not supported")
    return replace(table, columns=tuple(column if item.name == name else item for item in table.columns))
