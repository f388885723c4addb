"""`pg_indexes` and `information_schema`: what a workspace may know of itself, written into the statement as VALUES."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from ..catalog import Column, Index, Kind, Table
from .scope import identifier

SYSTEM = {
    ("pg_catalog", "pg_indexes"),
    ("information_schema", "tables"),
    ("information_schema", "columns"),
}
_TEXT, _INT = "TEXT", "INT"
_COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "pg_indexes": (("schemaname", _TEXT), ("tablename", _TEXT), ("indexname", _TEXT), ("indexdef", _TEXT)),
    "tables": (("table_catalog", _TEXT), ("table_schema", _TEXT), ("table_name", _TEXT), ("table_type", _TEXT)),
    "columns": (
        ("table_catalog", _TEXT),
        ("table_schema", _TEXT),
        ("table_name", _TEXT),
        ("column_name", _TEXT),
        ("ordinal_position", _INT),
        ("column_default", _TEXT),
        ("is_nullable", _TEXT),
        ("data_type", _TEXT),
        ("character_maximum_length", _INT),
        ("numeric_precision", _INT),
        ("numeric_scale", _INT),
    ),
}


def system_relation(name: str, node: exp.Table, catalogue: Mapping[str, Table], workspace: str) -> exp.Subquery:
    """A subquery with the rows of a system view, in the place of its name."""
    rows = _rows(name, catalogue, workspace)
    columns = _COLUMNS[name]
    names = [identifier(column) for column, _ in columns]
    body: exp.Expression
    if rows:
        tuples = [_tuple(columns, row) for row in rows]
        values = exp.Values(expressions=tuples, alias=exp.TableAlias(this=identifier(name), columns=names))
        body = exp.Select(expressions=[exp.Star()], from_=exp.From(this=values))
    else:
        items = [exp.alias_(exp.cast(exp.null(), kind), column, quoted=True) for column, kind in columns]
        body = exp.Select(expressions=items, where=exp.Where(this=exp.false()))
    alias = node.args.get("alias") or exp.TableAlias(this=identifier(name))
    subquery = exp.Subquery(this=body, alias=alias.copy(), joins=node.args.get("joins"))
    node.replace(subquery)
    return subquery


def _tuple(columns: tuple[tuple[str, str], ...], row: list[str | int | None]) -> exp.Tuple:
    items = []
    for (_, kind), value in zip(columns, row, strict=True):
        items.append(exp.cast(exp.null() if value is None else exp.Literal.string(str(value)), kind))
    return exp.Tuple(expressions=items)


def _rows(name: str, catalogue: Mapping[str, Table], workspace: str) -> list[list[str | int | None]]:
    tables = sorted(catalogue.values(), key=lambda table: table.name)
    if name == "tables":
        return [[workspace, workspace, table.name, "BASE TABLE" if table.view is None else "VIEW"] for table in tables]
    if name == "pg_indexes":
        return [
            [workspace, table.name, index.name, definition(index, workspace)]
            for table in tables
            for index in _indexes(table)
        ]
    return [
        [workspace, workspace, table.name, column.name, at, *_described(column)]
        for table in tables
        for at, column in enumerate(table.columns, 1)
    ]


def _indexes(table: Table) -> list[Index]:
    key = [Index(f"{table.name}_pkey", table.name, table.primary_key, unique=True)] if table.primary_key else []
    return [*key, *table.indexes]


def definition(index: Index, workspace: str) -> str:
    """The statement that would make an index."""
    unique = "UNIQUE " if index.unique else ""
    method = "deeplake_index" if index.method == "search" else index.method
    columns = ", ".join(_quoted(column) for column in index.columns)
    options = ", ".join(f"{key}='{value}'" for key, value in index.options.items())
    return (
        f"CREATE {unique}INDEX {_quoted(index.name)} ON {_quoted(workspace)}.{_quoted(index.table)} "
        f"USING {method} ({columns})" + (f" WITH ({options})" if options else "")
    )


def _quoted(name: str) -> str:
    plain = name.isidentifier() and name == name.lower() and name.isascii()
    return name if plain else '"' + name.replace('"', '""') + '"'


_SPELLED = {
    Kind.TIMESTAMPTZ: "timestamp with time zone",
    Kind.TIMESTAMP: "timestamp without time zone",
    Kind.TIME: "time without time zone",
    Kind.VECTOR: "ARRAY",
    Kind.VECTORS: "ARRAY",
    Kind.TEXTS: "ARRAY",
    Kind.INTEGERS: "ARRAY",
}
_PRECISION = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64, Kind.REAL: 24, Kind.DOUBLE: 53}


def _described(column: Column) -> list[str | int | None]:
    kind = column.type.kind
    spelled = "character varying" if kind == Kind.TEXT and column.type.length else _SPELLED.get(kind, kind.value)
    precision = column.type.precision if kind == Kind.NUMERIC else _PRECISION.get(kind)
    scale = column.type.scale if kind == Kind.NUMERIC else (0 if kind in list(_PRECISION)[:3] else None)
    return [column.default, "YES" if column.nullable else "NO", spelled, column.type.length, precision, scale]
