"""Compute functions and operators of arrays, on Python's lists; and GREATEST and LEAST."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import SqlError
from ..deadline import check_each
from ..sql.casts import item_text
from ..sql.expression_types import element
from .sqlite_functions import native
from .sqlite_storage import sort_key

List = list[Any]
MAX_ELEMENTS = 2_000_000  # as many as generate_series gives


@native("subscript")
def _subscript(array: List, at: int) -> Any:
    return array[at - 1] if 1 <= at <= len(array) else None


@native("array_length(anyarray, int4)")
def _array_length(array: List, at: int) -> int | None:
    for _ in range(at - 1):
        if not array or not isinstance(array[0], list):
            return None
        array = array[0]
    return len(array) or None if at > 0 else None


@native("cardinality(anyarray)")
def _cardinality(array: List) -> int:
    return sum(_cardinality(item) if isinstance(item, list) else 1 for item in array)


@native("array_append(anyarray, anyelement)", "||(anyarray, anyelement)", strict=False)
def _append(array: List | None, item: Any) -> List:
    return [*(array or []), item]


@native("||(anyelement, anyarray)", strict=False)
def _prepend(item: Any, array: List | None) -> List:
    return [item, *(array or [])]


@native("||(anyarray, anyarray)", strict=False)
def _cat(left: List | None, right: List | None) -> List | None:
    return None if left is None and right is None else [*(left or []), *(right or [])]


@native("array_position(anyarray, anyelement)", strict=False, kinds=True)
def _position(kinds: tuple[str, ...], array: List | None, item: Any) -> int | None:
    return next((at for at, other in enumerate(array or [], 1) if same(kinds[1], other, item)), None)


def same(kind: str, left: Any, right: Any) -> bool:
    """Return whether two values are not distinct."""
    if left is None or right is None:
        return left is right
    key = sort_key(kind)
    return bool(key(left) == key(right))


@native("array_remove(anyarray, anyelement)", strict=False, kinds=True)
def _remove(kinds: tuple[str, ...], array: List | None, item: Any) -> List | None:
    return None if array is None else [other for other in array if not same(kinds[1], other, item)]


@native("array_to_string(anyarray, text)", "array_to_string(anyarray, text, text)", strict=False, kinds=True)
def _to_string(
    kinds: tuple[str, ...], array: List | None, separator: str | None, null: str | None = None
) -> str | None:
    if array is None or separator is None:
        return None
    kind = element(kinds[0])
    parts = [null if item is None else item_text(item, kind) for item in array]
    return separator.join(part for part in parts if part is not None)


@native("string_to_array(text, text)", "string_to_array(text, text, text)", strict=False)
def string_to_array(text: str | None, separator: str | None, null: str | None = None) -> List | None:
    if text is None:
        return None
    if text == "":
        return []
    count = len(text) if separator is None else text.count(separator) + 1 if separator else 1
    if count > MAX_ELEMENTS:
        raise SqlError(f"an array may have {MAX_ELEMENTS:,} elements, this one would have {count:,}")
    parts = list(text) if separator is None else text.split(separator) if separator else [text]
    return [None if null is not None and part == null else part for part in check_each(parts)]


def _held(kinds: tuple[str, ...], left: List, right: List) -> Iterator[bool]:
    """Yield for each element of the right array whether the left one has it."""
    key = sort_key(element(kinds[0]))
    own = {key(item) for item in left if item is not None}
    return (item is not None and key(item) in own for item in right)


native("@>(anyarray, anyarray)", kinds=True)(lambda *given: all(_held(*given)))
native("&&(anyarray, anyarray)", kinds=True)(lambda *given: any(_held(*given)))


@native("<->(float4[], float4[])")
def _euclidean(left: bytes, right: bytes) -> float | None:
    if not left or not right:
        return None
    if len(left) != len(right):
        raise SqlError(f"different vector dimensions {len(left) // 4} and {len(right) // 4}")
    apart = np.frombuffer(left, "<f4").astype(np.float64) - np.frombuffer(right, "<f4")
    return float(np.sqrt(apart @ apart))


for _name, _choose in {"greatest": max, "least": min}.items():
    native(f"{_name}(anyelement)", strict=False, kinds=True)(
        lambda kinds, *values, choose=_choose: choose(
            (value for value in values if value is not None), key=sort_key(kinds[0]), default=None
        )
    )
