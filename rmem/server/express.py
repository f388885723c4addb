"""The two routes that are asked most, recalling and remembering one memory, without the framework's own routing and
injection, which cost several times what the rest of the way costs. They are routes like the others, too: there they are
documented, and both ways lead to the same functions. All requests but recalls, which have shares of their own, wait
here until their organisation may take a thread."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from fastapi import HTTPException, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import RemanenceError
from .access import Access, Role, Visit, admitted
from .problems import problem, told
from .routes import memories

_PATH = re.compile(r"/workspaces/([^/]{1,63})/(recall|memories)\Z")


class _Route(NamedTuple):
    path: str
    role: Role
    act: Callable[[Request, Access], Awaitable[Response]]


_ROUTES = {
    "recall": _Route("/workspaces/{workspace}/recall", Role.READ, memories.recall),
    "memories": _Route("/workspaces/{workspace}/memories", Role.WRITE, memories.remember),
}


class Express:
    """Answers them; lets all others pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = _PATH.match(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None:
            await self._in_turn(scope, receive, send)
            return
        route = _ROUTES[found[2]]
        scope["route"] = route  # for the log and the metrics
        request = Request(scope, receive)
        visit: Visit = scope["visit"]
        try:
            access = await admitted(visit, found[1], route.role)
            if route.role == Role.READ:
                response = await route.act(request, access)
            else:
                async with visit.service.thread_shares.place(access.org):
                    response = await route.act(request, access)
        except HTTPException as error:
            response = problem(error.status_code, str(error.detail), headers=error.headers)
        except RemanenceError as error:
            response = told(error, visit.id)
        await response(scope, receive, send)

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Any other request, when its organisation may take a thread."""
        visit: Visit | None = scope.get("visit")
        if visit is None or visit.caller is None:
            await self._app(scope, receive, send)
            return
        async with visit.service.thread_shares.place(visit.caller.org):
            await self._app(scope, receive, send)
