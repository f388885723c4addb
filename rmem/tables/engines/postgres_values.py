"""Convert Python values for PostgreSQL and back, to the types that `Result` documents."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import pq
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.types.datetime import TimestamptzBinaryLoader
from psycopg.types.json import Jsonb
from psycopg.types.numeric import Int4, Int8

from ...errors import SqlError
from ...stores.sql import postgres_arrays
from ...stores.sql.postgres_arrays import Array
from ..catalog import Kind, Type
from ..sql.expression_types import INTEGERS, NAMES, is_array
from ..sql.times import Interval, read_interval

_KINDS = {
    **{name: kind for kind, name in NAMES.items() if not is_array(name)},
    **dict.fromkeys(("varchar", "bpchar", "name"), Kind.TEXT),
    "json": Kind.JSONB,
}
_ARRAYS = {
    **dict.fromkeys(("float4", "float8"), Kind.VECTOR),
    **dict.fromkeys(("text", "varchar"), Kind.TEXTS),
    **dict.fromkeys(INTEGERS, Kind.INTEGERS),
}
_TYPES = {psycopg.adapters.types[name].oid: Type(kind) for name, kind in _KINDS.items()} | {
    psycopg.adapters.types[name].array_oid: Type(kind) for name, kind in _ARRAYS.items()
}

COPIED = {**NAMES, Kind.VECTORS: "float4[]"}
"""The names of the types that COPY writes in PostgreSQL's binary form."""


VECTOR = psycopg.adapters.types["float4"].array_oid


def type_of(oid: int) -> Type | None:
    """Return the type of a result column; None for one that no table can have."""
    return _TYPES.get(oid)


class IntervalDumper(Dumper):
    """For COPY too; Python's timedelta knows no months."""

    format = pq.Format.BINARY
    oid = psycopg.adapters.types["interval"].oid

    def dump(self, obj: Interval) -> Buffer:
        return _INTERVAL.pack(obj.micros, obj.days, obj.months)


_INTERVAL = Struct(">qii")


class _UtcLoader(TimestamptzBinaryLoader):
    def load(self, data: Buffer) -> dt.datetime:
        return super().load(data).astimezone(dt.UTC)


class VectorLoader(Loader):
    """Load float4[] as a numpy array, for reading whole columns."""

    format = pq.Format.BINARY

    def load(self, data: Buffer) -> npt.NDArray[np.float32]:
        dimensions = int(np.frombuffer(data, ">i4", 1)[0])
        if not dimensions:
            return np.empty(0, np.float32)
        shape = np.frombuffer(data, ">i4", 2 * dimensions, 12)[::2]
        cells = np.frombuffer(data, _CELL, -1, 12 + 8 * dimensions)
        return cells["value"].astype(np.float32).reshape(shape)


_CELL = np.dtype([("length", ">i4"), ("value", ">f4")])


def register(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Register our converters with a connection."""
    postgres_arrays.register(connection)
    connection.adapters.register_loader("timestamptz", _UtcLoader)


def to_driver(value: Any, expected: Kind | None = None) -> Any:
    """Convert a parameter for the driver; `expected` is the type at its place, if known."""
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if "\0" in value:
            raise SqlError("text must not hold the character NUL (\\x00)")
        if expected in (Kind.VECTOR, Kind.VECTORS) and value.lstrip().startswith("["):
            return value.replace("[", "{").replace("]", "}")
        return value
    if isinstance(value, int):
        return Int4(value) if -(2**31) <= value < 2**31 else Int8(value) if -(2**63) <= value < 2**63 else value
    if isinstance(value, dict):
        return Jsonb(value)
    if isinstance(value, list | tuple):
        return _list_to_driver(value, expected)
    return value


def _list_to_driver(values: Sequence[Any], expected: Kind | None) -> Any:
    cells = list(_cells(values))
    if expected is Kind.JSONB or any(isinstance(cell, dict) for cell in cells):
        return Jsonb(list(values))
    numbers = all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells)
    if cells and numbers and (expected in (Kind.VECTOR, Kind.VECTORS) or any(isinstance(c, float) for c in cells)):
        try:
            return Array(np.asarray(values, np.float32 if expected in (Kind.VECTOR, Kind.VECTORS) else np.float64))
        except ValueError:
            raise SqlError("the rows of a list of vectors must be of one length") from None
    return list(values)


def _cells(values: Sequence[Any]) -> Any:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _cells(value)
        else:
            yield value


def copy_value(value: Any, kind: Kind) -> Any:
    """Convert a column value for COPY."""
    if value is None:
        return None
    if kind in (Kind.VECTOR, Kind.VECTORS):
        return Array(np.asarray(value, np.float32))
    if kind is Kind.JSONB:
        return Jsonb(value)
    if isinstance(value, str) and "\0" in value:
        raise SqlError("text must not hold the character NUL (\\x00)")
    return value


def adopt_value(value: Any, kind: Kind) -> Any:
    """Convert a column value copied from another engine, which gives JSONB and intervals as text."""
    if value is not None and kind is Kind.JSONB:
        return Jsonb(value, dumps=str)
    return read_interval(value) if value is not None and kind is Kind.INTERVAL else copy_value(value, kind)
