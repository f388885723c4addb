"""The names of tables and columns in SQLite, and compiled statements with their parameter slots."""

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
    """A table as stored in the file."""

    id: int
    table: Table
    columns: dict[str, str]
    """The names of columns in the file, by the names that users know."""

    @property
    def name(self) -> str:
        return f"rt_{self.id}"


def index_key(physical: Physical, name: str) -> str:
    """Return the SQL of an indexed column; a numeric without a scale has several spellings and needs normalising."""
    column, place = physical.table.column(name), physical.columns[name]
    if column is not None and column.type.kind == Kind.NUMERIC and column.type.scale is None:
        return f"CASE WHEN instr({place}, '.') THEN rtrim(rtrim({place}, '0'), '.') ELSE {place} END"
    return place


@dataclass(frozen=True, slots=True)
class Placed:
    """A source of FROM in the SQL: its alias and columns."""

    alias: str
    columns: dict[str, str]


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter slot: which parameter, and its bound type."""

    parameter: int
    kind: str
    limits: Type | None = None
    column: str = ""
    """The column that it is written into, whose limits it has to keep."""


@dataclass(slots=True)
class Compiled:
    """SQL for SQLite with everything needed to run it."""

    sql: str
    slots: list[Slot]
    udfs: list[Udf]
    columns: tuple[tuple[str, str], ...] = ()
    target: Physical | None = None
    """The table that is written to."""


def parameter_values(compiled: Compiled, parameters: Sequence[Any], rows: Mapping[str, Any]) -> list[Any]:
    """Return the values for the slots of a statement, in stored form."""
    values: list[Any] = []
    for slot in compiled.slots:
        if slot.parameter < 0:
            values.append(json.dumps([int(row) for row in rows[slot.kind]]))
        else:
            with named_column(slot.column):
                value = stored_value(parameters[slot.parameter], slot.kind)
            values.append(value if slot.limits is None else fit_limits(value, slot.limits, slot.column))
    return values
