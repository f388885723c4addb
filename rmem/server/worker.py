"""A worker: a process that runs requests of a server one after another that may compute for long: SQL statements and
long bodies. It has the same routes as the server. A request that cannot be stopped is ended by killing its process."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import struct
import traceback
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import receipts
from ..tables.search.allowance import SHARED
from . import problems
from .access import RequestContext
from .auth import JsonLines
from .control import Role
from .disk_use import DiskUse
from .routes import agents, export, graph, memories, sync, tables
from .service import Service
from .settings import Limits, ServerSettings
from .shares import FairShares
from .spaces import Spaces
from .tokens import Caller, WorkspaceRole

HEAD = struct.Struct("!II")
_OPEN = 16  # workspaces at once
_NICE = 10  # the server itself, and its recalls, come first


class WorkerMessage(NamedTuple):
    note: dict[str, Any]
    body: bytes


def encode_message(note: dict[str, Any], body: bytes = b"") -> bytes:
    """Encode a message between the server and a worker: a note as JSON, and a body."""
    head = json.dumps(note).encode()
    return HEAD.pack(len(head), len(body)) + head + body


async def read_message(reader: asyncio.StreamReader) -> WorkerMessage:
    """Read the next message; IncompleteReadError at the end."""
    head, length = HEAD.unpack(await reader.readexactly(HEAD.size))
    note = json.loads(await reader.readexactly(head))
    return WorkerMessage(note, await reader.readexactly(length) if length else b"")


def settings_note(settings: ServerSettings) -> dict[str, Any]:
    """Return the settings for a worker, as its first message."""
    return {**asdict(settings), "data": str(settings.data)}


def settings_of(note: dict[str, Any]) -> ServerSettings:
    """Read the settings from the first message."""
    return ServerSettings(**{**note, "data": Path(note["data"]), "limits": Limits(**note["limits"])})


def request_note(scope: Scope, context: RequestContext) -> dict[str, Any]:
    """Return a request without its body, with the caller's rights, for a worker."""
    assert context.caller is not None
    assert context.workspace_role is not None
    return {
        "method": scope["method"],
        "path": scope["path"],
        "query_string": scope["query_string"].decode("latin-1"),
        "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in scope["headers"]],
        "id": context.id,
        "caller": asdict(context.caller),
        "workspace_role": asdict(context.workspace_role),
        "number": None if context.request is None else context.request.number,
    }


def run(link: socket.socket) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        asyncio.run(_serve(link))


async def _serve(link: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=link, limit=1 << 20)
    note = (await read_message(reader)).note
    settings = settings_of(note)
    _bound_memory(settings.worker_bytes)
    os.nice(_NICE)
    log_as_json_lines()
    spaces = Spaces(replace(settings, open_workspaces=_OPEN))
    alone = FairShares(1)  # a worker has one request at a time
    shared = SimpleNamespace(
        settings=settings, spaces=spaces, disk=DiskUse(settings), read_shares=alone, write_shares=alone
    )
    service = cast(Service, shared)  # as much of it as these routes need
    app = FastAPI(openapi_url=None)
    problems.install(app)
    app.add_middleware(_Failures)
    for router in (tables.router, memories.router, agents.router, graph.router, sync.router, export.router):
        app.router.routes.extend(router.routes)  # built when the host loaded them, not in every worker
    writer.write(encode_message({"pid": os.getpid()}))
    while True:
        frame = await read_message(reader)
        spaces.close_deleted()
        await _RequestRun(reader, writer).run(app, frame, service)


class _RequestRun:
    """One request and its answer. After each part of the answer but the last, the server says whether to continue."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._loop = asyncio.get_running_loop()
        self._body = b""
        self._scope: Scope = {}
        self._given = False

    async def run(self, app: ASGIApp, frame: WorkerMessage, service: Service) -> None:
        note = frame.note
        caller = Caller(**{**note["caller"], "role": Role(note["caller"]["role"])})
        workspace_role = WorkspaceRole(**{**note["workspace_role"], "role": Role(note["workspace_role"]["role"])})
        request = None if note["number"] is None else receipts.Request(note["number"])
        context = RequestContext(
            note["id"], service, caller, request=request, workspace_role=workspace_role, on_limit=self._send_limit
        )
        self._body = frame.body
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": note["method"],
            "path": note["path"],
            "raw_path": note["path"].encode(),
            "query_string": note["query_string"].encode("latin-1"),
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in note["headers"]],
            "context": context,
        }
        try:
            await app(self._scope, self._receive, self._send)
        except _ReaderGone:
            pass
        finally:
            written = max((space.write_mark for space in context.spaces), default=0)
            context.leave()
        replayed = request is not None and request.replayed
        end = {"type": "end", "failed": self._scope.get("failed"), "replayed": replayed, "written": written}
        self._writer.write(encode_message({**end, "exhausted": "exhausted" in self._scope}))
        await self._writer.drain()

    def _send_limit(self, seconds: float) -> None:
        """Called in the thread of the request."""
        self._loop.call_soon_threadsafe(self._writer.write, encode_message({"type": "limit", "seconds": seconds}))

    async def _receive(self) -> Message:
        if self._given:
            await asyncio.Event().wait()  # that the caller has gone is told when a part is sent
        self._given = True
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            route = getattr(self._scope.get("route"), "path", None)
            headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in message["headers"]]
            self._writer.write(
                encode_message({"type": "start", "status": message["status"], "headers": headers, "route": route})
            )
            return
        more = message.get("more_body", False)
        self._scope["started"] = True  # the server holds back status and headers until now
        self._writer.write(encode_message({"type": "body", "more": more}, message.get("body", b"")))
        await self._writer.drain()
        if more and await self._reader.readexactly(1) != b"+":
            raise _ReaderGone


class _ReaderGone(Exception):
    """The client no longer reads the answer."""


class _Failures:
    """Catches errors that no handler knows, for the server to send and log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except _ReaderGone:
            raise
        except MemoryError:
            scope["exhausted"] = True
            if scope.get("started"):
                scope["failed"] = "the answer needs more memory than a worker has"
                return
            await problems.problem(413, "the request needs more memory than a worker has")(scope, receive, send)
        except UnicodeEncodeError as error:
            await problems.error_response(error, scope["context"].id)(scope, receive, send)
        except Exception as error:
            scope["failed"] = "".join(traceback.format_exception(error))


def _bound_memory(most: int) -> None:
    """Limit the memory of this process, so that allocations fail before the machine has none left."""
    SHARED.bound(most // 2)
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def log_as_json_lines() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.getLogger().handlers[:] = [handler]
