"""The stored form of values in SQLite. Whole numbers, doubles, texts and bytes are SQLite's own; the rest:

bool 0 or 1 · numeric the digits as text · timestamps, dates and times whole numbers · interval `months days micros` ·
jsonb PostgreSQL's text of it · float4[] 32-bit floats · float4[][] two counts and 32-bit floats · other arrays JSON.

Numeric, interval, jsonb and arrays are compared by collations, everything else as SQLite does.
"""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np

from ...errors import SqlError
from ..catalog import Column, Type
from ..sql.casts import fit_numeric
from ..sql.expression_types import NAMES, element, is_array, long_name
from ..sql.json_values import decimal_text, json_text, order_key, parse_json, plain
from ..sql.literals import read, to_float4
from ..sql.times import (
    Interval,
    date_of,
    day_number,
    in_range,
    instant,
    moment,
    time_number,
    time_of,
)

Stored = int | float | str | bytes | None
_COUNTS = struct.Struct("<ii")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def collation(kind: str) -> str:
    """Return the collation of a type; empty if SQLite's own order is right."""
    if kind in ("numeric", "interval", "jsonb"):
        return f"rmem_{kind}"
    return "rmem_array" if is_array(kind) else ""


def column_type(kind: str) -> str:
    """Return the SQLite type of a column."""
    if kind in ("int2", "int4", "int8", "bool", "timestamptz", "timestamp", "date", "time"):
        return "INTEGER"
    if kind in ("float4", "float8"):
        return "REAL"
    return "BLOB" if kind in ("bytea", "float4[]", "float4[][]") else "TEXT"


def text_sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal_sql(stored: Any) -> str:
    """Write a stored value as an SQL literal."""
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


def _same(value: Any) -> Any:
    return value


WRITERS: dict[str, Callable[[Any], Stored]] = {
    "bool": int,
    "numeric": decimal_text,
    "jsonb": json_text,
    "interval": lambda value: f"{value[0]} {value[1]} {value[2]}",
    "float4[]": _write_vector,
    "float4[][]": _write_vectors,
    "float4": to_float4,
}
READERS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "numeric": Decimal,
    "jsonb": parse_json,
    "interval": lambda stored: Interval(*map(int, stored.split())),
    "float4[]": lambda stored: np.frombuffer(stored, dtype="<f4").tolist(),
    "float4[][]": _read_vectors,
}


@lru_cache(maxsize=512)
def writer(kind: str) -> Callable[[Any], Stored]:
    """Return a function from plain to stored values of a type. It never gets None."""
    if kind in WRITERS or not is_array(kind):
        return WRITERS.get(kind, _same)
    inner = writer(element(kind))
    if element(kind) == "bytea":
        return lambda value: json.dumps([None if item is None else item.hex() for item in value])
    if inner is _same:
        return lambda value: json.dumps(value, ensure_ascii=False)
    return lambda value: json.dumps([None if item is None else inner(item) for item in value], ensure_ascii=False)


@lru_cache(maxsize=512)
def reader(kind: str) -> Callable[[Any], Any]:
    """Return a function from stored to plain values of a type. It never gets None."""
    if kind in READERS or not is_array(kind):
        return READERS.get(kind, _same)
    inner = reader(element(kind))
    if element(kind) == "bytea":
        return lambda stored: [None if item is None else bytes.fromhex(item) for item in json.loads(stored)]
    if inner is _same:
        return json.loads
    return lambda stored: [None if item is None else inner(item) for item in json.loads(stored)]


# -- stored values to those of a Result ----------------------------------------------------------------------


def _delta(stored: str) -> dt.timedelta:
    months, days, micros = map(int, stored.split())
    years, rest = divmod(abs(months), 12)
    sign = -1 if months < 0 else 1
    try:
        return dt.timedelta(days=days + sign * (years * 365 + rest * 30), microseconds=micros)
    except OverflowError:
        raise SqlError("an interval is too long to be answered") from None


_RESULTS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "numeric": Decimal,
    "jsonb": json.loads,
    "float4": float,
    "float8": float,
    "timestamptz": lambda stored: _EPOCH + dt.timedelta(microseconds=stored),
    "timestamp": moment,
    "date": date_of,
    "time": time_of,
    "interval": _delta,
    "uuid": UUID,
    "float4[]": READERS["float4[]"],
    "float4[][]": _read_vectors,
}


@lru_cache(maxsize=512)
def result_reader(kind: str) -> Callable[[Any], Any] | None:
    """Return a function from stored values to those of a Result; None if they are the same."""
    if kind in _RESULTS or not is_array(kind):
        return _RESULTS.get(kind)
    inner = result_reader(element(kind))
    if inner is None or element(kind) == "bytea":
        return reader(kind)
    return lambda stored: [None if item is None else inner(item) for item in json.loads(stored)]


# -- callers' values to stored ones ----------------------------------------------------------------------------


