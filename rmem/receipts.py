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
"""How the keys of receipts begin. A time follows, so that those that are too old are a range of keys."""


@dataclass(slots=True)
class Request:
    """A request whose writes happen once, by the number that it has each time it is sent."""

    number: str
    replayed: bool = False
    """Whether a part of it was found done."""
    done: Counter[str] = field(default_factory=Counter)
    """How many writes of each kind there were."""

    def key(self, kind: str) -> str:
        """The key of the receipt for the next write of this kind."""
        return f"{PREFIX}{self.number}/{kind}/{self.done[kind] + 1}"


_current: ContextVar[Request | None] = ContextVar("request", default=None)


def new_number() -> str:
    """The number of a request that was never sent before."""
    return f"{_moment(time.time())}/{uuid.uuid4().hex}"


def oldest_kept() -> str:
    """What the keys of receipts that need not be kept come before."""
    return PREFIX + _moment(time.time() - KEPT_SECONDS)


def _moment(when: float) -> str:
    return f"{int(when):012d}"


@contextmanager
def request(asked: Request | None) -> Iterator[None]:
    """Let what is written inside, by this thread, belong to a request; None is none."""
    before = _current.set(asked)
    try:
        yield
    finally:
        _current.reset(before)


def current() -> Request | None:
    """The request that this thread writes for."""
    return _current.get()
