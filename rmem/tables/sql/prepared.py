"""Statements that were read before: reading and binding take longer than running most of them."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlglot import exp

from ...forks import new_lock
from .parameters import Parameters, numbered
from .parse import parse

KEPT = 512
MAX_LENGTH = 20_000
_MOMENTARY = re.compile(r"'\s*(?:now|today|tomorrow|yesterday)\b", re.IGNORECASE)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement that was read. Its tree is shared: whoever changes it works on a copy."""

    tree: exp.Expression
    explain: bool
    parameters: Parameters
    lasting: bool
    """Whether it means the same the next time; `'now'::timestamptz` does not."""


def prepare(sql: str) -> Prepared:
    statement = parse(sql)
    lasting = len(sql) <= MAX_LENGTH and _MOMENTARY.search(sql) is None
    return Prepared(statement.tree, statement.explain, numbered(statement.tree), lasting)


class Kept(Generic[T]):
    """The newest of what was made, by what it was made from. Safe to use from many threads."""

    def __init__(self, count: int = KEPT) -> None:
        self._count = count
        self._items: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = new_lock()

    def get(self, key: Hashable, make: Callable[[], T], keep: Callable[[T], bool]) -> T:
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        made = make()
        if keep(made):
            self.put(key, made)
        return made

    def find(self, key: Hashable) -> T | None:
        with self._lock:
            return self._items.get(key)

    def put(self, key: Hashable, item: T) -> None:
        with self._lock:
            self._items[key] = item
            self._items.move_to_end(key)
            while len(self._items) > self._count:
                self._items.popitem(last=False)
