"""How hooks reach the keeper: whether there is one, starting one, asking it. Light, because every hook comes by."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from ..filelocks import lock
from ..private_files import opener
from . import places
from .events import Event

if TYPE_CHECKING:
    import socket

END = b"end"
"""What the keeper is told, instead of an event, when it shall end."""
_LARGEST = 16 << 20  # bytes of a question
_ENDING = 5.0  # seconds that a keeper has to end


class AlreadyRunningError(Exception):
    """Another keeper has this home."""


class Lock:
    """Held by the one keeper of a home, and by the system given up for it if it is killed."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        file = open(places.lock(), "ab", opener=opener)
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


def is_running() -> bool:
    try:
        with Lock():
            return False
    except AlreadyRunningError:
        return True


def start() -> None:
    """Start one, with a life of its own."""
    import subprocess

    subprocess.Popen(
        [sys.executable, "-m", "remanence.team.keeper"],
        cwd=places.folder(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def call(event: Event, patience: float) -> str:
    """What the keeper answers to an event; a TimeoutError if it takes too long."""
    return _exchange(event.to_json().encode("utf-8", "surrogatepass"), patience).decode("utf-8", "replace")


def restart() -> bool:
    """Start a keeper in the place of the one that runs, with the version and the environment of this process. False if
    that one did not end in time."""
    import time

    with suppress(OSError):  # there is none
        _exchange(END, _ENDING)
    end = time.monotonic() + _ENDING
    while is_running():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    start()
    return True


def _exchange(said: bytes, patience: float) -> bytes:
    """Send bytes to the keeper and read its answer."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(patience)
        line.connect(os.fspath(places.socket()))
        line.sendall(said)
        line.shutdown(socket.SHUT_WR)
        return received(line)


def received(line: socket.socket) -> bytes:
    """All that somebody says before they stop talking."""
    parts, size = [], 0
    while chunk := line.recv(1 << 16):
        parts.append(chunk)
        size += len(chunk)
        if size > _LARGEST:
            raise ValueError("the question is too long")
    return b"".join(parts)
