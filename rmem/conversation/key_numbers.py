"""Number keys such as `exp_7`: each number is used once, also after deletions and by many processes."""

from __future__ import annotations

from collections import defaultdict

from ..forks import new_lock
from ..stores.base import RecordStore
from ..stores.capabilities import Counters


class KeyNumbers:
    """Counts in memory, for a store that ends with the process."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._next: dict[str, int] = defaultdict(int)
        self._lock = new_lock()

    def next_number(self, stem: str) -> int:
        """Return the next number after `stem` that no memory has or ever had."""
        with self._lock:
            number = self._next[stem]
            while self._store.get(f"{stem}{number}") is not None:  # an id that a caller chose
                number += 1
            self._next[stem] = number + 1
            return number


class StoredKeyNumbers(KeyNumbers):
    """Counts in the store, for all processes that share it."""

    def __init__(self, store: Counters) -> None:
        super().__init__(store)
        self._counters = store

    def next_number(self, stem: str) -> int:
        return self._counters.next_number(stem)


def numbers_for(store: RecordStore) -> KeyNumbers:
    return StoredKeyNumbers(store) if isinstance(store, Counters) else KeyNumbers(store)
