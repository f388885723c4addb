"""The order of plain values, as PostgreSQL sees it in the collation C."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..sql.json_values import order_key
from ..sql.types import element, is_array


@lru_cache(maxsize=256)
def sort_key(kind: str) -> Callable[[Any], Any]:
    """A function from a plain value to something that Python orders and hashes the same way."""
    if kind == "jsonb":
        return order_key
    if kind == "interval":
        return lambda value: value.total
    if is_array(kind):
        inner = sort_key(element(kind))
        return lambda value: tuple((item is None, None if item is None else inner(item)) for item in value)
    return lambda value: value
