"""Recalls in the server's own process. Those of one workspace that wait for each other share a look at what is new, as
in a recaller."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .recalling import TOGETHER, Recalled, answers
from .turns import reading

if TYPE_CHECKING:
    from .access import Access


class _Waiting(NamedTuple):
    access: Access
    body: bytes
    answer: asyncio.Future[bytes]

    def tell(self, found: Recalled | Exception) -> None:
        if self.answer.done():  # nobody waits any more for one that was cancelled
            return
        if isinstance(found, Exception):
            self.answer.set_exception(found)
        else:
            self.answer.set_result(found.body)


class OwnRecalls:
    """Used by the event loop only."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[_Waiting]] = {}
        self._working: set[asyncio.Task[None]] = set()

    async def ask(self, access: Access, body: bytes) -> bytes:
        """The body of the answer to a request."""
        one = _Waiting(access, body, asyncio.get_running_loop().create_future())
        waiting = self._waiting.setdefault(access.workspace_id, [])
        waiting.append(one)
        if len(waiting) == 1:
            working = asyncio.create_task(self._work(access.workspace_id))
            self._working.add(working)  # the loop itself does not hold on to it
            working.add_done_callback(self._working.discard)
        return await one.answer

    async def _work(self, workspace: str) -> None:
        """Answer all that wait, and those who come meanwhile."""
        waiting = self._waiting[workspace]
        try:
            while waiting:
                some = waiting[:TOGETHER]
                try:
                    found = await reading(_answers, some)
                except Exception as error:  # what all of them need failed; the next may be luckier
                    found = [error]
                del waiting[: len(found)]
                for one, told in zip(some, found, strict=False):
                    one.tell(told)
        finally:
            del self._waiting[workspace]
            for one in waiting:
                one.answer.cancel()


def _answers(some: Sequence[_Waiting]) -> list[Recalled | Exception]:
    return answers(some[0].access.brain, [one.body for one in some])
