"""Fair shares of workers and threads between the organisations of a server, and lookups that concurrent requests
share."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from anyio.lowlevel import RunVar
from fastapi import HTTPException
from fastapi.concurrency import run_in_threadpool

Result = TypeVar("Result")

_PATIENCE = 30.0  # seconds to wait for a place
_lookups: RunVar[dict[Hashable, asyncio.Future[Any]]] = RunVar("lookups")


class FairShares:
    """A number of places. An organisation gets another one only while more are free than it has: alone it gets half of
    them, and the next one finds some free. Waiting organisations are served in turn. Used by the event loop only."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the organisation served last is the last

    @asynccontextmanager
    async def place(self, org: str, patience: float = _PATIENCE) -> AsyncIterator[None]:
        """Wait for a place and hold it; 503 if there is none for too long."""
        await self._take(org, patience)
        try:
            yield
        finally:
            self._release(org)

    async def _take(self, org: str, patience: float) -> None:
        if org not in self._waiting and self._may_take(org):
            self._grant(org)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(org, deque()).append(turn)
        try:
            async with asyncio.timeout(patience):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # granted at the very moment
                self._release(org)
            elif org in self._waiting:
                self._waiting[org].remove(turn)
                self._drop_empty(org)
            if isinstance(error, TimeoutError):
                busy = f"the server is busy: nothing was free for {patience:g} s; try again later"
                raise HTTPException(503, busy, {"Retry-After": "5"}) from None
            raise

    def _may_take(self, org: str) -> bool:
        return self._free > self._taken[org]

    def _grant(self, org: str) -> None:
        self._free -= 1
        self._taken[org] += 1

    def _release(self, org: str) -> None:
        self._free += 1
        self._taken[org] -= 1
        if not self._taken[org]:
            del self._taken[org]
        while (chosen := next((org_ for org_ in self._waiting if self._may_take(org_)), None)) is not None:
            turns = self._waiting.pop(chosen)
            turn = turns.popleft()
            if turns:
                self._waiting[chosen] = turns
            if not turn.done():
                self._grant(chosen)
                turn.set_result(None)

    def _drop_empty(self, org: str) -> None:
        if not self._waiting[org]:
            del self._waiting[org]


async def look_up_once(key: Hashable, call: Callable[..., Result], *args: Any) -> Result:
    """Run a lookup in a thread, or wait for a running one with the same `key`."""
    running = _lookups.get(None)
    if running is None:
        running = {}
        _lookups.set(running)
    lookup: asyncio.Future[Result] | None = running.get(key)
    if lookup is None:
        lookup = running[key] = asyncio.ensure_future(run_in_threadpool(call, *args))
        lookup.add_done_callback(lambda done: _end_lookup(running, key, done))
    return await asyncio.shield(lookup)  # others may wait for it although one request was cancelled


def _end_lookup(running: dict[Hashable, asyncio.Future[Any]], key: Hashable, done: asyncio.Future[Any]) -> None:
    del running[key]
    if not done.cancelled():
        done.exception()  # mark it as retrieved: nobody may wait for it any more
