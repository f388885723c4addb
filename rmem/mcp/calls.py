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
from .host import Host, McpCaller, RequestInfo

Place = Repository | str | None
Result = TypeVar("Result")
_request_info: ContextVar[RequestInfo] = ContextVar("request_info")


async def store_request(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Store the client and the request of a call in a context variable, for the thread that answers it."""
    client = ctx.session.client_params
    before = _request_info.set(RequestInfo(None if client is None else client.client_info.name, ctx.request))
    try:
        return await call_next(ctx)
    finally:
        _request_info.reset(before)


class CallRunner:
    """Runs calls in the threads of a host, with the rights of the caller."""

    def __init__(self, host: Host) -> None:
        self.host = host

    async def run_read(self, call: Callable[[], Result]) -> Result:
        """Run a call that only reads, in a thread of the host."""
        return await self.host.run_read(call, _request_info.get(RequestInfo()))

    async def run_write(self, call: Callable[[], Result]) -> Result:
        """Run a call that writes, in a thread of the host."""
        return await self.host.run_write(call, _request_info.get(RequestInfo()))

    @contextmanager
    def any_caller(self) -> Iterator[McpCaller]:
        """Identify the caller, whatever its rights. Turn our own errors into ToolErrors, which the agent can read."""
        request = _request_info.get(RequestInfo())
        try:
            with self.host.caller(request) as caller:
                yield caller
        except RemanenceError as error:
            raise ToolError(self.host.error_text(error, request)) from error

    @contextmanager
    def reader(self) -> Iterator[McpCaller]:
        """Identify a caller who may read; ToolError otherwise."""
        with self.any_caller() as caller:
            if caller.no_reading:
                raise ToolError(caller.no_reading)
            yield caller

    @contextmanager
    def writer(self) -> Iterator[McpCaller]:
        """Identify a caller who may write; ToolError otherwise."""
        with self.any_caller() as caller:
            if caller.no_writing:
                raise ToolError(caller.no_writing)
            yield caller


def visible_memory(caller: McpCaller, memory_id: str, place: Place, *, field: str = "id") -> Experience:
    """Return a memory that the caller may see; ToolError as for an unknown id if it belongs to others."""
    experience = caller.team.get(memory_id)
    if experience is None or experience.memory.place not in caller.team.visible(place):
        where = place.id if isinstance(place, Repository) else place
        here = "outside any repository" if where is None else f"in {where}"
        raise ToolError(
            f"{field}: there is no memory {memory_id!r} {here}; name its repository if it belongs to another"
        )
    return check_stale(caller, experience, place)


def check_stale(caller: McpCaller, experience: Experience, place: Place) -> Experience:
    """Check whether a memory may be out of date, if the caller's repository is on this machine."""
    return caller.team.check_stale(experience, place) if isinstance(place, Repository) else experience
