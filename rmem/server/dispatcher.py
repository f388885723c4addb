"""Middleware that chooses the process for a request: the server itself, a worker or a recall worker."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import RemanenceError
from .access import Access, RequestContext, Role, admitted
from .exchange import SHORT_BODY, whole_body
from .problems import error_response, problem
from .recall_workers import RecallWorkers
from .workers import Route, Workers

_HEAVY_PATH = re.compile(r"/workspaces/([^/]{1,63})/(tables|memories|agents|graph|sync|import)(/.*)?\Z", re.DOTALL)
_WHOLE_GRAPH = ("between", "communities", "contradictions", "entities", "graph", "important", "query", "relations")
_RECALL_PATH = re.compile(r"/workspaces/([^/]{1,63})/recall\Z")
_RECALL = Route("/workspaces/{workspace}/recall")
_Act = Callable[[Access, Scope, Receive, Send], Awaitable[None]]


class Dispatcher:
    """Sends recalls to recall workers and long computations to workers; other requests wait for a thread of their
    organisation."""

    def __init__(self, app: ASGIApp, workers: Workers, recall_workers: RecallWorkers) -> None:
        self._app, self._workers, self._recall_workers = app, workers, recall_workers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context: RequestContext | None = scope.get("context")
        if context is None or context.caller is None:
            await self._app(scope, receive, send)
            return
        recall, heavy = _RECALL_PATH.match(scope["path"]), _HEAVY_PATH.match(scope["path"])
        if recall and scope["method"] == "POST" and self._recall_workers.most:
            await self._run(self._recall, recall[1], scope, receive, send, context)
        elif recall:  # it waits for its turn without a thread
            await self._app(scope, receive, send)
        elif heavy and self._workers.most and _is_heavy(heavy[2], scope):
            await self._run(self._by_worker, heavy[1], scope, receive, send, context)
        else:
            async with context.service.thread_shares.place(context.caller.org):
                await self._app(scope, receive, send)

    async def _run(
        self, act: _Act, workspace: str, scope: Scope, receive: Receive, send: Send, context: RequestContext
    ) -> None:
        """Answer a request outside of the routes of this process, with the same error responses."""
        started = False

        async def answer(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await act(await admitted(context, workspace, Role.READ), scope, receive, answer)
        except HTTPException as error:
            await problem(error.status_code, str(error.detail), headers=error.headers)(scope, receive, send)
        except RemanenceError as error:
            if started:
                raise
            await error_response(error, context.id)(scope, receive, send)

    async def _by_worker(self, access: Access, scope: Scope, receive: Receive, send: Send) -> None:
        access.hold()
        await self._workers.answer(scope, receive, send, access.context)

    async def _recall(self, access: Access, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = _RECALL  # for the log and the metrics
        answer = await self._recall_workers.answer(access, await whole_body(receive))
        await answer(scope, receive, send)


def _is_heavy(part: str, scope: Scope) -> bool:
    """Whether a request may compute for long: SQL, questions about the whole graph, long bodies."""
    whole = part == "graph" and scope["method"] == "GET" and scope["path"].rpartition("/")[2] in _WHOLE_GRAPH
    return part == "tables" or whole or _is_large(scope)


def _is_large(scope: Scope) -> bool:
    """Whether a body is long, or may be."""
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    return int(length) > SHORT_BODY if length.isdigit() else b"transfer-encoding" in headers
