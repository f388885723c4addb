"""Processes that recall for a server, so that many recalls at once use more than one core.

They are started when several recalls wait for each other, and kept from then on. A server without them, or while they
start, recalls in its own threads; so it does when one of them fails."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextlib import suppress
from typing import Any, NamedTuple

from .recaller import HEAD, framed, settings_note
from .settings import ServerSettings

log = logging.getLogger(__name__)

_CROWD = 4  # recalls at once from which on it is worth while
_PATIENCE = 60.0  # seconds for a start


class Reply(NamedTuple):
    note: dict[str, Any]
    body: bytes


class _Recaller:
    """One process; asked by one request at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._sink, self._source = process, process.stdin, process.stdout

    @classmethod
    async def start(cls, settings: ServerSettings) -> _Recaller:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "remanence.server.recaller",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        made = cls(process)
        try:
            await asyncio.wait_for(made.ask(settings_note(settings), b""), _PATIENCE)
        except BaseException:
            made.kill()
            raise
        return made

    async def ask(self, note: dict[str, Any], body: bytes) -> Reply:
        self._sink.write(framed(note, body))
        if len(body) > 65_536:
            await self._sink.drain()
        head, length = HEAD.unpack(await self._source.readexactly(HEAD.size))
        told = json.loads(await self._source.readexactly(head))
        return Reply(told, await self._source.readexactly(length) if length else b"")

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
        self._free: asyncio.Queue[_Recaller | None] | None = None
        self._all: set[_Recaller] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._failed = settings.recallers < 1
        self.at_once = 0
        """Recalls under way, wherever they are done."""

    async def ask(self, note: dict[str, Any], body: bytes) -> Reply | None:
        """The answer of a recaller; None where there is none to ask."""
        if self._failed or (not self._all and self.at_once < _CROWD):
            return None
        if len(self._all) + len(self._starting) < self._settings.recallers:
            self._start()
        if not self._all or self._free is None:
            return None
        recaller = await self._free.get()
        if recaller is None:  # they are gone; let the next one know
            self._free.put_nowait(None)
            return None
        try:
            reply = await recaller.ask(note, body)
        except BaseException as error:
            self._lose(recaller)
            if not isinstance(error, asyncio.IncompleteReadError | OSError):
                raise
            log.warning("a recaller ended unexpectedly")
            return None
        self._free.put_nowait(recaller)
        return reply

    def _start(self) -> None:
        task = asyncio.get_running_loop().create_task(self._started())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _started(self) -> None:
        try:
            recaller = await _Recaller.start(self._settings)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            log.error("no recaller could be started, the server recalls by itself: %s", type(error).__name__)
            self._failed = True
            self._let_go()
            return
        if self._free is None or not self._all:
            self._free = asyncio.Queue()
        self._all.add(recaller)
        self._free.put_nowait(recaller)

    def _lose(self, recaller: _Recaller) -> None:
        recaller.kill()
        self._all.discard(recaller)
        if not self._all:
            self._let_go()

    def _let_go(self) -> None:
        """Those who wait for a recaller that will not come do it themselves."""
        if self._free is not None and not self._all:
            self._free.put_nowait(None)

    async def close(self) -> None:
        self._failed = True
        for task in list(self._starting):
            task.cancel()
        for recaller in list(self._all):
            await recaller.end()
        self._all.clear()
        self._let_go()
