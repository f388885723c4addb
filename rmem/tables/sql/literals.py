"""Convert texts and Python's values to the plain values of a type, with PostgreSQL's errors: what `'2024-01-05'::date`
means, and what a parameter or a value of a bulk insert is.

A plain value is what a Result holds, but for JSONB, which is parsed without rounding, and intervals, which are
`times.Interval`."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from ...errors import SqlError, SqlUnsupportedError
from ..catalog import Column, Kind, Table
from .expression_types import NAMES, element, is_array, long_name
from .json_values import check_text, json_text, parse_json, plain
from .times import Interval, at_midnight, read_interval, read_time, read_timestamp

LIMITS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}
_INTEGER = re.compile(r"\s*[+-]?(?:0x[0-9a-f]+|0o[0-7]+|0b[01]+|\d+(?:_\d+)*)\s*$", re.I)
_NUMERIC = re.compile(r"\s*[+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$", re.I)
EXACT = Context(prec=150_000, Emax=999_999, Emin=-999_999)


def read(text: str, kind: str) -> Any:
    """Parse a text as a plain value of a type."""
    if kind == "text":
        return text
    if is_array(kind):
        return read_array(text, kind)
    reader = _READERS.get(kind)
    if reader is None:
        raise SqlError(f"a text cannot become {long_name(kind)}")
    try:
        return reader(text)
    except SqlError:
        raise
    except ValueError:  # thousands of digits: Python does not read them
        raise SqlError(f'invalid input syntax for type {long_name(kind)}: "{text[:100]}…"') from None


def in_limits(value: int, kind: str) -> int:
    limit = LIMITS[kind]
    if not -limit <= value < limit:
        raise SqlError(f"{long_name(kind)} out of range")
    return value


def _integer(text: str, kind: str) -> int:
    if _INTEGER.match(text) is None:
        raise SqlError(f'invalid input syntax for type {long_name(kind)}: "{text}"')
    value = int(text.strip().replace("_", ""), 0 if re.match(r"\s*[+-]?0[xob]", text, re.I) else 10)
    if not -LIMITS[kind] <= value < LIMITS[kind]:
        raise SqlError(f'value "{text}" is out of range for type {long_name(kind)}')
    return value


def read_numeric(text: str) -> Decimal:
    try:
        value = Decimal(text.strip().replace("_", "") if len(text) <= 200_000 and _NUMERIC.match(text) else "?")
    except InvalidOperation:
        raise SqlError(f'invalid input syntax for type numeric: "{text[:100]}"') from None
    if value.adjusted() > 131_072 or int(value.as_tuple().exponent) < -16_383:
        raise SqlError("value overflows numeric format")
    exponent = int(value.as_tuple().exponent)
    return value.quantize(Decimal(1), context=Context(prec=150_000)) if exponent > 0 else value


def read_float(text: str) -> float:
    word = text.strip().lower()
    if word in ("nan", "+nan", "-nan"):
        raise SqlError("NaN is not supported; use NULL for a value that is not known")
    if word.lstrip("+-") in ("inf", "infinity"):
        return -math.inf if word.startswith("-") else math.inf
    if _NUMERIC.match(text) is None or "_" in text:
        raise SqlError(f'invalid input syntax for type double precision: "{text}"')
    value = float(text)
    if math.isinf(value):
        raise SqlError(f'"{text}" is out of range for type double precision')
    return value


def to_float4(value: float) -> float:
    """Round a double to single precision."""
    with np.errstate(over="ignore"):
        rounded = float(np.float32(value))
    if math.isinf(rounded) and not math.isinf(value):
        raise SqlError("value out of range: overflow for type real")
    return rounded


_TRUE = frozenset(word[:length] for word in ("true", "yes") for length in range(1, len(word) + 1)) | {"on", "1"}
_FALSE = frozenset(word[:length] for word in ("false", "no") for length in range(1, len(word) + 1)) | {"off", "of", "0"}


def _bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise SqlError(f'invalid input syntax for type boolean: "{text}"')
    return word in _TRUE


def _uuid(text: str) -> UUID:
    if re.fullmatch(r"\s*\{?[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7}\}?\s*", text) is None:
        raise SqlError(f'invalid input syntax for type uuid: "{text}"')
    return UUID(text.strip())


def _bytea(text: str) -> bytes:
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise SqlError("invalid hexadecimal data for type bytea") from None
    if "\\" in text:
        raise SqlUnsupportedError("bytea with octal escapes is not supported here; write it in hex: '\\x68690a'")
    return text.encode()


_READERS: dict[str, Callable[[str], Any]] = {
    **{kind: partial(_integer, kind=kind) for kind in LIMITS},
    "numeric": read_numeric,
    "float4": lambda text: to_float4(read_float(text)),
    "float8": read_float,
    "bool": _bool,
    "jsonb": parse_json,
    "timestamptz": lambda text: read_timestamp(text, zoned=True),
    "timestamp": lambda text: read_timestamp(text, zoned=False),
    "date": lambda text: read_timestamp(text, zoned=False, kind="date").date(),
    "time": read_time,
    "interval": read_interval,
    "uuid": _uuid,
    "bytea": _bytea,
}


def read_array(text: str, kind: str) -> list[Any]:
    """Parse `{1,2,NULL}`; vectors also as `[0.1, 0.2]`."""
    body = text.strip()
    if kind in ("float4[]", "float4[][]") and body.startswith("["):
        try:
            return vector(parse_json(body), kind).tolist()  # type: ignore[no-any-return]
        except SqlError:
            raise SqlError(f'malformed vector: "{body[:100]}"') from None
    wrong = SqlError(f'malformed array literal: "{text[:100]}"')
    tokens = list(_TOKEN.finditer(body))
    if "".join(token[0] for token in tokens) != body or not tokens or tokens[0][1] != "{":
        raise wrong
    rest = iter(tokens[1:])
    items = _items(rest, kind, wrong)
    if next(rest, None) is not None:
        raise wrong
    return items


_TOKEN = re.compile(r'\s*(?:([{},])|"((?:[^"\\]|\\.)*)"|([^{},"\\]+))', re.S)
"""A sign, a quoted item or a bare one."""


def _items(tokens: Iterator[re.Match[str]], kind: str, wrong: SqlError) -> list[Any]:
    """Parse the items of an array after its `{`, up to its `}`."""
    inner = element(kind)
    found: list[Any] = []
    for token in tokens:
        sign, quoted, bare = token.groups()
        if sign == "}" and not found:
            return found
        if sign == "{" and is_array(inner):
            found.append(_items(tokens, inner, wrong))
        elif sign is not None or is_array(inner) or (bare is not None and not bare.strip()):
            raise wrong
        elif quoted is not None:
            found.append(read(re.sub(r"\\(.)", r"\1", quoted, flags=re.S), inner))
        else:
            found.append(None if bare.strip().upper() == "NULL" else read(bare.strip(), inner))
        following = next(tokens, None)
        if following is None or following[1] not in (",", "}"):
            raise wrong
        if following[1] == "}":
            return found
    raise wrong


# -- callers' values -------------------------------------------------------------------------------------------


def fit(value: Any, kind: str) -> Any:
    """Return a caller's value, which is not None, as a plain value of a type."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        check_text(value, "the text")
        value = read(value, kind)
        return vector(value, kind) if kind in ("float4[]", "float4[][]") else value
    if kind == "jsonb":
        return plain(value)
    if kind in ("float4[]", "float4[][]"):
        return vector(value, kind)
    if is_array(kind):
        if not isinstance(value, (list, tuple, np.ndarray)):
            raise SqlError(f"expected a list, got {type(value).__name__}")
        items = value.tolist() if isinstance(value, np.ndarray) else value
        return [None if item is None else fit(item, element(kind)) for item in items]
    classes, words, convert = _GIVEN[kind]
    if not isinstance(value, classes) or isinstance(value, bool) != (kind == "bool"):
        raise SqlError(f"expected {words}, got {type(value).__name__}")
    if value != value or (isinstance(value, Decimal) and not value.is_finite()):
        raise SqlError(f"expected a finite number, got {value}")
    return convert(value)


