"""Cache parsed and bound statements: both steps take longer than running most statements."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cachetools import LRUCache
from sqlglot import exp

from ...forks import new_lock
from .parameters import Parameters, number_parameters
from .parse import parse

_SIZE = 512
_LONGEST = 20_000  # characters of a statement that is kept
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A parsed statement. Its tree is shared: copy it before changing it."""

    tree: exp.Expression
    explain: bool
    parameters: Parameters


def prepare(sql: str) -> Prepared:
    statement = parse(sql)
    return Prepared(statement.tree, statement.explain, number_parameters(statement.tree))


class Cache(Generic[T]):
    """A cache of statements; the first part of a key is the text. Thread-safe."""

    def __init__(self) -> None:
        self._items: LRUCache[tuple[Hashable, ...], T] = LRUCache(_SIZE)
        self._lock = new_lock()

    def get(self, sql: str, *more: Hashable) -> T | None:
        with self._lock:
            return self._items.get((sql, *more))

    def put(self, item: T, sql: str, *more: Hashable) -> None:
        if len(sql) <= _LONGEST:
            with self._lock:
                self._items[sql, *more] = item
