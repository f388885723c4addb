"""Cache parsed and bound statements: both steps take longer than running most statements."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

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
        self._items: OrderedDict[tuple[Hashable, ...], T] = OrderedDict()
        self._lock = new_lock()

    def get(self, sql: str, *more: Hashable) -> T | None:
        with self._lock:
            found = self._items.get((sql, *more))
            if found is not None:
                self._items.move_to_end((sql, *more))
            return found

    def put(self, item: T, sql: str, *more: Hashable) -> None:
        if len(sql) > _LONGEST:
            return
        with self._lock:
            self._items[sql, *more] = item
            self._items.move_to_end((sql, *more))
            if len(self._items) > _SIZE:
                self._items.popitem(last=False)
