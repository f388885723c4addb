"""Limit the memory of all search indexes of a process. The least recently used are dropped, and built again when
needed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Protocol

from ...forks import new_lock


class Droppable(Protocol):
    """Something that takes memory and can be built again."""

    @property
    def nbytes(self) -> int: ...

    def drop(self) -> None: ...


class Allowance:
    """At most `most` bytes for everything that is registered by `use`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = new_lock()
        self._total = 0
        self._held: dict[Droppable, int] = {}  # with their bytes; the last is the one used last

    def bound(self, most: int) -> None:
        self._most = most

    def use(self, used: Sequence[Droppable]) -> None:
        """Register things in use; drop others if they are too much together."""
        gone = []
        with self._lock:
            for held in used:
                size = held.nbytes
                self._total += size - self._held.pop(held, 0)
                self._held[held] = size
            while self._total > self._most and (oldest := next(iter(self._held))) not in used:
                self._total -= self._held.pop(oldest)
                gone.append(oldest)
        for held in gone:
            held.drop()

    def release(self, those: Iterable[Droppable]) -> None:
        """Unregister what is gone."""
        with self._lock:
            self._total -= sum(self._held.pop(held, 0) for held in those)


def quarter_of_memory() -> int:
    """Return a quarter of this machine's memory; 2 GiB if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, OSError, ValueError):
        return 2 << 30


SHARED = Allowance(quarter_of_memory())
"""That of this process."""