def vector(value: Any, kind: str) -> npt.NDArray[np.float32]:
    """Return a vector or several vectors in single precision; refuse what is no finite number."""
    depth = kind.count("[]")
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinity, and is refused below
            data = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise SqlError("expected a list of numbers") from None
    if data.ndim != depth and data.size:
        raise SqlError(f"expected a list of {'numbers' if depth == 1 else 'vectors of one dimension'}")
    if not np.isfinite(data).all():
        raise SqlError("a vector may not hold NULL, NaN or infinity")
    return data


def _to_integer(value: Any, kind: str) -> int:
    if value != value // 1:
        raise SqlError(f"expected a whole number, got {value}")
    return in_limits(int(value), kind)


def _to_numeric(value: Any) -> Decimal:
    if isinstance(value, float) and math.isinf(value):
        raise SqlError(f"expected a finite number, got {value}")
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _to_timestamp(value: Any) -> dt.datetime:
    """Return a time in UTC; naive ones count as UTC."""
    if not isinstance(value, dt.datetime):
        return at_midnight(value, dt.UTC)
    return value.astimezone(dt.UTC) if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)


_GIVEN: dict[str, tuple[tuple[type, ...], str, Callable[[Any], Any]]] = {
    **{kind: ((int, float), "a whole number", partial(_to_integer, kind=kind)) for kind in LIMITS},
    "text": ((str,), "a text", str),
    "bool": ((bool,), "true or false", bool),
    "float4": ((int, float, Decimal), "a number", lambda value: to_float4(float(value))),
    "float8": ((int, float, Decimal), "a number", float),
    "numeric": ((int, float, Decimal), "a number", _to_numeric),
    "timestamptz": ((dt.date,), "a time", _to_timestamp),
    "timestamp": ((dt.date,), "a time", lambda value: _to_timestamp(value).replace(tzinfo=None)),
    "date": ((dt.date,), "a date", lambda value: value.date() if isinstance(value, dt.datetime) else value),
    "time": ((dt.time,), "a time of day", lambda value: value.replace(tzinfo=None)),
    "interval": (
        (dt.timedelta,),
        "a span of time",
        lambda value: Interval(0, value.days, value.seconds * 1_000_000 + value.microseconds),
    ),
    "uuid": ((UUID,), "a UUID", lambda value: value),
    "bytea": ((bytes, bytearray, memoryview), "bytes", bytes),
}
"""The classes of values that fit a type, what they are called, and how they become plain."""


# -- bulk inserts ----------------------------------------------------------------------------------------------


def check_columns(table: Table, columns: Mapping[str, Sequence[Any]]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return column names and rows of plain values that fit them; JSONB as text."""
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
    if value is None:
        if not column.nullable:
            raise SqlError(f'column "{column.name}", row {row}: NULL is not allowed')
        return None
    limits = column.type
    try:
        found = fit(value, NAMES[limits.kind])
        if limits.length is not None and len(found) > limits.length:
            raise SqlError(f"at most {limits.length} characters, got {len(found)}")
        if limits.kind in (Kind.VECTOR, Kind.VECTORS):
            found = np.asarray(found, np.float32)
            if limits.dimension is not None and found.shape[-1] != limits.dimension:
                raise SqlError(f"expected a vector of dimension {limits.dimension}, got {found.shape[-1]}")
        return json_text(found) if limits.kind is Kind.JSONB else found
    except SqlError as error:
        raise SqlError(f'column "{column.name}", row {row}: {error}') from None
