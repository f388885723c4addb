"""The MCP server: tools, resources and instructions over a Host."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from mcp.server import MCPServer, Server
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, Resource, Tool
from pydantic import ValidationError

from .. import __version__, checks
from ..errors import UnknownFieldError
from ..team.private_text import without_private
from .calls import CallRunner, store_request
from .host import Host
from .resources import recent, resources
from .tools import tools

INSTRUCTIONS = """\
Remanence is the shared memory of your team: what its coding agents learned about this codebase.
- Before you start a task, and whenever a command or a test fails: `recall` it, with the error if there is one.
- Before you change a file that you do not know: `file_history`.
- After you fixed an error, found out how something works or decided something: `remember` it, one fact at a time, with
  the files. If an older memory no longer holds, name it in `supersedes`.
- What runs where, who owns what, what depends on what: `facts` of a thing, `connect` two; `state_fact` when it changes.
- If a memory helped, or was wrong: say so with `feedback`.
- After your context was compacted: `session_state` has what you were doing; remanence://briefing what the team knows.
`get_memory` says who learned something, when and at which commit. Memories are hints: check them against the code."""


class TeamServer(MCPServer[Any]):
    """A server whose errors name the argument that is wrong, and whose resources include the newest memories."""

    def __init__(self, calls: CallRunner) -> None:
        super().__init__(
            "remanence",
            title="Remanence team memory",
            instructions=INSTRUCTIONS,
            version=__version__,
            middleware=[store_request],
            subscriptions=False,
        )
        self._calls = calls
        tools(self, calls)
        resources(self, calls)

    @property
    def low_level(self) -> Server[Any]:
        """Return the SDK's own server, for HTTP transports."""
        return self._lowlevel_server

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        arguments = without_private(arguments)
        known = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
        try:
            if name in known:
                checks.known_fields(name, arguments, known[name])
            return await super().call_tool(name, arguments, context)
        except UnknownFieldError as error:
            raise ToolError(str(error)) from error
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError("; ".join(_validation_message(tool) for tool in cause.errors()[:5])) from cause
            raise (cause if type(cause) is ToolError else error) from None

    async def list_tools(self) -> list[Tool]:
        return [
            tool.model_copy(update={"input_schema": _compact_schema(tool.input_schema)})
            for tool in await super().list_tools()
        ]

    async def list_resources(self) -> list[Resource]:
        return [*await super().list_resources(), *await self._calls.run_read(partial(recent, self._calls))]


def build(host: Host) -> TeamServer:
    """Build the server with its tools and resources."""
    # The SDK configures logging of the whole process unless the root logger has a handler; a library must not.
    root, placeholder = logging.getLogger(), logging.NullHandler()
    root.addHandler(placeholder)
    try:
        return TeamServer(CallRunner(host))
    finally:
        root.removeHandler(placeholder)


def _compact_schema(schema: Any) -> Any:
    """Drop what an agent does not need from a schema: titles, null or empty defaults, and "or null" for optional
    arguments (null stays allowed)."""
    if isinstance(schema, list):
        return [_compact_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    real = [part for part in kept.get("anyOf", ()) if part != {"type": "null"}]
    if len(real) == 1:
        kept = {**real[0], **{key: value for key, value in kept.items() if key != "anyOf"}}
    if kept.get("default", 0) in (None, ""):
        del kept["default"]
    return {key: _compact_schema(value) for key, value in kept.items()}


def _validation_message(error: Any) -> str:
    """Format a validation error without the value, which may be long or secret: `limit: Input should be …`."""
    return f"{'.'.join(str(part) for part in error['loc'])}: {error['msg']}"
