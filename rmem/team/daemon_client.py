"""Talk to the daemon from a hook: check whether it runs, start it, send it events. Imports little, because every hook
loads it."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from ..errors import ConfigError
from ..filelocks import lock
from ..private_files import opener
from . import paths
from .events import Event

if TYPE_CHECKING:
    import socket

END = b"end"
"""Sent to the daemon instead of an event to make it end."""
STARTING = b"\0"
"""What an answer begins with while the daemon is opening the memory: it takes longer, and is worth waiting for."""
RECEIVED = b"received "
"""Sent with the id of an event when its answer was received; an answer that is not confirmed is given again."""
_CONFIRMING = 0.2  # seconds
_LARGEST = 16 << 20  # bytes of a question
_ENDING = 5.0  # seconds that a daemon has to end
_PAUSE = 0.02  # seconds between two attempts to reach a daemon that starts


class AlreadyRunningError(Exception):
    """Another daemon has this home."""


class Lock:
    """Lock that the one daemon of a home holds; the OS releases it if the process dies. A daemon started by a hook
    inherits the open file with its lock, so two cannot start at once."""

    def __init__(self, inherited: int | None = None) -> None:
        self._inherited = inherited
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        if self._inherited is not None:
            os.set_inheritable(self._inherited, False)
            self._file = os.fdopen(self._inherited, "ab")
            return self
        file = open(paths.lock(), "ab", opener=opener)
        try:
            lock(file.fileno(), wait=False)
        except OSError:
            file.close()
            raise AlreadyRunningError from None
        self._file = file
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def fileno(self) -> int:
        assert self._file is not None
        return self._file.fileno()


def is_running() -> bool:
    try:
        with Lock():
            return False
    except AlreadyRunningError:
        return True


def check_system() -> None:
    """Raise ConfigError where hooks cannot reach the daemon."""
    import socket

    if not hasattr(socket, "AF_UNIX"):
        raise ConfigError("the team memory needs Unix sockets, which this system lacks; use Linux, macOS or WSL")


def ensure_daemon() -> bool:
    """Start a detached daemon unless one runs; return whether one ran."""
    check_system()
    try:
        with Lock() as held:
            _start(held.fileno() if os.name == "posix" else None)
    except AlreadyRunningError:
        return True
    return False


def _start(held: int | None) -> None:
    """Start the process. It inherits the locked file `held`; without one it locks the file itself."""
    import subprocess

    subprocess.Popen(
        [sys.executable, "-m", "rmem.team.daemon", *([] if held is None else [str(held)])],
        cwd=paths.folder(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=() if held is None else (held,),
    )


def call(event: Event, patience: float, starting: float) -> str:
    """Send an event to the daemon and return its answer. Raise TimeoutError after `patience` seconds, or after
    `starting` seconds if it is starting."""
    request = event.to_json().encode("utf-8", "surrogatepass")
    end, last = time.monotonic() + starting, False
    while True:
        try:
            answer = _exchange(request, patience, end).decode("utf-8", "replace")
            if answer:
                with suppress(OSError):
                    _exchange(RECEIVED + event.id.encode(), _CONFIRMING)
            return answer
        except (FileNotFoundError, ConnectionRefusedError):  # it does not listen yet, or has just ended
            if last:
                raise TimeoutError("the daemon did not start in time") from None
            ensure_daemon()
            last = time.monotonic() > end
            time.sleep(_PAUSE)


def restart() -> bool:
    """Replace the running daemon by one with the version and environment of this process. Return False if the old one
    did not end in time."""
    with suppress(OSError):  # there is none
        _exchange(END, _ENDING)
    end = time.monotonic() + _ENDING
    while ensure_daemon():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _exchange(request: bytes, patience: float, starting: float = 0.0) -> bytes:
    """Send bytes to the daemon and read its answer; wait until `starting` if it reports that it is starting."""
    import socket

    check_system()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(patience)
        connection.connect(os.fspath(paths.socket()))
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        first = connection.recv(1)
        if first == STARTING:
            connection.settimeout(max(patience, starting - time.monotonic()))
            first = b""
        return first + read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    """Read until EOF."""
    parts, size = [], 0
    while chunk := connection.recv(1 << 16):
        parts.append(chunk)
        size += len(chunk)
        if size > _LARGEST:
            raise ValueError("the question is too long")
    return b"".join(parts)
