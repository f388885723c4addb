"""Limits of each organisation: how many requests a second, how many at once, and how much on disk."""

from __future__ import annotations

import math
import time
from collections import Counter
from pathlib import Path
from threading import Lock

from cachetools import LRUCache, TTLCache
from fastapi import HTTPException

from .settings import Limits, ServerSettings

_MEASURED_EVERY = 2.0


class Buckets:
    """A token bucket for each organisation. Used by the event loop only, so nothing is locked."""

    def __init__(self, limits: Limits) -> None:
        self._rate, self._burst, self._most = limits.requests_per_second, float(limits.burst), limits.concurrent
        self._left: LRUCache[str, tuple[float, float]] = LRUCache(100_000)
        self._running: Counter[str] = Counter()

    def enter(self, org: str) -> float | None:
        """None to come in; else the seconds after which it may be tried again."""
        now = time.monotonic()
        left, at = self._left.get(org, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        if left < 1:
            self._left[org] = (left, now)
            return (1 - left) / self._rate
        if self._running[org] >= self._most:
            return 1.0
        self._left[org] = (left - 1, now)
        self._running[org] += 1
        return None

    def leave(self, org: str) -> None:
        self._running[org] -= 1
        if not self._running[org]:
            del self._running[org]


class DiskUse:
    """How much the files of each organisation take, looked up again every two seconds."""

    def __init__(self, settings: ServerSettings) -> None:
        self._data, self._most = settings.data, settings.limits.disk_bytes
        self._measures = settings.store is None  # a database measures for itself
        self._lock = Lock()
        self._known: TTLCache[str, int] = TTLCache(100_000, _MEASURED_EVERY)

    def is_full(self, org: str) -> bool:
        """Whether an organisation has used up its space."""
        return self._used(org) >= self._most

    def check(self, org: str) -> None:
        """Refuse to write for an organisation that has."""
        used = self._used(org)
        if used >= self._most:
            told = f"the organisation uses {used:,} bytes on disk and may use {self._most:,} (disk_bytes)"
            raise HTTPException(507, f"{told}; forget memories or drop tables first")

    def _used(self, org: str) -> int:
        if not self._measures:
            return 0
        with self._lock:
            used = self._known.get(org)
            if used is None:
                used = self._known[org] = used_bytes(self._data / org)
            return used


def used_bytes(folder: Path) -> int:
    """What the files of a folder hold; pages that SQLite has free for what comes next are not counted."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
            if path.suffix == ".db":
                with path.open("rb") as file:
                    head = file.read(40)
                page = int.from_bytes(head[16:18], "big")
                total -= int.from_bytes(head[36:40], "big") * (65536 if page == 1 else page)
        except FileNotFoundError:
            continue  # a write-ahead log that was just removed
    return total


def retry_after(seconds: float) -> str:
    return str(max(1, math.ceil(seconds)))
