"""What names mean at a place in a statement: the sources of FROM, and the queries around them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from ...errors import NoSuchTableError, SqlError, SqlUnsupportedError
from ..catalog import ROW, Table
from .dialect import Dialect
from .expression_types import NAMES


@dataclass(frozen=True, slots=True)
class Source:
    """One relation of FROM. `under` are the column names in the relation itself, `columns` as they are visible."""

    alias: str
    columns: tuple[tuple[str, str], ...]
    table: Table | None = None
    under: tuple[str, ...] = ()

    def type_of(self, name: str) -> str | None:
        return next((kind for column, kind in self.columns if column == name), None)


def table_source(alias: str, table: Table) -> Source:
    """Return a table as a source of that alias."""
    columns = tuple((column.name, NAMES[column.type.kind]) for column in table.columns)
    return Source(alias, columns, table, tuple(name for name, _ in columns))


@dataclass(slots=True)
class NameScope:
    """The sources that a query sees, and those of the queries around it."""

    outer: NameScope | None = None
    sources: dict[str, Source] = field(default_factory=dict)
    """By the name that the statement uses for them."""
    queries: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = field(default_factory=dict)
    """WITH queries: a name that no other query of the statement has, and the columns of each."""
    merged: dict[str, exp.Expression] = field(default_factory=dict)
    """Columns that JOIN … USING made one."""
    aggregates: bool = False
    """Whether aggregates may stand here."""
    windows: bool = False
    nested: bool = False
    """Whether the arguments of a window's aggregate may hold aggregates."""

    def inside(self, *, aggregates: bool) -> NameScope:
        """Return the same scope for the inside of a call, where windows are not allowed."""
        return NameScope(self.outer, self.sources, self.queries, self.merged, aggregates)

    def query(self, name: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.queries:
                return scope.queries[name]
            scope = scope.outer
        return None

    def find(self, name: str, table: str | None) -> tuple[Source, str] | exp.Expression:
        """Return the source and type of a column, or the expression of a merged one."""
        scope: NameScope | None = self
        while scope is not None:
            if table is None and name in scope.merged:
                return scope.merged[name]
            found = [
                (source, kind)
                for seen, source in scope.sources.items()
                if table in (None, seen) and (kind := source.type_of(name)) is not None
            ]
            if len(found) > 1:
                raise SqlError(f'column reference "{name}" is ambiguous')
            if found:
                return found[0]
            if table is not None and table in scope.sources:
                raise missing_column(name, table, [column for column, _ in scope.sources[table].columns])
            scope = scope.outer
        if table is not None:
            raise SqlError(f'missing FROM-clause entry for table "{table}"')
        if name in self.sources:
            raise unsupported("a whole row as a value", "Name its columns, as in jsonb_build_object('a', t.a)")
        known = [column for source in self.sources.values() for column, _ in source.columns]
        raise missing_column(name, ", ".join(self.sources), known)


def missing_column(name: str, table: Table | str, known: Iterable[str] = ()) -> SqlError:
    """Return the error for a missing column; `known` are the existing ones, if `table` is only a name."""
    where = f' in "{table.name if isinstance(table, Table) else table}"' if table else ""
    if isinstance(table, Table):
        known = [column.name for column in table.columns]
    return SqlError(f'column "{name}" does not exist{where}{_near(name, known)}')


def _near(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1)
    return f'; did you mean "{found[0]}"?' if found else ""


def fold_name(identifier: exp.Expression | str | None) -> str:
    """Return a name as PostgreSQL reads it: unquoted ones in lower case."""
    if isinstance(identifier, exp.Identifier):
        name = str(identifier.this)
        return name if identifier.args.get("quoted") else name.lower()
    if isinstance(identifier, exp.Expression):
        return fold_name(identifier.this)
    return str(identifier or "").lower()


def check_name(name: str, what: str) -> str:
    """Check a new name of a table, column or index."""
    if not name:
        raise SqlError(f"the name of a {what} may not be empty")
    if len(name.encode()) > 63:
        raise SqlError(f"the name of a {what} may have 63 bytes, {name[:70]!r} has more")
    if name == ROW or name.startswith("rmem_"):
        raise SqlError(f'the {what} name "{name}" is kept for the engine; choose another')
    return name


def identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def bound_column(source: Source, name: str, kind: str) -> exp.Column:
    column = exp.Column(this=identifier(name), table=identifier(source.alias))
    column.meta.update(type=kind, bound=True)
    return column


def only(node: exp.Expression, *allowed: str) -> None:
    """Refuse parts of a node that are not known here."""
    for key, value in node.args.items():
        if key not in allowed and value not in (None, False, []):
            word = key.strip("_").replace("_", " ").upper()
            raise SqlUnsupportedError(f"{word} of {type(node).__name__.upper()} is not supported: {shown(node)}")


def unsupported(what: str, instead: str = "") -> SqlUnsupportedError:
    """Return the error for what PostgreSQL has and the tables lack."""
    return SqlUnsupportedError(f"{what} is not supported here; PostgreSQL has it" + (f". {instead}" if instead else ""))


def shown(node: exp.Expr) -> str:
    """Format a piece of a statement for a message."""
    try:
        text = node.sql(dialect=Dialect)
    except (ValueError, RecursionError, AttributeError, TypeError):
        text = type(node).__name__
    return text if len(text) <= 80 else f"{text[:77]}…"


def table_name(node: exp.Table, workspace: str) -> str:
    """Return the name of a table of this workspace; tables of others do not exist."""
    name = fold_name(node.this)
    if node.args.get("catalog"):
        raise NoSuchTableError(f'table "{shown(node)}" does not exist')
    if node.args.get("db"):
        schema = fold_name(node.args["db"])
        if schema not in (workspace, "public"):
            raise NoSuchTableError(f'table "{schema}.{name}" does not exist in workspace "{workspace}"')
    return name


def base_table(name: str, catalogue: Mapping[str, Table], workspace: str) -> Table:
    """Return a table that holds rows; refuse a view."""
    table = known_table(name, catalogue, workspace)
    if table.view is not None:
        raise SqlUnsupportedError(f'"{name}" is a view; write to, index or alter the tables that it reads')
    return table


def known_table(name: str, catalogue: Mapping[str, Table], workspace: str) -> Table:
    table = catalogue.get(name)
    if table is None:
        raise NoSuchTableError(f'table "{name}" does not exist in workspace "{workspace}"{_near(name, catalogue)}')
    return table


def replace_node(node: exp.Expr, by: exp.Expr) -> None:
    """Put `by` in the place of a node. `node.replace` numbers all its siblings anew, so a list of 10,000 that are all
    replaced took seconds."""
    parent, key, index = node.parent, node.arg_key, node.index
    if parent is None or key is None or index is None:
        node.replace(by)
        return
    parent.set("", None)  # there is no such argument: it only forgets the cached hashes
    parent.args[key][index] = by
    by.parent, by.arg_key, by.index = parent, key, index
    node.parent = node.arg_key = node.index = None
