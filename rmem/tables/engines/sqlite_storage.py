"""The stored form of tables and values in SQLite. Whole numbers, doubles, texts and bytes are SQLite's own; the rest:

bool 0 or 1 · numeric the digits as text · timestamps, dates and times whole numbers · interval `months days micros` ·
jsonb PostgreSQL's text of it · float4[] 32-bit floats · float4[][] two counts and 32-bit floats · other arrays JSON.

Numeric, interval, jsonb and arrays are compared by collations, everything else as SQLite does.
"""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np

from ...errors import SqlError
from ..catalog import Kind, Table, Type
from ..sql.casts import fit_numeric
from ..sql.expression_types import element, is_array
from ..sql.json_values import decimal_text, json_text, order_key, parse_json
from ..sql.literals import fit, to_float4
from ..sql.times import Interval

Stored = int | float | str | bytes | None
_COUNTS = struct.Struct("<ii")
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_FIRST_DAY = dt.date(1970, 1, 1).toordinal()


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


def collation(kind: str) -> str:
    """Return the collation of a type; empty if SQLite's own order is right."""
    if kind in ("numeric", "interval", "jsonb"):
        return f"rmem_{kind}"
    return "rmem_array" if is_array(kind) else ""


def column_type(kind: str) -> str:
    if kind in ("int2", "int4", "int8", "bool", "timestamptz", "timestamp", "date", "time"):
        return "INTEGER"
    if kind in ("float4", "float8"):
        return "REAL"
    return "BLOB" if kind in ("bytea", "float4[]", "float4[][]") else "TEXT"


def text_sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal_sql(stored: Any) -> str:
    if stored is None:
        return "NULL"
    if isinstance(stored, bytes):
        return f"x'{stored.hex()}'"
    if isinstance(stored, str):
        return text_sql(stored)
    if isinstance(stored, float):
        return repr(stored).replace("inf", "9e999")
    return str(int(stored)) if stored != -(2**63) else "(-9223372036854775807 - 1)"


# -- plain values to stored ones, and back --------------------------------------------------------------------


def _write_vector(value: Any) -> bytes:
    if any(item is None for item in value):
        raise SqlError("a vector may not hold NULL")
    return np.asarray(value, dtype="<f4").tobytes()


def _write_vectors(value: Any) -> bytes:
    if len({len(row) for row in value}) > 1:
        raise SqlError("the vectors of FLOAT4[][] must have one dimension")
    data = np.asarray(value, dtype="<f4")
    return _COUNTS.pack(len(value), len(value[0]) if len(value) else 0) + data.tobytes()


def _read_vectors(stored: bytes) -> list[list[float]]:
    rows, dimension = _COUNTS.unpack_from(stored)
    return np.frombuffer(stored, dtype="<f4", offset=_COUNTS.size).reshape(rows, dimension).tolist()


def _write_timestamp(value: dt.datetime) -> int:
    return (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND


def _read_timestamp(stored: int) -> dt.datetime:
    try:
        return _EPOCH + dt.timedelta(microseconds=stored)
    except OverflowError:
        raise SqlError("timestamp out of range: only the years 1 to 9999 are supported") from None


def _read_date(stored: int) -> dt.date:
    try:
        return dt.date.fromordinal(stored + _FIRST_DAY)
    except (ValueError, OverflowError):
        raise SqlError("date out of range") from None


def _same(value: Any) -> Any:
    return value


WRITERS: dict[str, Callable[[Any], Stored]] = {
    "bool": int,
    "numeric": decimal_text,
    "jsonb": json_text,
    "interval": lambda value: f"{value[0]} {value[1]} {value[2]}",
    "timestamptz": _write_timestamp,
    "timestamp": _write_timestamp,
    "date": lambda value: value.toordinal() - _FIRST_DAY,
    "time": lambda value: (dt.datetime.combine(_EPOCH, value) - _EPOCH) // _MICROSECOND,
    "uuid": str,
    "float4[]": _write_vector,
    "float4[][]": _write_vectors,
    "float4": to_float4,
}
READERS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "numeric": Decimal,
    "jsonb": parse_json,
    "interval": lambda stored: Interval(*map(int, stored.split())),
    "timestamptz": lambda stored: _read_timestamp(stored).replace(tzinfo=dt.UTC),
    "timestamp": _read_timestamp,
    "date": _read_date,
    "time": lambda stored: _read_timestamp(stored).time(),
    "uuid": UUID,
    "float4[]": lambda stored: np.frombuffer(stored, dtype="<f4").tolist(),
    "float4[][]": _read_vectors,
}
ITEMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {"bytea": (bytes.hex, bytes.fromhex)}
"""How the items of arrays are written and read that JSON does not have."""


