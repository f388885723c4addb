"""Check columns of Python values against a table before a bulk insert."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from ...errors import SqlError
from ..catalog import Column, Kind, Table
from .expression_types import NAMES
from .json_values import check_text, plain
from .literals import LIMITS, read

_WHOLE = {Kind.SMALLINT: "int2", Kind.INTEGER: "int4", Kind.BIGINT: "int8"}


def check_columns(table: Table, columns: Mapping[str, Sequence[Any]]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return column names and rows of values that fit them."""
    if not isinstance(columns, Mapping) or not columns:
        raise SqlError("columns must be a mapping of names to lists of values, with at least one column")
    names = list(columns)
    length = None
    checked = []
    for name in names:
        column = table.column(name)
        if column is None:
            raise SqlError(f'column "{name}" does not exist in table "{table.name}"')
        values = columns[name]
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
            raise SqlError(f'column "{name}" must be a list of values, got {type(values).__name__}')
        if length is not None and len(values) != length:
            raise SqlError(f'column "{name}" has {len(values)} values, but column "{names[0]}" has {length}')
        length = len(values)
        checked.append(
            _matrix(values, column) or [_check_value(value, column, row) for row, value in enumerate(values)]
        )
    return names, list(zip(*checked, strict=True))


def _matrix(values: Any, column: Column) -> list[Any] | None:
    """Check the vectors of a two-dimensional array at once; None if it is not one or has a bad value."""
    if column.type.kind != Kind.VECTOR or not isinstance(values, np.ndarray) or values.ndim != 2:
        return None
    if values.dtype.kind != "f" or (column.type.dimension or values.shape[1]) != values.shape[1]:
        return None
    data = np.ascontiguousarray(values, dtype=np.float32)
    return list(data) if np.isfinite(data).all() else None


def _check_value(value: Any, column: Column, row: int) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        if not column.nullable:
            raise SqlError(f'column "{column.name}", row {row}: NULL is not allowed')
        return None
    try:
        return _fit_value(value, column)
    except SqlError as error:
        raise SqlError(f'column "{column.name}", row {row}: {error}') from None


def _fit_value(value: Any, column: Column) -> Any:
    kind = column.type.kind
    if isinstance(value, str):
        check_text(value, "the text")
        if kind == Kind.TEXT:
            if column.type.length is not None and len(value) > column.type.length:
                raise SqlError(f"at most {column.type.length} characters, got {len(value)}")
            return value
        if kind in (Kind.VECTOR, Kind.VECTORS):
            return _vector(read(value, NAMES[kind]), column)
        if kind == Kind.JSONB:
            read(value, "jsonb")
            return value
        read(value, NAMES[kind])
        return value
    if kind in _WHOLE:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise SqlError(f"expected a whole number, got {type(value).__name__}")
        limit = LIMITS[_WHOLE[kind]]
        if not -limit <= value < limit:
            raise SqlError(f"{value} is out of range for {kind}")
        return value
    if kind in (Kind.VECTOR, Kind.VECTORS):
        return _vector(value, column)
    if kind == Kind.JSONB:
        plain(value)
        return value
    if kind in (Kind.TEXTS, Kind.INTEGERS):
        return _items(value, kind)
    return _scalar(value, kind)


_SCALARS: dict[Kind, tuple[tuple[type, ...], str]] = {
    Kind.BOOLEAN: ((bool,), "true or false"),
    Kind.REAL: ((int, float, Decimal), "a number"),
    Kind.DOUBLE: ((int, float, Decimal), "a number"),
    Kind.NUMERIC: ((int, Decimal, float), "a number"),
    Kind.TIMESTAMPTZ: ((dt.datetime, dt.date), "a time"),
    Kind.TIMESTAMP: ((dt.datetime, dt.date), "a time"),
    Kind.DATE: ((dt.date,), "a date"),
    Kind.TIME: ((dt.time,), "a time of day"),
    Kind.INTERVAL: ((dt.timedelta,), "a span of time"),
    Kind.UUID: ((UUID,), "a UUID"),
    Kind.BYTEA: ((bytes, bytearray, memoryview), "bytes"),
}


def _scalar(value: Any, kind: Kind) -> Any:
    if kind == Kind.TEXT:
        raise SqlError(f"expected a text, got {type(value).__name__}")
    classes, words = _SCALARS[kind]
    if not isinstance(value, classes) or (isinstance(value, bool) and kind != Kind.BOOLEAN):
        raise SqlError(f"expected {words}, got {type(value).__name__}")
    if isinstance(value, float) and (math.isnan(value) or (math.isinf(value) and kind == Kind.NUMERIC)):
        raise SqlError(f"expected a finite number, got {value}")
    if isinstance(value, Decimal) and not value.is_finite():
        raise SqlError(f"expected a finite number, got {value}")
    if kind == Kind.NUMERIC and isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    return value


def _vector(value: Any, column: Column) -> Any:
    depth = 1 if column.type.kind == Kind.VECTOR else 2
    try:
        data = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise SqlError("expected a list of numbers") from None
    if data.ndim != depth:
        raise SqlError(f"expected a list of {'numbers' if depth == 1 else 'vectors of one dimension'}")
    if not np.isfinite(data).all():
        raise SqlError("a vector may not hold NaN or infinity")
    dimension = column.type.dimension
    if dimension is not None and data.shape[-1] != dimension:
        raise SqlError(f"expected a vector of dimension {dimension}, got {data.shape[-1]}")
    return data


def _items(value: Any, kind: Kind) -> list[Any]:
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise SqlError(f"expected a list, got {type(value).__name__}")
    wanted: type = str if kind == Kind.TEXTS else int
    items = value.tolist() if isinstance(value, np.ndarray) else list(value)
    for item in items:
        if item is not None and (isinstance(item, bool) or not isinstance(item, wanted)):
            raise SqlError(f"expected a list of {'texts' if wanted is str else 'whole numbers'}")
        if isinstance(item, str):
            check_text(item, "a text of the list")
    return items
