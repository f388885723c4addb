"""Parse, write and order JSONB as PostgreSQL does. Numbers that are not whole are Decimals, so that nothing is
rounded."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any
from uuid import UUID

from ...errors import SqlError

_decode = json.JSONDecoder(parse_float=Decimal, parse_constant=lambda name: _refuse(name)).decode
_quote = json.JSONEncoder(ensure_ascii=False).encode
MAX_DEPTH = 200


def _refuse(name: str) -> Any:
    raise SqlError(f'invalid input syntax for type json: token "{name}" is invalid')


def parse_json(text: str) -> Any:
    try:
        value = _decode(text)
    except ValueError as error:
        raise SqlError(f"invalid input syntax for type json: {str(error)[:120]}") from None
    except RecursionError:
        raise SqlError("invalid input for type json: it is nested too deeply") from None
    if "\\u0000" in text:
        _check_nul(value)
    return value


def _check_nul(value: Any) -> None:
    if isinstance(value, str) and "\x00" in value:
        raise SqlError("unsupported Unicode escape sequence in json: \\u0000 cannot be converted to text")
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_nul(key)
            _check_nul(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_nul(inner)


def json_text(value: Any, depth: int = 0) -> str:
    """Write a JSONB value: keys by length, then bytes; blanks after `,` and `:`."""
    if value is None or isinstance(value, (str, int)):
        return _quote(value)
    if isinstance(value, (Decimal, float)):
        return decimal_text(value if isinstance(value, Decimal) else Decimal(repr(value)))
    if depth > MAX_DEPTH:
        raise SqlError("a JSON value is nested too deeply")
    if isinstance(value, dict):
        inner = ", ".join(f"{_quote(key)}: {json_text(value[key], depth + 1)}" for key in sorted_keys(value))
        return "{" + inner + "}"
    return "[" + ", ".join(json_text(item, depth + 1) for item in value) + "]"


def sorted_keys(value: dict[str, Any]) -> list[str]:
    return sorted(value, key=lambda key: (len(key.encode()), key.encode()))


def decimal_text(value: Decimal) -> str:
    """Write a decimal without an exponent."""
    if value.is_zero() and value.is_signed():
        value = -value
    text = format(value, "f")
    if len(text) > 150_000:
        raise SqlError("value overflows numeric format")
    return text


def type_name(value: Any) -> str:
    """Return the `jsonb_typeof` of a value."""
    if value is None:
        return "null"
    names = ((bool, "boolean"), (str, "string"), (dict, "object"), (list, "array"))
    return next((name for kind, name in names if isinstance(value, kind)), "number")


def order_key(value: Any) -> tuple[Any, ...]:
    """Return the sort key of JSONB: object > array > boolean > number > string > null."""
    if value is None:
        return (0,)
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, bool):
        return (3, value)
    if isinstance(value, (int, float, Decimal)):
        return (2, value)
    if isinstance(value, list):
        if not value:
            return (-1,)  # an empty array is less than anything, which PostgreSQL keeps as an oddity
        return (4, len(value), tuple(order_key(item) for item in value))
    keys = sorted_keys(value)
    pairs = tuple(part for key in keys for part in ((len(key.encode()), key.encode()), order_key(value[key])))
    return (5, len(value), pairs)


def plain(value: Any, depth: int = 0) -> Any:
    """Convert a caller's value to JSON; the error names what JSON cannot hold."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        check_text(value, "a text in JSON")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise SqlError(f"a value cannot be written as JSON: {value} is not a number of JSON")
        return Decimal(repr(value))
    if isinstance(value, Decimal) and value.is_finite():
        return value
    if depth > MAX_DEPTH:
        raise SqlError("a JSON value is nested too deeply")
    if isinstance(value, dict):
        return {_key(key): plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner, depth + 1) for inner in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist(), depth)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise SqlError(f"a value cannot be written as JSON: {type(value).__name__} is not a value of JSON")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise SqlError(f"the keys of a JSON object must be texts, got {type(key).__name__}")
    check_text(key, "a key in JSON")
    return key


def check_text(value: str, what: str) -> None:
    """Refuse characters that no text may contain."""
    if "\x00" in value:
        raise SqlError(f"{what} holds the character NUL, which no text may")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SqlError(f"{what} is not valid Unicode: it holds half of a surrogate pair") from None
