"""The recall workers of a server (`recall_worker`), started when several recalls run at once. Recalls run in threads of
the server for organisations with few of them, while workers start, without workers, and when a worker ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import Counter, deque
from contextlib import suppress
from typing import Any

from cachetools import LRUCache
from fastapi import Response
from fastapi.concurrency import run_in_threadpool

from .access import Access
from .recall_worker import recall_of, request_note
from .recalls import local_recall
from .settings import ServerSettings
from .shares import FairShares
from .worker import WorkerMessage, encode_message, read_message, settings_note
from .workers import WorkerFailedError, host

log = logging.getLogger(__name__)

_CROWD = 4  # recalls at once, of one organisation or of all that ask little, from which on they go to workers
_AHEAD = 2  # recalls of one organisation that wait in a worker's link, so that it need not wait for us
_UNKNOWN = 2  # recalls that wait elsewhere are worth loading the index of a workspace once more
_START = 60.0  # seconds for a start, with the first recall
_SLOW = 1.0  # seconds of silence after which others are asked first
_UNWRITTEN = 16_384  # accesses; a store writes by itself when several times as many wait
_PAUSE = 60.0  # seconds between a start that failed and the next one


class _RecallWorker:
    """One process, which answers in the order of requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, settings: ServerSettings) -> None:
        self._reader, self._writer = reader, writer
        self._loop = asyncio.get_running_loop()
        self._silence = settings.limits.statement_seconds
        self._heard = self._loop.time()  # when it last answered, or was asked something after a rest
        self.waiting: deque[asyncio.Future[WorkerMessage]] = deque()
        self.known: LRUCache[str, bool] = LRUCache(settings.open_workspaces)
        """The workspaces that it has open."""
        self.pid = 0
        self._reading = self._loop.create_task(self._read())
        self._watch = self._loop.call_later(_SLOW, self._check)

    @classmethod
    async def start(cls, settings: ServerSettings, access: Access, body: bytes) -> _RecallWorker:
        """Start a worker, and wait until it has answered a first recall, which loads its index."""
        reader, writer = await asyncio.open_connection(sock=host.fork(recalls=True), limit=1 << 20)
        made = cls(reader, writer, settings)
        try:
            async with asyncio.timeout(_START):
                made.pid = (await made._send(settings_note(settings), b"")).note["pid"]
                await made.ask(access, body)
        except BaseException:
            made.kill()
            raise
        return made

    @property
    def ended(self) -> bool:
        return self._reading.done()

    @property
    def is_slow(self) -> bool:
        """Whether it was asked something and has not answered anything for a while."""
        return bool(self.waiting) and self._loop.time() - self._heard > _SLOW

    def ask(self, access: Access, body: bytes) -> asyncio.Future[WorkerMessage]:
        """Send a recall; return its answer. ConnectionError if the worker ends before."""
        self.known[access.workspace_id] = True
        return self._send(request_note(access), body)

    def _send(self, note: dict[str, Any], body: bytes) -> asyncio.Future[WorkerMessage]:
        answer: asyncio.Future[WorkerMessage] = self._loop.create_future()
        if not self.waiting:
            self._heard = self._loop.time()
        self.waiting.append(answer)
        self._writer.write(encode_message(note, body))
        return answer

    async def _read(self) -> None:
        try:
            while True:
                frame = await read_message(self._reader)
                self._heard = self._loop.time()
                answer = self.waiting.popleft()
                if not answer.done():  # nobody waits any more for one that was cancelled
                    answer.set_result(frame)
        except (asyncio.IncompleteReadError, OSError):
            pass  # it has ended
        finally:
            self._watch.cancel()
            for answer in self.waiting:
                if not answer.done():
                    answer.set_exception(ConnectionError("the recall worker has ended"))

    def _check(self) -> None:
        """Kill the worker if it does not answer."""
        if self.waiting and self._loop.time() - self._heard > self._silence:
            log.warning("a recall worker did not answer for %g s and is killed", self._silence)
            self.kill()
        else:
            self._watch = self._loop.call_later(_SLOW, self._check)

    def kill(self) -> None:
        self._writer.close()
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        self._writer.close()  # it ends with its link


