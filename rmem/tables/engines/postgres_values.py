"""Convert Python values for PostgreSQL and back, to the types that `Result` documents."""

from __future__ import annotations

import datetime as dt
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

from ...stores.sql import postgres_arrays
from ...stores.sql.postgres_arrays import Array
from ..catalog import Kind, Type
from ..sql.expression_types import INTEGERS, NAMES, element, is_array
from ..sql.json_values import json_text
from ..sql.literals import fit
from ..sql.times import Interval

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

VECTOR = psycopg.adapters.types["float4"].array_oid


def type_of(oid: int) -> Type | None:
    """Return the type of a result column; None for one that no table can have."""
    return _TYPES.get(oid)


class IntervalDumper(Dumper):
    """Python's timedelta knows no months."""

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
    connection.adapters.register_dumper(Interval, IntervalDumper)


def to_driver(value: Any, kind: str) -> Any:
    """Convert a plain value of a type, JSONB as text, for the driver."""
    if value is None:
        return None
    if kind in ("float4[]", "float4[][]"):
        return Array(np.asarray(value, np.float32))
    if kind == "jsonb":
        return Jsonb(value, dumps=str)
    if is_array(kind):
        return [to_driver(json_text(item) if kind == "jsonb[]" else item, element(kind)) for item in value]
    return value


def parameter(value: Any, kind: str) -> Any:
    if value is None:
        return None
    found = fit(value, kind)
    return to_driver(json_text(found) if kind == "jsonb" else found, kind)
