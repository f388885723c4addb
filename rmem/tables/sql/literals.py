"""Parse texts as values of a type, with PostgreSQL's errors: what `'2024-01-05'::date` means.

Inside statements a value has a plain form: whole numbers are int, numeric is Decimal, timestamps, dates and times are
the numbers of `times`, JSONB is parsed, arrays are lists, UUIDs are text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from uuid import UUID

import numpy as np

from ...errors import SqlError, SqlUnsupportedError
from .expression_types import element, is_array, long_name
from .json_values import parse_json
from .times import read_date, read_interval, read_time, read_timestamp

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


def _integer(kind: str) -> Callable[[str], int]:
    def reader(text: str) -> int:
        if _INTEGER.match(text) is None:
            raise SqlError(f'invalid input syntax for type {long_name(kind)}: "{text}"')
        value = int(text.strip().replace("_", ""), 0 if re.match(r"\s*[+-]?0[xob]", text, re.I) else 10)
        if not -LIMITS[kind] <= value < LIMITS[kind]:
            raise SqlError(f'value "{text}" is out of range for type {long_name(kind)}')
        return value

    return reader


def read_numeric(text: str) -> Decimal:
    if len(text) > 200_000 or _NUMERIC.match(text) is None:
        raise SqlError(f'invalid input syntax for type numeric: "{text[:100]}"')
    try:
        value = Decimal(text.strip().replace("_", ""))
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


def _float4(text: str) -> float:
    return to_float4(read_float(text))


_TRUE = frozenset(word[:length] for word in ("true", "yes") for length in range(1, len(word) + 1)) | {"on", "1"}
_FALSE = frozenset(word[:length] for word in ("false", "no") for length in range(1, len(word) + 1)) | {"off", "of", "0"}


def _bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise SqlError(f'invalid input syntax for type boolean: "{text}"')


def _uuid(text: str) -> str:
    try:
        if re.fullmatch(r"\s*\{?[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7}\}?\s*", text) is None:
            raise ValueError
        return str(UUID(text.strip()))
    except ValueError:
        raise SqlError(f'invalid input syntax for type uuid: "{text}"') from None


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
    "int2": _integer("int2"),
    "int4": _integer("int4"),
    "int8": _integer("int8"),
    "numeric": read_numeric,
    "float4": _float4,
    "float8": read_float,
    "bool": _bool,
    "jsonb": parse_json,
    "timestamptz": lambda text: read_timestamp(text, zoned=True),
    "timestamp": lambda text: read_timestamp(text, zoned=False),
    "date": read_date,
    "time": read_time,
    "interval": read_interval,
    "uuid": _uuid,
    "bytea": _bytea,
}


def read_array(text: str, kind: str) -> list[Any]:
    """Parse `{1,2,NULL}`; vectors also as `[0.1, 0.2]`."""
    body = text.strip()
    if kind in ("float4[]", "float4[][]") and body.startswith("["):
        return _read_bracketed(body, kind)
    wrong = SqlError(f'malformed array literal: "{text[:100]}"')
    tokens = list(_TOKEN.finditer(body))
    if "".join(token[0] for token in tokens) != body or not tokens or tokens[0][1] != "{":
        raise wrong
    rest = iter(tokens[1:])
    items = _items(rest, kind, wrong)
    if next(rest, None) is not None:
        raise wrong
    return items


def _read_bracketed(body: str, kind: str) -> list[Any]:
    try:
        value = parse_json(body)
    except SqlError:
        raise SqlError(f'malformed vector: "{body[:100]}"') from None
    return vector(value) if kind == "float4[]" else [vector(row) for row in value]


def vector(value: Any) -> list[Any]:
    """Check a list of finite numbers and round it to single precision; None is allowed only in an array of a query."""
    if not isinstance(value, list) or any(
        isinstance(item, bool) or not isinstance(item, (int, float, Decimal)) for item in value
    ):
        raise SqlError("a vector must be a list of numbers")
    return [to_float4(float(item)) for item in value]


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
