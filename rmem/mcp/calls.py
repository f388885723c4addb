"""Shared by all tools and resources: who calls, what they may see, and errors that an agent can act on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver.exceptions import ToolError

from ..errors import RemanenceError
from ..team.identity import Repository
from ..team.notes import Experience
from .host import Asked, Caller, Host

Place = Repository | str | None
Result = TypeVar("Result")
_asked: ContextVar[Asked] = ContextVar("asked")


async def noted(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Note who asks, for the threads in which the call is answered."""
    known = ctx.session.client_params
    before = _asked.set(Asked(None if known is None else known.client_info.name, ctx.request))
    try:
        return await call_next(ctx)
    finally:
        _asked.reset(before)


class Calls:
    """The calls that a host answers."""

    def __init__(self, host: Host) -> None:
        self.host = host

    async def reading(self, call: Callable[[], Result]) -> Result:
        """Do what only looks, in a thread of the host."""
        return await self.host.reading(call, _asked.get(Asked()))

    async def writing(self, call: Callable[[], Result]) -> Result:
        """Do what changes something, in a thread of the host."""
        return await self.host.writing(call, _asked.get(Asked()))

    @contextmanager
    def anybody(self) -> Iterator[Caller]:
        """Whoever asks. Our errors are for the agent to read; all others are faults."""
        asked = _asked.get(Asked())
        try:
            with self.host.caller(asked) as caller:
                yield caller
        except RemanenceError as error:
            raise ToolError(self.host.told(error, asked)) from error

    @contextmanager
    def reader(self) -> Iterator[Caller]:
        """Somebody who may be told what the team knows."""
        with self.anybody() as caller:
            if caller.no_reading:
                raise ToolError(caller.no_reading)
            yield caller

    @contextmanager
    def writer(self) -> Iterator[Caller]:
        """Somebody who may change what the team knows."""
        with self.anybody() as caller:
            if caller.no_writing:
                raise ToolError(caller.no_writing)
            yield caller


def visible(caller: Caller, memory_id: str, place: Place, *, field: str = "id") -> Experience:
    """A memory that the caller may see; one that exists for others only does not exist."""
    one = caller.team.get(memory_id)
    if one is None or one.memory.place not in caller.team.visible(place):
        where = place.id if isinstance(place, Repository) else place
        here = "outside any repository" if where is None else f"in {where}"
        raise ToolError(
            f"{field}: there is no memory {memory_id!r} {here}; name its repository if it belongs to another"
        )
    return checked(caller, one, place)


def checked(caller: Caller, one: Experience, place: Place) -> Experience:
    """With whether it may be out of date, where the files are at hand."""
    return caller.team.checked(one, place) if isinstance(place, Repository) else one
