"""The MCP host of a server: the caller's memory is given by token, workspace and headers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from fastapi import HTTPException
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from .. import checks
from ..errors import RemanenceError, StoreClosedError
from ..mcp.host import Host, McpCaller, RequestInfo, agent_of
from ..mcp.server import build
from ..privacy import PrivacyPolicy
from ..team.identity import repository_id
from ..team.memory import TeamMemory
from .access import Access, Role
from .exchange import SHORT_BODY
from .problems import status_of, unavailable
from .service import Service

ORIGIN = "mcp http"
REPOSITORY, AGENT = "x-rmem-repository", "x-rmem-agent"
log = logging.getLogger(__name__)
Result = TypeVar("Result")


class ServerHost(Host):
    """Removes secrets before memories are stored: the store of a server does not."""

    def __init__(self) -> None:
        self._policy = PrivacyPolicy.default()

    @contextmanager
    def caller(self, asked: RequestInfo) -> Iterator[McpCaller]:
        access: Access = asked.request.scope["access"]
        headers = asked.request.headers
        named = headers.get(REPOSITORY)
        # The call may outlive the request of a client that went away, so it has the workspace for itself.
        space = access.use_space()
        try:
            yield McpCaller(
                TeamMemory(space.brain, author=access.member, origin=ORIGIN, token=access.token_id),
                None if not named else repository_id(checks.name("X-Rmem-Repository", named)),
                agent_of(headers.get(AGENT) or asked.client or headers.get("user-agent", "").partition("/")[0]),
                no_writing=_why_not_writing(access),
                may_forget_all=access.role >= Role.ADMIN,
                clean=partial(self._cleaned, access.member),
            )
        finally:
            access.spaces.leave(space)

    def _cleaned(self, author: str, text: str) -> str:
        """Remove secrets; names of people may stay."""
        return replace(self._policy, allow=(*self._policy.allow, author)).clean(text) if text else text

    async def run_read(self, call: Callable[[], Result], asked: RequestInfo) -> Result:
        access: Access = asked.request.scope["access"]
        return await access.read(call)

    async def run_write(self, call: Callable[[], Result], asked: RequestInfo) -> Result:
        access: Access = asked.request.scope["access"]
        return await access.write(call)

    def error_text(self, error: RemanenceError, asked: RequestInfo) -> str:
        """Return the message for the client; log errors that concern the server's own files instead of showing them."""
        if isinstance(error, StoreClosedError):
            return "there is no such workspace"
        if status_of(error) < 500:
            return str(error)
        request_id = asked.request.scope["context"].id
        log.error("request %s failed: %s: %s", request_id, type(error).__name__, error, exc_info=error)
        return unavailable(error)


def manager_of(service: Service) -> StreamableHTTPSessionManager:
    """Make the session manager: stateless, with JSON responses."""
    logging.getLogger("mcp").setLevel(logging.WARNING)  # at INFO it tells what callers wrote
    return StreamableHTTPSessionManager(
        build(ServerHost()).low_level,
        json_response=True,
        stateless=True,
        max_request_body_size=min(service.settings.limits.body_bytes, SHORT_BODY),
    )


def _why_not_writing(access: Access) -> str:
    """Return why the caller may not write; "" if it may."""
    if access.role < Role.WRITE:
        return f"this needs the role {Role.WRITE.name}; your role is {access.role.name}"
    try:
        access.need_room()
    except HTTPException as full:
        return str(full.detail)
    return ""
