"""The daemon: a background process that keeps the memory open. It drains the spool of the hooks and answers their
questions through a socket. Hooks start it if none runs; it ends when it was idle for a while, but not while events wait
for a failing store. Killed at any moment it loses nothing: unfinished events are still in the spool."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from . import paths, spool
from .atomic_files import remove_stale
from .daemon_client import END, RECEIVED, STARTING, AlreadyRunningError, Lock, check_system, ensure_daemon, read_all
from .events import Event
from .hook import note

if TYPE_CHECKING:
    from .event_processor import EventProcessor

_IDLE = 900.0  # seconds without an event after which a daemon ends
_PAUSE = 0.25  # seconds between two looks into the spool
_BATCH = 200
_BRIEFING = 1.0  # seconds that the first session has to ask for its briefing
_SYNC_PAUSE = 60.0  # seconds between two syncs with the team's server
_LONGEST_OUTAGE = 6 * 3600.0
"""Seconds of failing after which a daemon ends: the next hook starts one with the version and environment of its own,
which may be what was missing."""


class Daemon:
    """The daemon's main loop. `run` returns after a long idle time."""

    def __init__(self, idle: float = _IDLE) -> None:
        self._processor: EventProcessor
        self._is_ready = threading.Event()
        """Set when there is a memory to work with: loading it takes longer than a hook has to reach us."""
        self._is_warm = False
        """Whether a prompt is answered at once: the first one loads the embedder and the index."""
        self._has_answered = threading.Event()
        self._idle = idle
        self._busy = time.monotonic()
        self._over = threading.Event()

    def run(self) -> bool:
        """Work until idle; return whether idleness was the reason to end."""
        check_system()
        place = paths.socket()
        place.unlink(missing_ok=True)  # of one that was killed; we have the lock
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            before = os.umask(0o077)
            try:
                listening.bind(os.fspath(place))
            finally:
                os.umask(before)
            listening.listen(64)
            threading.Thread(target=self._listen, args=(listening,), daemon=True).start()
            from .event_processor import EventProcessor

            self._processor = EventProcessor()
            self._is_ready.set()
            threading.Thread(target=self._share, daemon=True).start()
            threading.Thread(target=self._warm_up, daemon=True).start()
            for folder in (paths.folder(), paths.spool(), paths.sessions()):
                remove_stale(folder)
            self._busy = time.monotonic()  # loading was no idle time: it ended before its first look into the spool
            try:
                while self._is_needed():
                    if self._processor.drain(_BATCH):
                        self._busy = time.monotonic()
                    else:
                        self._processor.wants_draining.wait(_PAUSE)
                        self._processor.wants_draining.clear()
                return not self._over.is_set() and not self._processor.outage.is_active
            finally:
                self._over.set()
                self._processor.wants_sharing.set()  # whoever waits for it ends too
                place.unlink(missing_ok=True)
                self._processor.close()

    def _is_needed(self) -> bool:
        if self._over.is_set() or self._processor.outage.seconds > _LONGEST_OUTAGE:
            return False
        return time.monotonic() - self._busy < self._idle or self._processor.is_stuck()

    def _share(self) -> None:
        """Sync with the team's server now and then, in a thread of its own: a server may be slow."""
        while not self._over.is_set():
            self._processor.wants_sharing.clear()
            try:
                self._processor.share()
            except Exception as error:  # share() logs its own errors; others must not end this thread
                note(f"daemon: not shared: {type(error).__name__}: {error}")
            self._processor.wants_sharing.wait(_SYNC_PAUSE)

    def _warm_up(self) -> None:
        """Load what the first prompt needs, after the first session got its briefing."""
        self._has_answered.wait(_BRIEFING)
        try:
            self._processor.warm_up()
        except Exception as error:
            note(f"daemon: {type(error).__name__}: {error}")
        self._is_warm = True

    def _listen(self, listening: socket.socket) -> None:
        """Answer each connection in a thread. An error, such as too many open files, does not stop the loop."""
        trouble = ""
        while True:
            try:
                connection, _ = listening.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
                trouble = ""
            except (OSError, RuntimeError) as error:
                if self._over.is_set() or listening.fileno() < 0:
                    return
                if str(error) != trouble:
                    trouble = str(error)
                    note(f"daemon: a hook was not heard: {type(error).__name__}: {error}")
                self._over.wait(_PAUSE)

    def _answer(self, connection: socket.socket) -> None:
        self._busy = time.monotonic()
        with connection:
            try:
                connection.settimeout(5)
                request = read_all(connection)
                if request == END:
                    self._over.set()
                    return
                if request.startswith(RECEIVED):
                    self._is_ready.wait()
                    self._processor.confirm(request.removeprefix(RECEIVED).decode())
                    return
                event = Event.from_json(request.decode("utf-8", "surrogatepass"))
                if not self._is_warm:
                    with suppress(OSError):  # the hook has given up waiting; the next prompt gets the answer
                        connection.sendall(STARTING)
                self._is_ready.wait()
                context = self._processor.answer(event)
                self._has_answered.set()
                with suppress(OSError):
                    connection.sendall(context.encode("utf-8", "replace"))
            except Exception as error:  # one question must not end the daemon; the hook gets an empty answer
                note(f"daemon: {type(error).__name__}: {error}")


class _Log(logging.Handler):
    """Write warnings of the library, such as of a damaged memory, to the hooks' log: a daemon has no stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"daemon: {record.getMessage()}")


def main() -> None:
    """Run the daemon. The first argument, if any, is the descriptor of the inherited lock file."""
    logging.getLogger("rmem").addHandler(_Log(logging.WARNING))
    try:
        with Lock(int(sys.argv[1]) if len(sys.argv) > 1 else None):
            was_idle = Daemon(float(os.environ.get("RMEM_KEEPER_IDLE", _IDLE))).run()
        if was_idle and spool.waiting():
            ensure_daemon()  # for what came in the last moment, from hooks that saw us running
    except AlreadyRunningError:
        pass  # there is one
    except Exception as error:  # what waits is not lost; a later hook tries again
        note(f"daemon: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
