"""Compute operators and functions of JSONB, on parsed values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ...errors import SqlError
from ..sql.casts import text_of
from ..sql.expression_types import element, is_array
from ..sql.json_values import json_text, order_key, type_name
from .sqlite_functions import NOTHING, native

_PLAIN = ("int2", "int4", "int8", "numeric", "bool", "text", "jsonb")


def as_json(value: Any, kind: str) -> Any:
    if value is None or kind in _PLAIN:
        return value
    if is_array(kind):
        return [as_json(item, element(kind)) for item in value]
    text = text_of(value, kind)
    if kind in ("float4", "float8"):
        return text if text.lstrip("-") == "Infinity" else Decimal(text)
    if kind in ("timestamp", "timestamptz"):
        text = text.replace(" ", "T") + (":00" if kind == "timestamptz" else "")
    return text


def json_key(value: Any, kind: str) -> str:
    """Convert a value to the key of a JSON object; refuse NULL, arrays and JSON."""
    if value is None:
        raise SqlError("field name must not be null")
    if kind == "jsonb" or is_array(kind):
        raise SqlError("key value must be scalar, not array, composite, or json")
    return text_of(value, kind)


def as_text(value: Any) -> str | None:
    """Return what `->>` gives: a string as it is, other values as JSON."""
    if value is None or value is NOTHING:
        return None
    return value if isinstance(value, str) else json_text(value)


def _child(value: Any, key: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(key, NOTHING) if isinstance(key, str) else NOTHING
    if isinstance(key, str):
        return NOTHING
    items = value if isinstance(value, list) else [value]  # PostgreSQL keeps a lone value as an array of one
    return items[key] if -len(items) <= key < len(items) else NOTHING


@native("#>(jsonb, text[])")
def _at(value: Any, path: list[str | None]) -> Any:
    for key in path:
        try:
            value = NOTHING if key is None else _child(value, int(key) if isinstance(value, list) else key)
        except ValueError:
            return NOTHING
        if value is NOTHING:
            return NOTHING
    return value


native("->(jsonb, text)", "->(jsonb, int4)")(_child)


native("->>(jsonb, text)", "->>(jsonb, int4)")(lambda value, key: as_text(_child(value, key)))
native("#>>(jsonb, text[])")(lambda value, path: as_text(_at(value, path)))


def contains(left: Any, right: Any, *, top: bool = True) -> bool:
    """Return whether a JSON value contains another, as `@>` does."""
    if isinstance(right, dict):
        return isinstance(left, dict) and all(
            key in left and contains(left[key], inner, top=False) for key, inner in right.items()
        )
    if isinstance(right, list):
        return isinstance(left, list) and all(any(contains(item, inner, top=False) for item in left) for inner in right)
    if isinstance(left, list) and top:
        return any(contains(item, right, top=False) for item in left)
    return not isinstance(left, (dict, list)) and order_key(left) == order_key(right)


native("@>(jsonb, jsonb)")(contains)


@native("?(jsonb, text)")
def _has(value: Any, key: str) -> bool:
    if isinstance(value, dict):
        return key in value
    return any(item == key for item in value if isinstance(item, str)) if isinstance(value, list) else value == key


@native("||(jsonb, jsonb)")
def _join_json(left: Any, right: Any) -> Any:
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **right}
    first = left if isinstance(left, list) else [left]
    return first + (right if isinstance(right, list) else [right])


@native("-(jsonb, text)")
def _without(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: inner for name, inner in value.items() if name != key}
    if isinstance(value, list):
        return [item for item in value if item != key]
    raise SqlError("cannot delete from scalar")


@native("jsonb_set(jsonb, text[], jsonb)", "jsonb_set(jsonb, text[], jsonb, bool)")
def _set(value: Any, path: list[str | None], new: Any, create: bool = True) -> Any:
    """Return a copy with a new value at a path; unchanged if the path does not exist."""
    if not isinstance(value, (dict, list)):
        raise SqlError("cannot set path in scalar")
    if not path or path[0] is None:
        return value
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    place: str | int = path[0]
    if isinstance(value, list):
        try:
            place = int(path[0])
        except ValueError:
            raise SqlError(f'path element is not an integer: "{path[0]}"') from None
        place = place if place >= 0 else place + len(value)
    inner = NOTHING if isinstance(place, int) and place < 0 else _child(value, place)
    if len(path) > 1:
        if not isinstance(inner, (dict, list)):
            return value
        copy[place] = _set(inner, path[1:], new, create)
    elif inner is not NOTHING or (create and isinstance(value, dict)):
        copy[place] = new
    elif create:
        copy.insert(0 if int(place) < 0 else len(copy), new)
    return copy


native("jsonb_typeof(jsonb)")(type_name)


@native("jsonb_array_length(jsonb)")
def _length(value: Any) -> int:
    if not isinstance(value, list):
        raise SqlError(f"cannot get array length of a {'non-array' if isinstance(value, dict) else 'scalar'}")
    return len(value)


@native("jsonb_build_object(any)", "jsonb_build_object()", strict=False, kinds=True)
def _build_object(kinds: tuple[str, ...], *values: Any) -> dict[str, Any]:
    if len(values) % 2:
        raise SqlError("argument list must have even number of elements")
    pairs = [
        (json_key(values[at], kinds[at]), as_json(values[at + 1], kinds[at + 1])) for at in range(0, len(values), 2)
    ]
    return dict(pairs)


@native("jsonb_build_array(any)", "jsonb_build_array()", strict=False, kinds=True)
def _build_array(kinds: tuple[str, ...], *values: Any) -> list[Any]:
    return [as_json(value, kind) for value, kind in zip(values, kinds, strict=True)]


@native("to_jsonb(any)", kinds=True)
def _to_json(kinds: tuple[str, ...], value: Any) -> Any:
    return as_json(value, kinds[0])
