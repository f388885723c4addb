"""Limit the memory of all search indexes of a process. The least recently used are dropped, and built again when
needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Protocol

from ...forks import new_lock


class MemoryHolder(Protocol):
    """Something that takes memory."""

    @property
    def nbytes(self) -> int: ...


class Allowance:
    """At most `most` bytes for everything that is registered by `use`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = new_lock()
        self._total = 0
        self._held: dict[MemoryHolder, tuple[int, Callable[[], None]]] = {}  # the last is the one used last

    def bound(self, most: int) -> None:
        """Change the limit."""
        self._most = most

    def use(self, needed: dict[MemoryHolder, Callable[[], None]]) -> None:
        """Register things in use, each with the function that drops it."""
        with self._lock:
            for held, let_go in needed.items():
                self._forget(held)
                self._held[held] = held.nbytes, let_go
                self._total += self._held[held][0]
            gone = []
            for held in list(self._held):
                if self._total <= self._most:
                    break
                if held not in needed:
                    gone.append(self._held[held][1])
                    self._forget(held)
        for let_go in gone:
            let_go()

    def release(self, those: Iterable[MemoryHolder]) -> None:
        """Unregister things that are gone."""
        with self._lock:
            for held in those:
                self._forget(held)

    def _forget(self, held: MemoryHolder) -> None:
        size, _ = self._held.pop(held, (0, None))
        self._total -= size


def quarter_of_memory() -> int:
    """Return a quarter of this machine's memory; 2 GiB if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, OSError, ValueError):
        return 2 << 30


SHARED = Allowance(quarter_of_memory())
"""That of this process."""
