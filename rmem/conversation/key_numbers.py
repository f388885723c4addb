"""Number keys such as `exp_7`: each number is used once, also after deletions and by many processes."""

from __future__ import annotations

from collections import defaultdict

from ..forks import new_lock
from ..stores.base import RecordStore
from ..stores.capabilities import Counters


class Numbers:
    """Counts in this process, for a store that ends with it."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._next: dict[str, int] = defaultdict(int)
        self._lock = new_lock()

    def take(self, stem: str) -> int:
        """The next number behind `stem` that no memory has, nor ever had."""
        with self._lock:
            number = self._next[stem]
            while self._store.get(f"{stem}{number}") is not None:  # somebody chose that id
                number += 1
            self._next[stem] = number + 1
            return number


class KeptNumbers(Numbers):
    """Counts in the store itself, for all processes that share it."""

    def __init__(self, store: Counters) -> None:
        super().__init__(store)
        self._counters = store

    def take(self, stem: str) -> int:
        return self._counters.next_number(stem)


def numbers_for(store: RecordStore) -> Numbers:
    return KeptNumbers(store) if isinstance(store, Counters) else Numbers(store)
