"""`pg_indexes` and `information_schema` of a workspace, written into the statement as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlglot import exp

from ..catalog import Column, Index, Table, quote_identifier
from .expression_types import NAMES, is_array, long_name
from .parse import parse
from .scope import identifier

SYSTEM = {
    ("pg_catalog", "pg_indexes"),
    ("information_schema", "tables"),
    ("information_schema", "columns"),
}
_COLUMNS = {
    "pg_indexes": "schemaname tablename indexname indexdef",
    "tables": "table_catalog table_schema table_name table_type",
    "columns": "table_catalog table_schema table_name column_name ordinal_position column_default is_nullable "
    "data_type",
}


def system_relation(name: str, node: exp.Table, catalogue: Mapping[str, Table], workspace: str) -> exp.Subquery:
    """Return a subquery with the rows of a system view."""
    rows = json.dumps(_rows(name, catalogue, workspace)).replace("'", "''")
    kinds = {column: "int" if column == "ordinal_position" else "text" for column in _COLUMNS[name].split()}
    items = ", ".join(f"(value->>{at})::{kind} AS {column}" for at, (column, kind) in enumerate(kinds.items()))
    body = parse(f"SELECT {items} FROM jsonb_array_elements('{rows}'::jsonb)").tree
    alias = node.args.get("alias") or exp.TableAlias(this=identifier(name))
    subquery = exp.Subquery(this=body, alias=alias.copy(), joins=node.args.get("joins"))
    node.replace(subquery)
    return subquery


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
    unique = "UNIQUE " if index.unique else ""
    method = "deeplake_index" if index.method == "search" else index.method
    columns = ", ".join(_quote(column) for column in index.columns)
    options = ", ".join(f"{key}='{value}'" for key, value in index.options.items())
    return (
        f"CREATE {unique}INDEX {_quote(index.name)} ON {_quote(workspace)}.{_quote(index.table)} "
        f"USING {method} ({columns})" + (f" WITH ({options})" if options else "")
    )


def _quote(name: str) -> str:
    plain = name.isidentifier() and name == name.lower() and name.isascii()
    return name if plain else quote_identifier(name)


def _described(column: Column) -> list[str | None]:
    name = NAMES[column.type.kind]
    spelled = "ARRAY" if is_array(name) else "character varying" if column.type.length else long_name(name)
    return [column.default, "YES" if column.nullable else "NO", spelled]
