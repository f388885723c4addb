"""Convert values to JSON and back, so that server and client give the same Python values.

Times, decimals, UUIDs and bytes are texts in PostgreSQL's format; the column's type says how to read them."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from ..checks import refuse
from ..errors import SqlError
from .catalog import Kind, Type
from .results import Result
from .sql.times import Interval, interval_text, read_interval

_KINDS = {kind.value: kind for kind in Kind}
_WHOLE = {int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
_NUMBERS = _WHOLE | {float, np.float16, np.float32, np.float64}


def to_json(value: Any) -> Any:
    """Convert a value to JSON: `to_json(Decimal("1.50"))` is "1.50", a time is ISO text, bytes are hexadecimal."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, list | tuple):
        if value and type(value[0]) is float:  # most lists are vectors: if the sum is finite, all numbers are
            with suppress(TypeError, ValueError, OverflowError):
                if math.isfinite(math.fsum(value)):
                    return list(value)
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _interval_text(value)
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"\\x{bytes(value).hex()}"
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    raise refuse("value", "a text, number, truth value, time, UUID, bytes, list or mapping", value)


def from_json(value: Any, type: Type | Kind | str | None) -> Any:
    """Reverse `to_json` for a column of this type; unchanged if the type is unknown."""
    kind = kind_of_type(type)
    if value is None or kind is None:
        return value
    read = _READERS.get(kind)
    try:
        return value if read is None else read(value)
    except (ValueError, TypeError, ArithmeticError, KeyError):
        raise SqlError(f"a value of type {kind.value} cannot be read from {value!r:.80}") from None


def type_name(type: Type | None) -> str | None:
    """Return a type as users write it: `embedding(256)`, `numeric(10,2)`, `bigint`."""
    if type is None:
        return None
    if type.kind is Kind.VECTOR and type.dimension:
        return f"embedding({type.dimension})"
    if type.kind is Kind.TEXT and type.length:
        return f"varchar({type.length})"
    if type.kind is Kind.NUMERIC and type.precision:
        return f"numeric({type.precision},{type.scale or 0})"
    return type.kind.value


def kind_of_type(type: Type | Kind | str | None) -> Kind | None:
    """Return the kind of a type or type name; None for an unknown name."""
    if type is None or isinstance(type, Kind):
        return type
    if isinstance(type, Type):
        return type.kind
    stem = type.lower().split("(")[0].strip()
    return _NAMED.get(stem) or _KINDS.get(stem)


def kind_of_value(value: Any) -> Kind | None:
    """Return the kind of column that holds this value, or None. A text is always text."""
    if isinstance(value, np.generic):
        value = value.item()
    for types, kind in _KINDS_OF_VALUES:
        if isinstance(value, types):
            return kind
    if isinstance(value, np.ndarray) and value.ndim <= 2 and value.dtype.kind == "f" and value.size:
        return Kind.VECTOR if value.ndim == 1 else Kind.VECTORS
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.ndim <= 2 else None
    if isinstance(value, list | tuple):
        return _kind_of_list(value)
    return None


def column_types(result: Result) -> list[Type | None]:
    """Return the types of a result's columns, inferred from values if not declared."""
    types = list(result.types or (None,) * len(result.columns))
    for at, type in enumerate(types):
        first = next((row[at] for row in result.rows if row[at] is not None), None) if type is None else None
        kind = None if first is None else kind_of_value(first)
        types[at] = type if kind is None else Type(kind)
    return types


def answer_types(result: Result) -> list[str | None]:
    """Return the names of `column_types`."""
    return [type_name(type) for type in column_types(result)]


def parameters_to_json(params: Sequence[Any] | Mapping[str, Any] | None) -> dict[str, Any]:
    """Convert parameters for a request: `params`, and `param_types` for what JSON cannot express."""
    if params is None:
        return {}
    values = list(params.values() if isinstance(params, Mapping) else params)
    sent = [pack_vector(value) or to_json(value) for value in values]
    types = [kind and kind.value for kind in map(_not_in_json, values)]
    if not isinstance(params, Mapping):
        return {"params": sent} | ({"param_types": types} if any(types) else {})
    named = {name: type for name, type in zip(params, types, strict=True) if type}
    return {"params": dict(zip(params, sent, strict=True))} | ({"param_types": named} if named else {})


