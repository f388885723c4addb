"""A circuit breaker: after a remote failure, refuse calls at once instead of waiting for a timeout. After a pause,
which doubles while failures continue, one call is let through; if it succeeds, all are."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from threading import get_ident
from types import TracebackType
from typing import Literal, Self, TypeVar

from .. import checks
from ..errors import StoreUnreachableError
from ..forks import new_lock

Result = TypeVar("Result")
State = Literal["closed", "open", "half-open"]


class CircuitBreaker:
    """`with breaker: …` or `breaker.call(work)`. Only a StoreUnreachableError opens it; any other error shows that the
    server answers. All errors are passed on. `on_return` is a list of functions that are called without arguments when
    the server answers again, by the caller that noticed, before its call returns."""

    def __init__(
        self,
        name: str,
        *,
        first: float = 0.5,
        longest: float = 30.0,
        jitter: float = 0.2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.on_return: list[Callable[[], None]] = []
        self._first = checks.number("first", first, low=0)
        self._longest = checks.number("longest", longest, low=self._first)
        self._jitter = checks.share("jitter", jitter)
        self._clock = clock
        self._random = random.Random()
        self._lock = new_lock()
        self._failures = 0  # in a row
        self._try_at = 0.0
        self._trier: int | None = None  # the thread whose call tests the server

    @property
    def state(self) -> State:
        with self._lock:
            if not self._failures:
                return "closed"
            return "half-open" if self._trier is not None or self._clock() >= self._try_at else "open"

    @property
    def wait(self) -> float:
        """Return the seconds until the next call is let through; 0 if it is let through now."""
        with self._lock:
            return max(0.0, self._try_at - self._clock()) if self._failures else 0.0

    def call(self, work: Callable[[], Result]) -> Result:
        """Run `work`; raise StoreUnreachableError at once while the breaker is open."""
        with self:
            return work()

    def __enter__(self) -> Self:
        with self._lock:
            if self._failures:
                left = self._try_at - self._clock()
                if self._trier is not None or left > 0:
                    again = "somebody is trying it now" if self._trier is not None else f"next try in {left:.1f} s"
                    raise StoreUnreachableError(f"{self.name} does not answer; {again}")
                self._trier = get_ident()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            trying = self._trier == get_ident()
            if trying:
                self._trier = None
            if isinstance(error, StoreUnreachableError):
                if trying or not self._failures:  # calls that began before the breaker opened do not count
                    self._fail()
                return
            back = trying and (error is None or isinstance(error, Exception))  # an interrupted call proves nothing
            if back:
                self._failures = 0
        if back:
            for tell in self.on_return:
                tell()

    def _fail(self) -> None:
        pause = min(self._longest, self._first * 2.0 ** min(self._failures, 60))
        self._failures += 1
        self._try_at = self._clock() + pause * (1 + self._random.uniform(-self._jitter, self._jitter))
