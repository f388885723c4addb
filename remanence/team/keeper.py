"""The keeper: a process in the background that has the memory open. It drains the spool of the hooks, and answers them
through a socket what the team knows. Hooks start it when there is none; it ends when nothing happened for a while.
Killed at any moment it loses nothing: what it had not finished still waits in the spool."""

from __future__ import annotations

import os
import socket
import threading
import time

from ..errors import RemanenceError
from . import places
from .door import AlreadyRunningError, Lock, received
from .events import Event

_IDLE = 900.0  # seconds without an event after which a keeper ends
_PAUSE = 0.25  # seconds between two looks into the spool
_BATCH = 200
_MEETING = 60.0  # seconds between two meetings with the team's memory


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
            places.failed().unlink(missing_ok=True)
            try:
                while time.monotonic() - self._busy < self._idle:
                    if self._work.drain(_BATCH):
                        self._busy = time.monotonic()
                    else:
                        time.sleep(_PAUSE)
            finally:
                self._over.set()
                place.unlink(missing_ok=True)
                self._work.close()

    def _share(self) -> None:
        """Meet the team's memory now and then, beside the draining: a server may be slow or away."""
        while not self._over.is_set():
            self._work.share()
            self._over.wait(_MEETING)

    def _listen(self, listening: socket.socket) -> None:
        while True:
            try:
                line, _ = listening.accept()
            except OSError:
                return  # closed: the keeper ends
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: socket.socket) -> None:
        from .hook import note

        self._busy = time.monotonic()
        with line:
            try:
                line.settimeout(5)
                event = Event.from_json(received(line).decode("utf-8", "surrogatepass"))
                line.sendall(self._work.context(event).encode("utf-8", "replace"))
            except Exception as error:  # one question must not end the keeper; the hook gets an empty answer
                note(f"keeper: {type(error).__name__}: {error}")


def main() -> None:
    try:
        with Lock():
            Keeper(float(os.environ.get("REMANENCE_KEEPER_IDLE", _IDLE))).run()
    except AlreadyRunningError:
        pass  # there is one
    except RemanenceError as error:
        from .hook import note

        note(f"keeper: {error}")  # what waits is not lost; a later hook tries again
        places.failed().touch()


if __name__ == "__main__":
    main()
