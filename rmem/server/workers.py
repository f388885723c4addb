"""The worker processes of a server (`worker`): started on demand, one request each at a time, killed and replaced if a
request cannot be stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

from fastapi import HTTPException
from starlette.types import Message, Receive, Scope, Send

from .access import RequestContext
from .exchange import whole_body
from .problems import problem
from .settings import ServerSettings
from .shares import FairShares
from .worker import WorkerMessage, encode_message, read_message, request_note, settings_note
from .worker_host import FOR_RECALLS, FOR_REQUESTS

log = logging.getLogger(__name__)

_BODY = 60.0  # seconds for the body of a request to arrive: a worker is kept free for it
_START = 60.0  # seconds for a start
_BUFFER = 1 << 20  # bytes of an answer that wait for the client
_GRACE = 0.25  # of its time limit is given to a request before its worker is killed, and seconds at least


class _Host:
    """The process that forks workers, shared by all servers of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._link: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def start(self) -> socket.socket:
        """Start it unless it runs."""
        with self._lock:
            running = self._process is not None and self._owner == os.getpid() and self._process.poll() is None
            if not running or self._link is None:
                ours, theirs = socket.socketpair()
                with theirs:
                    line = [sys.executable, "-m", "rmem.server.worker_host", str(theirs.fileno())]
                    self._process = subprocess.Popen(line, pass_fds=[theirs.fileno()], start_new_session=True)
                self._link, self._owner = ours, os.getpid()
            return self._link

    def fork(self, *, recalls: bool = False) -> socket.socket:
        """Fork a worker, or recall worker; return the link to it."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self.start(), [FOR_RECALLS if recalls else FOR_REQUESTS], [theirs.fileno()])
        ours.setblocking(False)
        return ours


host = _Host()


class WorkerFailedError(Exception):
    """A worker failed; the message is its error."""


class Route(NamedTuple):
    """What the log and the metrics call a request that no route of this process answers."""

    path: str


class _Worker:
    """One process and the link to it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int) -> None:
        self._reader, self._writer, self.pid = reader, writer, pid
        self.workspace = ""

    @classmethod
    async def start(cls, settings: ServerSettings) -> _Worker:
        async with asyncio.timeout(_START):
            reader, writer = await asyncio.open_connection(sock=host.fork(), limit=_BUFFER)
            writer.write(encode_message(settings_note(settings)))
            return cls(reader, writer, (await read_message(reader)).note["pid"])

    async def send_request(self, scope: Scope, body: bytes, context: RequestContext) -> None:
        self._writer.write(encode_message(request_note(scope, context), body))
        await self._writer.drain()

    async def next(self) -> WorkerMessage:
        return await read_message(self._reader)

    def go_on(self, wanted: bool) -> None:
        self._writer.write(b"+" if wanted else b"-")

    def kill(self) -> None:
        self._writer.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        self._writer.close()  # it ends with its link