@lru_cache(maxsize=512)
def writer(kind: str) -> Callable[[Any], Stored]:
    """Return a function from plain to stored values of a type. It never gets None."""
    if kind in WRITERS or not is_array(kind):
        return WRITERS.get(kind, _same)
    inner = ITEMS[element(kind)][0] if element(kind) in ITEMS else writer(element(kind))
    return lambda value: json.dumps([None if item is None else inner(item) for item in value], ensure_ascii=False)


@lru_cache(maxsize=512)
def reader(kind: str) -> Callable[[Any], Any]:
    """Return a function from stored to plain values of a type. It never gets None."""
    if kind in READERS or not is_array(kind):
        return READERS.get(kind, _same)
    inner = ITEMS[element(kind)][1] if element(kind) in ITEMS else reader(element(kind))
    return lambda stored: [None if item is None else inner(item) for item in json.loads(stored)]


def _delta(stored: str) -> dt.timedelta:
    months, days, micros = map(int, stored.split())
    years, rest = divmod(abs(months), 12)
    sign = -1 if months < 0 else 1
    try:
        return dt.timedelta(days=days + sign * (years * 365 + rest * 30), microseconds=micros)
    except OverflowError:
        raise SqlError("an interval is too long to be answered") from None


_RESULTS: dict[str, Callable[[Any], Any]] = {"jsonb": json.loads, "float4": float, "float8": float, "interval": _delta}


@lru_cache(maxsize=512)
def result_reader(kind: str) -> Callable[[Any], Any] | None:
    """Return a function from stored values to those of a Result; None if they are the same."""
    if kind in _RESULTS:
        return _RESULTS[kind]
    inner = result_reader(element(kind)) if is_array(kind) and kind not in READERS else None
    if inner is not None:
        return lambda stored: [None if item is None else inner(item) for item in json.loads(stored)]
    read = reader(kind)
    return None if read is _same else read


def stored_value(value: Any, kind: str) -> Stored:
    return None if value is None else writer(kind)(fit(value, kind))


class named_column:
    """Context manager that adds the column to errors."""

    def __init__(self, column: str) -> None:
        self.column = column

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SqlError) and self.column and not str(error).startswith("column "):
            raise type(error)(f'column "{self.column}": {error}') from None


def has_limits(limits: Type) -> bool:
    return limits.length is not None or limits.precision is not None or limits.dimension is not None


def fit_limits(stored: Any, limits: Type, column: str) -> Any:
    """Fit a stored value to a column's limits: varchar, numeric(p, s), the dimension of a vector."""
    if stored is None:
        return None
    if limits.length is not None and len(stored) > limits.length:
        if stored[limits.length :].strip(" "):
            raise SqlError(f'column "{column}": value too long for type character varying({limits.length})')
        return stored[: limits.length]
    if limits.precision is not None:
        with named_column(column):
            return decimal_text(fit_numeric(Decimal(stored), limits))
    if limits.dimension is not None and len(stored) != limits.dimension * 4:
        where = f'column "{column}"' if column else "a cast"
        raise SqlError(f"{where} takes vectors of dimension {limits.dimension}, got {len(stored) // 4}")
    return stored


# -- order -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def sort_key(kind: str) -> Callable[[Any], Any]:
    """Return a function from a plain value to a key that Python orders and hashes as PostgreSQL does in the collation
    C."""
    if kind == "jsonb":
        return order_key
    if kind == "interval":
        return lambda value: value.total
    if is_array(kind):
        inner = sort_key(element(kind))
        return lambda value: tuple((item is None, None if item is None else inner(item)) for item in value)
    return _same


def _order(read: Callable[[str], Any], cached: int) -> Callable[[str, str], int]:
    key = lru_cache(cached)(read)

    def compare(left: str, right: str) -> int:
        if left == right:
            return 0
        a, b = key(left), key(right)
        return -1 if a < b else int(a > b)

    return compare


COLLATIONS: dict[str, Callable[[str, str], int]] = {
    "rmem_numeric": _order(Decimal, 4096),
    "rmem_interval": _order(lambda text: reader("interval")(text).total, 4096),
    "rmem_jsonb": _order(lambda text: order_key(parse_json(text)), 1024),
    "rmem_array": _order(lambda text: tuple((item is None, item) for item in json.loads(text)), 1024),
}
