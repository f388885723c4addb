"""The catalogue of a workspace: tables, columns with their types, and indexes, as plain values. Engines store it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from graphlib import TopologicalSorter
from typing import Any

ROW = "_row"
"""The hidden column of every table: a number given once and never again. No statement can name it."""


class Kind(StrEnum):
    """Column types, by PostgreSQL's names."""

    TEXT = "text"
    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    REAL = "real"
    DOUBLE = "double precision"
    NUMERIC = "numeric"
    BOOLEAN = "boolean"
    JSONB = "jsonb"
    TIMESTAMPTZ = "timestamptz"
    TIMESTAMP = "timestamp"
    DATE = "date"
    TIME = "time"
    INTERVAL = "interval"
    UUID = "uuid"
    BYTEA = "bytea"
    VECTOR = "float4[]"
    VECTORS = "float4[][]"
    TEXTS = "text[]"
    INTEGERS = "bigint[]"


@dataclass(frozen=True, slots=True)
class Type:
    """A type with its modifiers: the dimension of vectors, the length of varchar, the scale of numeric."""

    kind: Kind
    dimension: int | None = None
    length: int | None = None
    precision: int | None = None
    scale: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; `serial` ones number their rows."""

    name: str
    type: Type
    nullable: bool = True
    default: str | None = None
    """An SQL expression in PostgreSQL's words."""
    serial: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """An index. `search` indexes serve the search operators; `btree` ones belong to the engine."""

    name: str
    table: str
    columns: tuple[str, ...]
    method: str = "btree"
    unique: bool = False
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK constraint; `condition` is an SQL expression in PostgreSQL's syntax."""

    name: str
    condition: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key. Actions are in PostgreSQL's syntax: `CASCADE`, `SET NULL`, `NO ACTION` …"""

    name: str
    columns: tuple[str, ...]
    table: str
    targets: tuple[str, ...]
    on_delete: str = "NO ACTION"
    on_update: str = "NO ACTION"


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view. UNIQUE constraints are unique indexes, named as PostgreSQL names them."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()
    checks: tuple[Check, ...] = ()
    references: tuple[Reference, ...] = ()
    view: str | None = None
    """The SELECT of a view; None for a table that holds rows."""

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


def quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def parents_first(tables: Iterable[Table]) -> list[Table]:
    """Order tables after those that they reference; `graphlib.CycleError` for a cycle."""
    known = {table.name: table for table in tables}
    order: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(known, ()))  # as given where nothing else decides
    for name, table in known.items():
        order.add(name, *({reference.table for reference in table.references} & known.keys() - {name}))
    return [known[name] for name in order.static_order()]


def table_from_json(stored: Mapping[str, Any]) -> Table:
    """Reverse `dataclasses.asdict` of a table."""
    columns = tuple(
        Column(**{**column, "type": Type(**{**column["type"], "kind": Kind(column["type"]["kind"])})})
        for column in stored["columns"]
    )
    return Table(
        stored["name"],
        columns,
        tuple(stored["primary_key"]),
        tuple(Index(**_tuples(part)) for part in stored["indexes"]),
        tuple(Check(**part) for part in stored["checks"]),
        tuple(Reference(**_tuples(part)) for part in stored["references"]),
        stored.get("view"),  # older stores have none
    )


def _tuples(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in part.items()}
