"""Apply CREATE VIEW to the catalogue, and find views that depend on a table.

A view is stored as the text of its SELECT; `relations` puts it in place of the name, so engines see only tables."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from ...errors import ConstraintError, NoSuchTableError, SqlError, SqlUnsupportedError, TableExistsError
from ..catalog import Column, Table
from .bind import Binder, BoundColumns
from .dialect import Dialect
from .expression_types import result_type
from .parse import parse
from .scope import check_name, fold_name, only, table_name


def view_of(tree: exp.Create, catalogue: Mapping[str, Table], workspace: str) -> Table:
    only(tree, "this", "kind", "expression", "replace")
    schema = tree.this if isinstance(tree.this, exp.Schema) else None
    name = check_name(table_name(schema.this if schema else tree.this, workspace), "view")
    known = catalogue.get(name)
    if known is not None and (known.view is None or not tree.args.get("replace")):
        raise TableExistsError(f'relation "{name}" already exists')
    query = tree.expression
    if not isinstance(query, exp.Query | exp.Values):
        raise SqlError("CREATE VIEW needs a query: CREATE VIEW v AS SELECT …")
    view = Table(name, (), view=query.sql(dialect=Dialect))
    columns = _bound({**catalogue, name: view}, view, workspace)[0]
    names = [fold_name(column) for column in schema.expressions] if schema else []
    return Table(name, columns_of(Binder.rename_columns(columns, names, name)), view=view.view)


def columns_of(columns: BoundColumns) -> tuple[Column, ...]:
    """Return the columns of a table for the results of a query."""
    found: list[Column] = []
    for name, kind in columns:
        if any(name == other.name for other in found):
            raise SqlError(f'column "{name}" specified more than once')
        limits = result_type(kind)
        if limits is None:
            raise SqlUnsupportedError(f'column "{name}": type {kind} is not supported for columns')
        found.append(Column(check_name(name, "column"), limits))
    return tuple(found)


def _bound(catalogue: Mapping[str, Table], view: Table, workspace: str) -> tuple[BoundColumns, set[str]]:
    """Bind a view's query; return its columns and the tables and views that it reads."""
    tree = parse(view.view or "").tree
    if tree.find(exp.Parameter, exp.Placeholder) is not None:
        raise SqlError("a view takes no parameters; write the values into its SELECT")
    columns = Binder(catalogue, workspace, views=(view.name,)).query(tree, None)
    tables = {node.meta["table"].name for node in tree.find_all(exp.Table) if node.meta.get("table") is not None}
    return columns, tables | {node.meta["view"] for node in tree.find_all(exp.Subquery) if "view" in node.meta}


def _tables_of(view: Table, catalogue: Mapping[str, Table], workspace: str) -> set[str]:
    """Return the tables and views that a view reads; none if an older version created it from an unsupported
    construct."""
    try:
        return _bound(catalogue, view, workspace)[1]
    except SqlUnsupportedError:
        return set()


def check_unused(names: set[str], catalogue: Mapping[str, Table], workspace: str) -> None:
    """Refuse to drop what a remaining view depends on."""
    for view in catalogue.values():
        if view.view is not None and view.name not in names:
            used = _tables_of(view, catalogue, workspace) & names
            if used:
                what = f'cannot drop "{used.pop()}" because view "{view.name}" depends on it'
                raise ConstraintError(f"{what}; drop the view first")


def check_altered(changed: Table, catalogue: Mapping[str, Table], workspace: str) -> None:
    """Refuse a table change that would break a view or change its column types."""
    name, after = changed.name, {**catalogue, changed.name: changed}
    for view in catalogue.values():
        if view.view is None or view.name == name or name not in _tables_of(view, catalogue, workspace):
            continue
        try:
            kinds = [result_type(kind) for _, kind in _bound(after, view, workspace)[0]]
            same = kinds[: len(view.columns)] == [column.type for column in view.columns]
            broken = "" if same else "the types of its columns would change"
        except (SqlError, NoSuchTableError) as error:
            broken = str(error)
        if broken:
            raise ConstraintError(
                f'cannot change "{name}" because view "{view.name}" depends on it ({broken}); drop the view first'
            )
