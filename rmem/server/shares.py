"""Fair shares of what the organisations of a server use together: workers, recalls and threads."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import HTTPException

_PATIENCE = 30.0  # seconds to wait for a place


class FairShares:
    """A number of places. An organisation takes another one only while more are free than it has: alone it gets half of
    them, and whoever comes next finds some free. Those that wait are served in turn, one organisation after the other.
    Used by the event loop only."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the organisation served last is the last

    @asynccontextmanager
    async def place(self, org: str, patience: float = _PATIENCE) -> AsyncIterator[None]:
        """Wait for a place and keep it; 503 if there is none for too long."""
        await self._take(org, patience)
        try:
            yield
        finally:
            self._give(org)

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
                self._give(org)
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

    def _give(self, org: str) -> None:
        self._free += 1
        self._taken[org] -= 1
        if not self._taken[org]:
            del self._taken[org]
        while (chosen := next((one for one in self._waiting if self._may_take(one)), None)) is not None:
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
