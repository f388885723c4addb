"""The Model Context Protocol over HTTP: one route in each workspace, with the same tokens, roles, limits and logs as
the others. Requests are independent; there are no sessions to hijack or lose."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from ..errors import ConfigError
from ..extras import require
from .access import Access, Reader
from .routes.answers import RUNNING, Error
from .service import Service

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

router = APIRouter(prefix="/workspaces/{workspace}", tags=["mcp"], responses=RUNNING)


_MESSAGE: dict[str, Any] = {
    "type": "object",
    "required": ["jsonrpc", "method"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["integer", "string"]},
        "method": {"type": "string"},
        "params": {"type": "object"},
    },
}


class ProtocolError(BaseModel):
    """An error of the protocol."""

    jsonrpc: Literal["2.0"]
    id: int | str | None = None
    error: dict[str, Any]


@router.post(
    "/mcp",
    summary="Speak the Model Context Protocol",
    response_description="The answer to one JSON-RPC request.",
    responses={
        202: {"description": "A notification was taken in."},
        400: {"model": Error | ProtocolError, "description": "The message cannot be read."},
        404: {"model": Error | ProtocolError, "description": "No such workspace, or no such method."},
        406: {"description": "`Accept` must name application/json and text/event-stream."},
        501: {"model": Error, "description": "This server was installed without it."},
    },
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _MESSAGE}}}},
)
async def speak(request: Request, access: Reader) -> Response:
    """Streamable HTTP without sessions: one JSON-RPC message in, one answer out. The tools that change something need
    the role WRITE. `X-Rmem-Repository` names the repository that the client works in."""
    if not request.headers.get("content-type", "").lower().startswith("application/json"):
        raise HTTPException(400, "the body must be JSON, with Content-Type: application/json")
    mcp_app: McpApp = request.app.state.mcp
    return _McpResponse(await mcp_app.get_manager(), access)


class _McpResponse(Response):
    """A response that the protocol's own application writes."""

    def __init__(self, manager: StreamableHTTPSessionManager, access: Access) -> None:
        super().__init__()
        self._manager, self._access = manager, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["access"] = self._access
        await self._manager.handle_request(scope, receive, send)


class McpApp:
    """The MCP application of a server, made at the first MCP request: loading it takes a second."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._ready: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._closing = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def get_manager(self) -> StreamableHTTPSessionManager:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(self._ready))
        return await asyncio.shield(self._ready)

    async def _run(self, ready: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Run it until the server stops; in a task of its own, because the task that opens it must close it."""
        try:
            manager = await to_thread.run_sync(self._make_manager)
        except Exception as error:
            ready.set_exception(error)
            return
        async with manager.run():
            ready.set_result(manager)
            await self._closing.wait()

    def _make_manager(self) -> StreamableHTTPSessionManager:
        try:
            require("mcp", "this server")
        except ConfigError as error:
            raise HTTPException(501, str(error)) from None
        from .mcp_host import manager_of

        return manager_of(self._service)

    async def close(self) -> None:
        self._closing.set()
        if self._running is not None:
            await self._running
