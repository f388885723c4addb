"""The keeper: a process in the background that has the memory open. It drains the spool of the hooks, and answers them
through a socket what the team knows. Hooks start it when there is none; it ends when nothing happened for a while, but
not while events wait for a store that fails. Killed at any moment it loses nothing: what it had not finished still
waits in the spool."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time

from . import places
from .door import END, AlreadyRunningError, Lock, received
from .drafts import remove_stale
from .events import Event
from .hook import note

_IDLE = 900.0  # seconds without an event after which a keeper ends
_PAUSE = 0.25  # seconds between two looks into the spool
_BATCH = 200
_MEETING = 60.0  # seconds between two meetings with the team's memory
_LONGEST_OUTAGE = 6 * 3600.0
"""Seconds of failing after which a keeper ends: the next hook starts one with the version and environment of its own,
which may be what was missing."""


class Keeper:
    """One keeper at work. `run` returns when it was idle for long."""

    def __init__(self, idle: float = _IDLE) -> None:
        from .work import Work

        self._work = Work()
        self._idle = idle
        self._busy = time.monotonic()
        self._over = threading.Event()

    def run(self) -> None:
        place = places.socket()
        place.unlink(missing_ok=True)  # of one that was killed; we have the lock
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            before = os.umask(0o077)
            try:
                listening.bind(os.fspath(place))
            finally:
                os.umask(before)
            listening.listen(64)
            threading.Thread(target=self._listen, args=(listening,), daemon=True).start()
            threading.Thread(target=self._share, daemon=True).start()
            for folder in (places.folder(), places.spool(), places.sessions()):
                remove_stale(folder)
            try:
                while self._is_needed():
                    if self._work.drain(_BATCH):
                        self._busy = time.monotonic()
                    else:
                        self._over.wait(_PAUSE)
            finally:
                self._over.set()
                self._work.wants_sharing.set()  # whoever waits for it ends too
                place.unlink(missing_ok=True)
                self._work.close()

    def _is_needed(self) -> bool:
        if self._over.is_set() or self._work.outage.seconds > _LONGEST_OUTAGE:
            return False
        return time.monotonic() - self._busy < self._idle or self._work.is_stuck()

    def _share(self) -> None:
        """Meet the team's memory now and then, beside the draining: a server may be slow or away."""
        while not self._over.is_set():
            self._work.wants_sharing.clear()
            try:
                self._work.share()
            except Exception as error:  # it tells of its own; what is left must not end this thread
                note(f"keeper: not shared: {type(error).__name__}: {error}")
            self._work.wants_sharing.wait(_MEETING)

    def _listen(self, listening: socket.socket) -> None:
        while True:
            try:
                line, _ = listening.accept()
            except OSError:
                return  # closed: the keeper ends
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: socket.socket) -> None:
        self._busy = time.monotonic()
        with line:
            try:
                line.settimeout(5)
                said = received(line)
                if said == END:
                    self._over.set()
                    return
                event = Event.from_json(said.decode("utf-8", "surrogatepass"))
                line.sendall(self._work.context(event).encode("utf-8", "replace"))
            except Exception as error:  # one question must not end the keeper; the hook gets an empty answer
                note(f"keeper: {type(error).__name__}: {error}")


class _Log(logging.Handler):
    """Write warnings of the library, such as of a damaged memory, to the hooks' log: a keeper has no stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"keeper: {record.getMessage()}")


def main() -> None:
    logging.getLogger("remanence").addHandler(_Log(logging.WARNING))
    try:
        with Lock():
            Keeper(float(os.environ.get("REMANENCE_KEEPER_IDLE", _IDLE))).run()
    except AlreadyRunningError:
        pass  # there is one
    except Exception as error:  # what waits is not lost; a later hook tries again
        note(f"keeper: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
