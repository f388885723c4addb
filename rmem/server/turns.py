"""How many requests compute at the same time.

A recall holds the interpreter's lock most of the time, so more threads would only wait for each other; those who write
mostly wait for the disk, and all who wait together share one commit. What several want to know at the same time is
looked up once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

Result = TypeVar("Result")

READERS = 3
WRITERS = 24

_reading: RunVar[CapacityLimiter] = RunVar("reading")
_writing: RunVar[CapacityLimiter] = RunVar("writing")
_looking: RunVar[dict[Hashable, asyncio.Future[Any]]] = RunVar("looking")


async def reading(call: Callable[..., Result], *args: Any, **options: Any) -> Result:
    """Do what only looks, in a thread."""
    return await to_thread.run_sync(partial(call, *args, **options), limiter=_turns(_reading, READERS))


async def writing(call: Callable[..., Result], *args: Any, **options: Any) -> Result:
    """Do what changes something, in a thread."""
    return await to_thread.run_sync(partial(call, *args, **options), limiter=_turns(_writing, WRITERS))


async def looked_up(key: Hashable, call: Callable[..., Result], *args: Any) -> Result:
    """Look something up in a thread, or wait for whoever looks up the same `key` already."""
    running = _running()
    looking: asyncio.Future[Result] | None = running.get(key)
    if looking is None:
        looking = running[key] = asyncio.ensure_future(to_thread.run_sync(partial(call, *args)))
        looking.add_done_callback(lambda done: _ended(running, key, done))
    return await asyncio.shield(looking)  # others wait for it although one has gone


def _running() -> dict[Hashable, asyncio.Future[Any]]:
    try:
        return _looking.get()
    except LookupError:
        fresh: dict[Hashable, asyncio.Future[Any]] = {}
        _looking.set(fresh)
        return fresh


def _ended(running: dict[Hashable, asyncio.Future[Any]], key: Hashable, done: asyncio.Future[Any]) -> None:
    del running[key]
    if not done.cancelled():
        done.exception()  # it is told to those who wait, if there still are any


def _turns(kind: RunVar[CapacityLimiter], most: int) -> CapacityLimiter:
    """The limit of this event loop: a limiter belongs to one."""
    try:
        return kind.get()
    except LookupError:
        limiter = CapacityLimiter(most)
        kind.set(limiter)
        return limiter
