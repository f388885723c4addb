"""Count accesses in memory and write them later, so that reads never wait for a write."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from ..forks import new_lock
from ..models import Memory

_MAX_PENDING = 65_536
_MAX_WAIT = 1.0  # seconds that counts may wait if something is written anyway

Waiting = Mapping[str, tuple[float, int]]  # id → when last, how often


class Touches:
    """Pending access counts by memory id."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._waiting: dict[str, tuple[float, int]] = {}
        self._since = 0.0

    def __bool__(self) -> bool:
        """Whether counts are pending."""
        return bool(self._waiting)

    def add(self, keys: Sequence[str], when: float) -> bool:
        """Count an access of each; return whether it is time to write them."""
        with self._lock:
            if not self._waiting:
                self._since = time.monotonic()
            for key in keys:
                last, count = self._waiting.get(key, (when, 0))
                self._waiting[key] = max(last, when), count + 1
            return len(self._waiting) >= _MAX_PENDING

    def take(self) -> Waiting:
        """Remove and return all pending counts, to write them now."""
        with self._lock:
            taken, self._waiting = self._waiting, {}
            return taken

    def put_back(self, taken: Waiting) -> None:
        """Add counts again that could not be written."""
        with self._lock:
            for key, (last, count) in taken.items():
                newer, more = self._waiting.get(key, (last, 0))
                self._waiting[key] = max(last, newer), count + more

    def drop(self, keys: Iterable[str]) -> None:
        with self._lock:
            for key in keys:
                self._waiting.pop(key, None)

    def due(self, memories: Iterable[Memory]) -> bool:
        """Whether pending counts must be written before these memories: a copy with its counts would be counted
        twice."""
        with self._lock:
            return bool(self._waiting) and (
                time.monotonic() - self._since > _MAX_WAIT
                or any(memory.memory_id in self._waiting for memory in memories)
            )

    def add_pending(self, memories: Iterable[Memory | None]) -> None:
        """Add their pending counts to memories."""
        for memory in memories if self._waiting else ():
            if memory is not None and (waiting := self._waiting.get(memory.memory_id)) is not None:
                memory.bookkeeping.last_access_time = max(memory.bookkeeping.last_access_time, waiting[0])
                memory.bookkeeping.retrieval_count += waiting[1]