class Workers:
    """Up to `settings.workers` processes. Used by the event loop only."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self.most = settings.workers
        self._shares = FairShares(settings.workers)
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in (*self._idle, *self._busy)]

    async def answer(self, scope: Scope, receive: Receive, send: Send, context: RequestContext) -> None:
        """Answer a request by a worker, when it is the turn of its organisation."""
        assert context.caller is not None
        assert context.workspace_role is not None
        async with self._shares.place(context.caller.org):
            try:
                async with asyncio.timeout(_BODY):
                    body = await whole_body(receive)
            except TimeoutError:
                raise HTTPException(408, f"the body did not arrive within {_BODY:g} s") from None
            worker = await self._free(context.workspace_role.workspace_id)
            self._busy.add(worker)
            answer = _ForwardedAnswer(worker, scope, send, context, self._settings)
            try:
                await answer.run(body, receive)
            finally:
                self._busy.discard(worker)
                if answer.whole and not answer.exhausted:
                    self._idle.append(worker)
                else:
                    worker.kill()

    async def _free(self, workspace: str) -> _Worker:
        """Return an idle worker that has the workspace open, else the one used last, or a new one."""
        chosen = next((worker for worker in self._idle if worker.workspace == workspace), None)
        if chosen is None:
            chosen = self._idle[-1] if self._idle else None
        if chosen is None:
            return await _Worker.start(self._settings)
        self._idle.remove(chosen)
        chosen.workspace = workspace
        return chosen

    def close(self) -> None:
        for worker in self._idle:
            worker.end()
        for worker in self._busy:
            worker.kill()
        self._idle = []


class _ForwardedAnswer:
    """The answer of a worker to one request, forwarded as it arrives."""

    def __init__(
        self, worker: _Worker, scope: Scope, send: Send, context: RequestContext, settings: ServerSettings
    ) -> None:
        self._worker, self._scope, self._send, self._context = worker, scope, send, context
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        limits = settings.limits  # of a statement until the worker says which limit it has, and of imports
        asks = scope["path"].endswith("/query") or scope["method"] == "GET"
        self._limit = limits.statement_seconds if asks else limits.stream_seconds
        self._started = False
        self._start: Message | None = None
        """Status and headers, held back until there is a part to send with them: a worker that ends in between has not
        answered."""
        self._last: bytes | None = None
        """The last part, held back until the worker is done, so that the next request finds it free."""
        self.whole = False
        """Whether the worker is done with it and can be asked again."""
        self.exhausted = False
        """Whether the worker ran out of memory. It may keep what it took, and would refuse small requests too."""

    async def run(self, body: bytes, receive: Receive) -> None:
        gone = self._loop.create_task(_disconnected(receive))
        try:
            await self._worker.send_request(self._scope, body, self._context)
            while not self.whole:
                await self._handle(await self._next(), gone)
        except TimeoutError:
            if not await self._forward_last():
                await self._too_long()
        except (OSError, asyncio.IncompleteReadError) as error:
            if await self._forward_last():
                return
            if self._started:
                raise WorkerFailedError("the worker ended unexpectedly") from error
            log.error("the worker of request %s ended unexpectedly", self._context.id)
            ended = problem(503, "the process that ran the request ended; try again", headers={"Retry-After": "1"})
            await ended(self._scope, _nothing, self._send)
        finally:
            gone.cancel()

    async def _next(self) -> WorkerMessage:
        """Return the next message; kill a worker long after its time limit."""
        frame = asyncio.ensure_future(self._worker.next())
        while True:
            left = self._begun + self._limit + max(_GRACE, _GRACE * self._limit) - self._loop.time()
            done, _ = await asyncio.wait((frame,), timeout=max(0.0, left))
            if done:
                return frame.result()
            frame.cancel()
            raise TimeoutError

    async def _handle(self, frame: WorkerMessage, gone: asyncio.Task[None]) -> None:
        note = frame.note
        if note["type"] == "limit":
            self._limit = note["seconds"]
        elif note["type"] == "start":
            self._scope["route"] = Route(note["route"]) if note["route"] else None
            headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in note["headers"]]
            self._start = {"type": "http.response.start", "status": note["status"], "headers": headers}
        elif note["type"] == "body":
            if note["more"]:
                await self._forward({"type": "http.response.body", "body": frame.body, "more_body": True})
                self._worker.go_on(not gone.done())
            else:
                self._last = frame.body
        else:
            self.whole, self.exhausted = True, note["exhausted"]
            if self._context.request is not None:
                self._context.request.replayed = note["replayed"]
            self._context.note_write(note["written"])
            if note["failed"]:
                raise WorkerFailedError(note["failed"])
            await self._forward_last()

    async def _forward_last(self) -> bool:
        """Send the last part if it came: the answer is whole then, whatever became of the worker."""
        if self._last is None:
            return False
        last, self._last = self._last, None
        await self._forward({"type": "http.response.body", "body": last, "more_body": False})
        return True

    async def _forward(self, message: Message) -> None:
        self._started = True
        if self._start is not None:
            start, self._start = self._start, None
            await self._send(start)
        await self._send(message)

    async def _too_long(self) -> None:
        log.warning("a request did not end %g s after its time limit; its worker is killed", _GRACE * self._limit)
        if self._started:
            raise WorkerFailedError("the answer took too long")
        words = f"the request ran longer than {self._limit:g} s and was stopped with the process that it ran in"
        if self._context.request is None:
            response = problem(408, words)
        else:  # it may have been committed at the last moment: its receipt tells
            again = "; send it again with its Idempotency-Key to learn whether it was done"
            response = problem(503, words + again, headers={"Retry-After": "1"})
        await response(self._scope, _nothing, self._send)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _nothing() -> Message:
    return {"type": "http.disconnect"}
