"""How many requests compute at the same time.

A recall holds the interpreter's lock most of the time, so more threads would only wait for each other; those who write
mostly wait for the disk, and all who wait together share one commit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

Result = TypeVar("Result")

READERS = 3
WRITERS = 24

_reading: RunVar[CapacityLimiter] = RunVar("reading")
_writing: RunVar[CapacityLimiter] = RunVar("writing")


async def reading(call: Callable[..., Result], *args: Any, **options: Any) -> Result:
    """Do what only looks, in a thread."""
    return await to_thread.run_sync(partial(call, *args, **options), limiter=_turns(_reading, READERS))


async def writing(call: Callable[..., Result], *args: Any, **options: Any) -> Result:
    """Do what changes something, in a thread."""
    return await to_thread.run_sync(partial(call, *args, **options), limiter=_turns(_writing, WRITERS))


def _turns(kind: RunVar[CapacityLimiter], most: int) -> CapacityLimiter:
    """The limit of this event loop: a limiter belongs to one."""
    try:
        return kind.get()
    except LookupError:
        limiter = CapacityLimiter(most)
        kind.set(limiter)
        return limiter
