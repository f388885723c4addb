"""The time limit of a statement: set once per thread and checked by every step, from parsing to building indexes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

from ..errors import StatementTimeoutError

T = TypeVar("T")
_EVERY = 256  # items between two looks at the clock


class Deadline:
    """A point in time, `seconds` from now."""

    __slots__ = ("end", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end = seconds, monotonic() + seconds


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def time_limit(limit: Deadline | float | None) -> Iterator[None]:
    """Limit the time of the block in this thread, by a deadline or seconds. The nearest of nested limits counts."""
    made = Deadline(limit) if isinstance(limit, int | float) else limit
    outer = _current.get()
    if made is None or (outer is not None and outer.end <= made.end):
        yield
        return
    token = _current.set(made)
    try:
        yield
    finally:
        _current.reset(token)


def check() -> None:
    """Raise StatementTimeoutError if the time is over."""
    deadline = _current.get()
    if deadline is not None and monotonic() > deadline.end:
        raise timeout_error()


def left() -> float | None:
    """Return the remaining seconds, None without a limit; StatementTimeoutError if it is over."""
    check()
    deadline = _current.get()
    return None if deadline is None else max(deadline.end - monotonic(), 0.001)


def is_over() -> bool:
    deadline = _current.get()
    return deadline is not None and monotonic() > deadline.end


def timeout_error() -> StatementTimeoutError:
    deadline = _current.get()
    limit = "too long" if deadline is None else f"longer than {deadline.seconds:.3g} s"
    return StatementTimeoutError(f"the statement ran {limit} and was stopped")


def check_each(items: Iterable[T]) -> Iterator[T]:
    """Yield the items of a long loop, checking the time now and then."""
    for number, item in enumerate(items):
        if not number % _EVERY:
            check()
        yield item