def parameters_from_json(params: Any, types: Any = None) -> list[Any] | dict[str, Any] | None:
    """Reverse `parameters_to_json`."""
    if params is None:
        return None
    if isinstance(params, Mapping):
        if types is not None and not isinstance(types, Mapping):
            raise refuse("param_types", "a mapping of names to types, as params is one", types)
        return {name: from_json(value, (types or {}).get(name)) for name, value in params.items()}
    if not isinstance(params, list):
        raise refuse("params", "a list or a mapping", params)
    if types is None:
        return params
    if not isinstance(types, list) or len(types) != len(params):
        raise refuse("param_types", f"a list of {len(params)} types, one for each of params", types)
    return [from_json(value, type) for value, type in zip(params, types, strict=True)]


def _not_in_json(value: Any) -> Kind | None:
    """Return the kind of a parameter that JSON would turn into a text."""
    if isinstance(value, np.generic):
        value = value.item()
    if pack_vector(value):
        return Kind.VECTOR
    plain = isinstance(value, int | str | list | tuple | Mapping | np.ndarray)
    if plain or (isinstance(value, float) and math.isfinite(value)):
        return None
    if isinstance(value, datetime) and value.tzinfo is None:
        return Kind.TIMESTAMP
    return kind_of_value(value)


def _kind_of_list(values: Sequence[Any]) -> Kind | None:
    if len(values) == 0:
        return None
    kinds = set(map(type, values))
    if kinds <= _WHOLE:
        return Kind.INTEGERS
    if kinds <= _NUMBERS:
        return Kind.VECTOR
    if kinds <= {list, tuple, np.ndarray}:
        inner = {kind_of_value(value) for value in values}
        return Kind.VECTORS if inner <= {Kind.VECTOR, Kind.INTEGERS} else Kind.JSONB
    present = kinds - {type(None)}
    return None if not present else Kind.TEXTS if present == {str} else Kind.JSONB


def _interval_text(value: timedelta) -> str:
    """Format `3 days 04:05:06.5` as PostgreSQL does; all parts of a negative interval are negative."""
    span = abs(value)
    days, micros = span.days, (span - timedelta(days=span.days)) // timedelta(microseconds=1)
    return interval_text(Interval(0, days, micros) if value >= timedelta(0) else Interval(0, -days, -micros))


def _interval(value: Any) -> Any:
    found = read_interval(value)
    return value if found.months else timedelta(days=found.days, microseconds=found.micros)


def _moment(value: str) -> datetime:
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _bytes(value: str) -> bytes:
    if not value.startswith("\\x"):
        raise ValueError(value)
    return bytes.fromhex(value[2:])


def pack_vector(value: Any) -> str | None:
    """Encode a float32 vector as base64, a quarter of the size of its numbers; None for other values."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.float32:
        return base64.b64encode(value.astype("<f4").tobytes()).decode()
    return None


def _vector(value: Any) -> Any:
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), "<f4")
    return list(map(float, value))


_READERS: dict[Kind, Any] = {
    Kind.REAL: float,
    Kind.DOUBLE: float,
    Kind.NUMERIC: lambda value: Decimal(str(value)),
    Kind.TIMESTAMPTZ: _moment,
    Kind.TIMESTAMP: datetime.fromisoformat,
    Kind.DATE: date.fromisoformat,
    Kind.TIME: time.fromisoformat,
    Kind.INTERVAL: _interval,
    Kind.UUID: UUID,
    Kind.BYTEA: _bytes,
    Kind.VECTOR: _vector,
    Kind.VECTORS: lambda value: [_vector(row) for row in value],
}

_NAMED = {
    "embedding": Kind.VECTOR,
    "varchar": Kind.TEXT,
    "json": Kind.JSONB,
}

_KINDS_OF_VALUES: tuple[tuple[Any, Kind], ...] = (
    (str, Kind.TEXT),
    (bool, Kind.BOOLEAN),
    (int, Kind.BIGINT),
    (float, Kind.DOUBLE),
    (Decimal, Kind.NUMERIC),
    (Mapping, Kind.JSONB),
    (datetime, Kind.TIMESTAMPTZ),
    (date, Kind.DATE),
    (time, Kind.TIME),
    (timedelta, Kind.INTERVAL),
    (UUID, Kind.UUID),
    ((bytes, bytearray, memoryview), Kind.BYTEA),
)
