"""Processes that recall for a server, so that many recalls at once use more than one core.

They are started when several recalls wait for each other, and kept from then on. A server without them, or while they
start, recalls in its own threads; so it does when one of them ends, or stays silent and is killed."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple

from .recaller import HEAD, framed, settings_note
from .settings import ServerSettings

log = logging.getLogger(__name__)

_CROWD = 4  # recalls at once from which on it is worth while
_START = 60.0  # seconds for a start, with the first question
_SILENCE = 10.0  # seconds without any answer after which a process that was asked something is killed
_SLOW = 1.0  # seconds of silence after which others are asked first
_PAUSE = 60.0  # seconds between a start that failed and the next one


class Reply(NamedTuple):
    note: dict[str, Any]
    body: bytes


class _Recaller:
    """One process. It answers one question after another; those that wait are in its pipe already, so that it never
    waits for us."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._sink, self._source = process, process.stdin, process.stdout
        self.waiting: deque[asyncio.Future[Reply]] = deque()
        self._loop = asyncio.get_running_loop()
        self._heard = self._loop.time()  # when it last answered, or was asked something after a rest
        self._reading = self._loop.create_task(self._read())

    @classmethod
    async def start(cls, settings: ServerSettings, note: dict[str, Any], body: bytes) -> _Recaller:
        """A new one, when it has answered a first question for itself: by that it has loaded an index."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "rmem.server.recaller",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        made = cls(process)
        try:
            async with asyncio.timeout(_START):
                await made._asked(settings_note(settings), b"")
                await made._asked(note, body)
        except BaseException:
            made.kill()
            raise
        return made

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._reading.done()

    @property
    def is_slow(self) -> bool:
        """Whether it was asked something and has not answered anything for a while."""
        return bool(self.waiting) and self._loop.time() - self._heard > _SLOW

    async def ask(self, note: dict[str, Any], body: bytes) -> Reply:
        """Its answer; ConnectionError if it has ended before it came to it, or is killed because it stays silent."""
        answer = self._asked(note, body)
        try:
            while (left := self._heard + _SILENCE - self._loop.time()) > 0:
                if (await asyncio.wait((answer,), timeout=left))[0]:
                    return answer.result()
        finally:
            answer.cancel()  # nobody waits for it any more
        log.warning("a recaller did not answer for %g seconds and is killed", _SILENCE)
        self.kill()
        raise ConnectionError("the recaller does not answer")

    def _asked(self, note: dict[str, Any], body: bytes) -> asyncio.Future[Reply]:
        """Send a question; what will be its answer."""
        if self.ended or self._sink.is_closing():  # its pipe may be known to be closed before the other one is
            raise ConnectionError("the recaller has ended")
        self._sink.write(framed(note, body))
        answer: asyncio.Future[Reply] = self._loop.create_future()
        if not self.waiting:
            self._heard = self._loop.time()
        self.waiting.append(answer)
        return answer

    async def _read(self) -> None:
        try:
            while True:
                head, length = HEAD.unpack(await self._source.readexactly(HEAD.size))
                note = json.loads(await self._source.readexactly(head))
                reply = Reply(note, await self._source.readexactly(length) if length else b"")
                self._heard = self._loop.time()
                answer = self.waiting.popleft()
                if not answer.done():  # nobody waits any more for one that was cancelled
                    answer.set_result(reply)
        except (asyncio.IncompleteReadError, OSError):
            pass  # it has ended
        finally:
            for answer in self.waiting:
                if not answer.done():
                    answer.set_exception(ConnectionError("the recaller has ended"))

    async def end(self) -> None:
        self._sink.close()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except TimeoutError:
            self.kill()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()


class Recallers:
    """Up to `settings.recallers` processes. Used by the event loop only."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._all: list[_Recaller] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._closed = settings.recallers < 1
        self._next_start = 0.0
        self.at_once = 0
        """Recalls under way, wherever they are done."""

    @property
    def pids(self) -> list[int]:
        return [recaller.pid for recaller in self._all]

    async def ask(self, note: dict[str, Any], body: bytes) -> Reply | None:
        """The answer of a recaller; None where there is none to ask."""
        if self._closed or (not self._all and self.at_once < _CROWD):
            return None
        if not self._starting and len(self._all) < self._settings.recallers:  # one by one: we compute as well
            self._start(note, body)
        if not self._all:
            return None
        recaller = min(self._all, key=lambda one: (one.is_slow, len(one.waiting)))
        try:
            return await recaller.ask(note, body)
        except OSError:
            if recaller in self._all:
                self._all.remove(recaller)
                log.warning("a recaller ended unexpectedly")
            return None

    def _start(self, note: dict[str, Any], body: bytes) -> None:
        if asyncio.get_running_loop().time() < self._next_start:
            return
        task = asyncio.get_running_loop().create_task(self._started(note, body))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _started(self, note: dict[str, Any], body: bytes) -> None:
        try:
            self._all.append(await _Recaller.start(self._settings, note, body))
        except (OSError, TimeoutError) as error:
            log.error("no recaller could be started, the server recalls by itself: %s", type(error).__name__)
            self._next_start = asyncio.get_running_loop().time() + _PAUSE

    async def close(self) -> None:
        self._closed = True
        for task in list(self._starting):
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        all_, self._all = self._all, []
        await asyncio.gather(*(recaller.end() for recaller in all_))
