"""Receipts: a store records the result of a request's writes in the same transaction, so that the request can be
repeated after its answer was lost. Finished writes return their recorded result; the others are executed.

    with receipts.request(receipts.Request(number)):
        brain.remember("…")  # repeated with the same number: nothing is written, and the same id is returned

The writes of a request are numbered by kind, so it must make the same ones in the same order each time."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

KEPT_SECONDS = 86_400.0
PREFIX = "receipt/"
"""Prefix of the keys of receipts. A time follows, so that old ones are a range of keys."""


@dataclass(slots=True)
class Request:
    """A request whose writes happen once, identified by a number that stays the same when it is sent again."""

    number: str
    replayed: bool = False
    """Whether one of its writes had already been done."""
    done: Counter[str] = field(default_factory=Counter)
    """Number of writes so far, by kind."""

    def key(self, kind: str) -> str:
        """Return the key of the receipt for the next write of this kind."""
        return f"{PREFIX}{self.number}/{kind}/{self.done[kind] + 1}"


_current: ContextVar[Request | None] = ContextVar("request", default=None)


def new_number() -> str:
    return f"{_moment(time.time())}/{uuid.uuid4().hex}"


def oldest_kept() -> str:
    """Return the key below which receipts may be deleted."""
    return PREFIX + _moment(time.time() - KEPT_SECONDS)


def _moment(when: float) -> str:
    return f"{int(when):012d}"


@contextmanager
def request(current: Request | None) -> Iterator[None]:
    """Assign the writes of this thread inside the context to a request; None for no request."""
    before = _current.set(current)
    try:
        yield
    finally:
        _current.reset(before)


def current() -> Request | None:
    """Return the request of this thread's writes, or None."""
    return _current.get()