def stored_value(value: Any, kind: str) -> Stored:
    """Convert a caller's value (a parameter, or one of a bulk insert) to its stored form."""
    if value is None:
        return None
    if isinstance(value, str):
        return writer(kind)(read(value, kind)) if kind != "text" else value
    if kind == "jsonb":
        return json_text(plain(value))
    if is_array(kind):
        return _stored_array(value, kind)
    if isinstance(value, (list, tuple, dict, np.ndarray)):
        raise SqlError(f"a {type(value).__name__} cannot become {long_name(kind)}")
    converter = _INCOMING.get(kind)
    if converter is not None:
        return converter(value)
    return writer(kind)(value)


def _stored_array(value: Any, kind: str) -> Stored:
    if kind in ("float4[]", "float4[][]"):
        return stored_vector(value, kind)
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise SqlError(f"a value of type {long_name(kind)} must be a list, got {type(value).__name__}")
    inner = element(kind)
    items = value.tolist() if isinstance(value, np.ndarray) else value
    return writer(kind)([None if item is None else plain_item(item, inner) for item in items])


def plain_item(item: Any, kind: str) -> Any:
    """Convert one element of a caller's list to its plain form."""
    if isinstance(item, str):
        return read(item, kind)
    expected: dict[str, tuple[type, ...]] = {
        "text": (str,),
        "int2": (int,),
        "int4": (int,),
        "int8": (int,),
        "float4": (int, float),
        "float8": (int, float),
        "numeric": (int, Decimal),
    }
    if kind in expected and (isinstance(item, bool) or not isinstance(item, expected[kind])):
        raise SqlError(f"an element of {long_name(kind)}[] cannot be {type(item).__name__}")
    stored = stored_value(item, kind)
    return None if stored is None else reader(kind)(stored)


def stored_vector(value: Any, kind: str) -> bytes:
    """Convert vectors to 32-bit floats; refuse non-finite numbers."""
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinity, and is refused below
            data = np.asarray(value, dtype="<f4")
    except (TypeError, ValueError, OverflowError):
        raise SqlError("a vector must be a list of numbers") from None
    depth = 1 if kind == "float4[]" else 2
    if data.size == 0 and depth == 1:
        return b""
    if data.ndim != depth:
        raise SqlError(f"a value of type {kind} must be a list of {'numbers' if depth == 1 else 'vectors'}")
    if not np.isfinite(data).all():
        raise SqlError("a vector may not hold NaN or infinity")
    return data.tobytes() if depth == 1 else _COUNTS.pack(*data.shape) + data.tobytes()


def _timestamp(value: Any) -> int:
    if isinstance(value, dt.datetime):
        return in_range(instant(value))
    return day_number(value) * 86_400_000_000


_INCOMING: dict[str, Callable[[Any], Stored]] = {
    "timestamptz": _timestamp,
    "timestamp": _timestamp,
    "date": lambda value: day_number(value.date() if isinstance(value, dt.datetime) else value),
    "time": time_number,
    "interval": lambda value: f"0 {value.days} {value.seconds * 1_000_000 + value.microseconds}",
    "uuid": str,
    "numeric": lambda value: decimal_text(value if isinstance(value, Decimal) else Decimal(value)),
    "float8": float,
    "float4": lambda value: to_float4(float(value)),
}


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


def bulk_writer(column: Column) -> Callable[[Any], Stored]:
    """Return a function from checked values of a bulk insert to stored ones."""
    kind, limits, name = NAMES[column.type.kind], column.type, column.name

    def write(value: Any) -> Stored:
        if kind == "float4[]" and isinstance(value, np.ndarray) and value.dtype == np.float32 and value.ndim == 1:
            stored: Stored = value.astype("<f4", copy=False).tobytes()
        else:
            stored = stored_value(value, kind)
        return fit_limits(stored, limits, name) if limited else stored

    limited = has_limits(limits)
    return write


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


@lru_cache(maxsize=4096)
def _number(text: str) -> Decimal:
    return Decimal(text)


@lru_cache(maxsize=4096)
def _interval(text: str) -> int:
    return Interval(*map(int, text.split())).total


@lru_cache(maxsize=1024)
def _json(text: str) -> tuple[Any, ...]:
    return order_key(parse_json(text))


@lru_cache(maxsize=1024)
def _array(text: str) -> tuple[Any, ...]:
    return tuple((item is None, item) for item in json.loads(text))


def _order(key: Callable[[str], Any]) -> Callable[[str, str], int]:
    def compare(left: str, right: str) -> int:
        if left == right:
            return 0
        a, b = key(left), key(right)
        return -1 if a < b else int(a > b)

    return compare


COLLATIONS: dict[str, Callable[[str, str], int]] = {
    "rmem_numeric": _order(_number),
    "rmem_interval": _order(_interval),
    "rmem_jsonb": _order(_json),
    "rmem_array": _order(_array),
}
