"""Write values as PostgreSQL's text, and cast them to other types."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import partial
from typing import Any

import numpy as np

from ...errors import SqlError
from ..catalog import Type
from .expression_types import INTEGERS, NUMBERS, element, is_array, long_name
from .json_values import decimal_text, json_text, type_name
from .literals import EXACT, in_limits, read, to_float4
from .times import at_midnight, interval_text, time_text, timestamp_text


def float_text(value: float, *, single: bool = False) -> str:
    """Return the shortest digits that give the number back, in PostgreSQL's format."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    number = Decimal(str(np.float32(value)) if single else repr(value))
    if number.is_zero():
        return "-0" if math.copysign(1, value) < 0 else "0"
    exponent = number.adjusted()
    if -4 <= exponent < (6 if single else 15):
        return format(number.normalize(), "f")
    sign, figures, _ = number.normalize().as_tuple()
    head, tail = str(figures[0]), "".join(map(str, figures[1:]))
    mantissa = f"{head}.{tail}" if tail else head
    return f"{'-' if sign else ''}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def text_of(value: Any, kind: str) -> str:
    if kind == "bool":
        return "true" if value else "false"
    if is_array(kind):
        return array_text(value, element(kind))
    written = _TEXTS.get(kind)
    return written(value) if written is not None else str(value)


_TEXTS: dict[str, Callable[[Any], str]] = {
    "text": str,
    "numeric": decimal_text,
    "float8": float_text,
    "float4": lambda value: float_text(value, single=True),
    "jsonb": json_text,
    "timestamptz": timestamp_text,
    "timestamp": timestamp_text,
    "time": time_text,
    "interval": interval_text,
    "bytea": lambda value: f"\\x{value.hex()}",
}


def item_text(value: Any, kind: str) -> str:
    """Convert a plain value to text as arrays and text functions do: booleans are t and f."""
    return ("t" if value else "f") if kind == "bool" else text_of(value, kind)


def array_text(value: list[Any], kind: str) -> str:
    return "{" + ",".join(_array_item(item, kind) for item in value) + "}"


def _array_item(item: Any, kind: str) -> str:
    if item is None:
        return "NULL"
    if is_array(kind):
        return array_text(item, element(kind))
    text = item_text(item, kind)
    if text == "" or text.upper() == "NULL" or any(sign in '{},"\\ \t\n\r\v\f' for sign in text):
        inner = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{inner}"'
    return text


def round_half_up(value: Decimal, scale: int) -> Decimal:
    """Round half away from zero, as numeric does."""
    rounded = value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=EXACT)
    return rounded if scale >= 0 else rounded.quantize(Decimal(1), context=EXACT)


def fit_numeric(value: Decimal, limits: Type) -> Decimal:
    """Fit a number to numeric(p, s)."""
    if limits.precision is None:
        return value
    scale = limits.scale or 0
    try:
        rounded = round_half_up(value, scale)
    except InvalidOperation:
        rounded = value
    if not rounded.is_zero() and rounded.adjusted() >= limits.precision - scale:
        raise SqlError(f"numeric field overflow: numeric({limits.precision},{scale}) cannot hold {decimal_text(value)}")
    return rounded


def _float_to_integer(value: float, kind: str) -> int:
    if math.isinf(value):
        raise SqlError(f"{long_name(kind)} out of range")
    return in_limits(round(value), kind)


def _float_to_numeric(value: float, digits: int) -> Decimal:
    if math.isinf(value):
        raise SqlError("cannot convert infinity to numeric")
    return Decimal(format(Decimal(f"{value:.{digits}g}"), "f"))


def converter(source: str, target: str) -> Callable[[Any], Any]:
    """Return a function from plain values of one type to another."""
    if source == target:
        return lambda value: value
    if is_array(source) and is_array(target):
        inner = converter(element(source), element(target))
        return lambda value: [None if item is None else inner(item) for item in value]
    if target == "text":
        return lambda value: text_of(value, source)
    if source == "text":
        return lambda value: read(value, target)
    found = _CASTS.get((source, target))
    if found is None:
        raise SqlError(f"cannot cast type {long_name(source)} to {long_name(target)}")
    return found


def _from_json(value: Any, target: str) -> Any:
    if type_name(value) != ("boolean" if target == "bool" else "number"):
        raise SqlError(f"cannot cast jsonb {type_name(value)} to type {long_name(target)}")
    return value if target == "bool" else converter("numeric", target)(Decimal(value))


def _numeric_to_integer(value: Decimal, kind: str) -> int:
    return in_limits(int(round_half_up(value, 0)), kind)


def _to_float(value: Any) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise SqlError("value out of range for type double precision")
    return number


_CASTS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("bool", "int4"): int,
    ("int4", "bool"): bool,
    ("numeric", "float8"): _to_float,
    ("numeric", "float4"): lambda value: to_float4(_to_float(value)),
    ("float8", "float4"): to_float4,
    ("float4", "float8"): float,
    ("float8", "numeric"): partial(_float_to_numeric, digits=15),
    ("float4", "numeric"): partial(_float_to_numeric, digits=6),
    ("date", "timestamp"): at_midnight,
    ("date", "timestamptz"): lambda value: at_midnight(value, dt.UTC),
    ("timestamp", "timestamptz"): lambda value: value.replace(tzinfo=dt.UTC),
    ("timestamptz", "timestamp"): lambda value: value.replace(tzinfo=None),
    ("timestamp", "date"): dt.datetime.date,
    ("timestamptz", "date"): dt.datetime.date,
    ("timestamp", "time"): dt.datetime.time,
    ("timestamptz", "time"): dt.datetime.time,
}
for _kind in INTEGERS:
    _CASTS[_kind, "numeric"] = Decimal
    _CASTS[_kind, "float8"] = float
    _CASTS[_kind, "float4"] = lambda value: to_float4(float(value))
    _CASTS["numeric", _kind] = partial(_numeric_to_integer, kind=_kind)
    _CASTS["float4", _kind] = _CASTS["float8", _kind] = partial(_float_to_integer, kind=_kind)
    for _other in INTEGERS:
        _CASTS[_other, _kind] = partial(in_limits, kind=_kind)
for _kind in ("bool", *NUMBERS):
    _CASTS["jsonb", _kind] = partial(_from_json, target=_kind)