class RecallWorkers:
    """Up to `settings.recall_workers` processes. Used by the event loop only."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self.most = settings.recall_workers
        self._shares = FairShares(2 * _AHEAD * max(1, self.most))  # of which one organisation takes half
        self._all: list[_RecallWorker] = []
        self._starting: asyncio.Task[None] | None = None
        self._next_start = 0.0
        self._at_once: Counter[str] = Counter()
        """Recalls of each organisation that are under way, wherever they run."""
        self._of_few = 0
        """Recalls in threads of the server, of organisations that ask little."""
        self._unwritten: Counter[str] = Counter()
        """Accesses in each workspace that were counted since they were last written in a thread."""

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._all]

    async def answer(self, access: Access, body: bytes) -> Response:
        """Return the answer to a recall, when it is the turn of its organisation."""
        self._at_once[access.org] += 1
        is_few = self._at_once[access.org] < _CROWD and self._of_few < _CROWD
        try:
            if self.most and not is_few:
                if len(self._all) < self.most and all(worker.waiting for worker in self._all):
                    self._start(access, body)
                if self._all:
                    async with self._shares.place(access.org):
                        answer = await self._remote_recall(access, body)
                    if answer is not None:
                        return answer
            self._of_few += is_few
            try:
                return Response(await access.read(local_recall, access, body), media_type="application/json")
            finally:
                self._of_few -= is_few
        finally:
            self._at_once[access.org] -= 1
            if not self._at_once[access.org]:
                del self._at_once[access.org]

    async def _remote_recall(self, access: Access, body: bytes) -> Response | None:
        """Return the answer of a worker; None if there is no worker."""
        self._all = [worker for worker in self._all if not worker.ended]
        if not self._all:
            return None
        access.hold()
        worker = min(self._all, key=lambda worker: self._cost(worker, access.workspace_id))
        try:
            note, found = await worker.ask(access, body)
        except ConnectionError:
            log.warning("a recall worker ended unexpectedly; the server recalls by itself")
            return None
        if "failed" in note:
            raise WorkerFailedError(note["failed"])
        if note["status"] != 200:
            return Response(found, note["status"], note["headers"])
        await self._record(access, note)
        return Response(found, media_type="application/json")

    def _cost(self, worker: _RecallWorker, workspace: str) -> tuple[bool, int]:
        return worker.is_slow, len(worker.waiting) + (0 if workspace in worker.known else _UNKNOWN)

    async def _record(self, access: Access, note: dict[str, Any]) -> None:
        """Record the accesses of a recall and the recall itself for feedback; only opening and writing need a
        thread."""
        brain = access.open_brain
        if brain is None:
            brain = await run_in_threadpool(lambda: access.brain)
        brain.record_remote_recall(recall_of(note), note["touched"])
        self._unwritten[access.workspace_id] += len(note["touched"])
        if self._unwritten[access.workspace_id] > _UNWRITTEN:
            del self._unwritten[access.workspace_id]
            await run_in_threadpool(brain.store.flush)

    # Starting and ending

    def _start(self, access: Access, body: bytes) -> None:
        """Start another worker, unless one is starting."""
        if self._starting is None and asyncio.get_running_loop().time() >= self._next_start:
            self._starting = asyncio.create_task(self._start_one(access, body))

    async def _start_one(self, access: Access, body: bytes) -> None:
        try:
            worker = await _RecallWorker.start(self._settings, access, body)
            self._all.append(worker)
        except (OSError, TimeoutError) as error:
            log.error("no recall worker could be started, the server recalls by itself: %s", type(error).__name__)
            self._next_start = asyncio.get_running_loop().time() + _PAUSE
        finally:
            self._starting = None

    def close(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
        for worker in self._all:
            worker.end()
        self._all = []
        self._next_start = float("inf")
