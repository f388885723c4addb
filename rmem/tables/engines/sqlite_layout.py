"""How tables and compiled statements lie in SQLite: names of tables and columns, SQL, and its places for parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..catalog import Kind, Table, Type
from .sqlite_functions import Udf
from .sqlite_storage import fit_limits, named_column, stored_value


@dataclass(frozen=True, slots=True)
class Physical:
    """A table as it lies in the file."""

    id: int
    table: Table
    columns: dict[str, str]
    """The names of columns in the file, by the names that users know."""

    @property
    def name(self) -> str:
        return f"rt_{self.id}"


def index_key(physical: Physical, name: str) -> str:
    """What stands for a column in an index. A numeric without a scale may be written in several ways."""
    column, place = physical.table.column(name), physical.columns[name]
    if column is not None and column.type.kind == Kind.NUMERIC and column.type.scale is None:
        return f"CASE WHEN instr({place}, '.') THEN rtrim(rtrim({place}, '0'), '.') ELSE {place} END"
    return place


@dataclass(frozen=True, slots=True)
class Placed:
    """A source of FROM in the SQL: its alias and its columns."""

    alias: str
    columns: dict[str, str]


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a parameter: which one, and as what type it is bound."""

    parameter: int
    kind: str
    limits: Type | None = None
    column: str = ""
    """The column that it is written into, whose limits it has to keep."""


@dataclass(slots=True)
class Compiled:
    """SQL for SQLite, and all that it takes to run it."""

    sql: str
    slots: list[Slot]
    udfs: list[Udf]
    columns: tuple[tuple[str, str], ...] = ()
    target: Physical | None = None
    """The table that is written to."""


def parameter_values(compiled: Compiled, parameters: Sequence[Any], rows: Mapping[str, Any]) -> list[Any]:
    """The values of a statement's places, as they lie in SQLite."""
    values: list[Any] = []
    for slot in compiled.slots:
        if slot.parameter < 0:
            values.append(json.dumps([int(row) for row in rows[slot.kind]]))
        else:
            with named_column(slot.column):
                value = stored_value(parameters[slot.parameter], slot.kind)
            values.append(value if slot.limits is None else fit_limits(value, slot.limits, slot.column))
    return values
