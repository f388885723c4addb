"""Limits of each organisation: how many requests a second, and how many at once."""

from __future__ import annotations

import math
import time
from collections import Counter

from cachetools import LRUCache

from .settings import Limits


class Buckets:
    """A token bucket for each organisation. Used by the event loop only, so nothing is locked."""

    def __init__(self, limits: Limits) -> None:
        self._rate, self._burst, self._most = limits.requests_per_second, float(limits.burst), limits.concurrent
        self._left: LRUCache[str, tuple[float, float]] = LRUCache(100_000)
        self._running: Counter[str] = Counter()

    def enter(self, org: str) -> float | None:
        """Admit a request: return None, or the seconds after which to retry."""
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


def retry_after(seconds: float) -> str:
    return str(max(1, math.ceil(seconds)))
