"""A network between a store and PostgreSQL that breaks at COMMIT, on real sockets."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

ASKED, ARRIVED, ANSWERED = "asked", "arrived", "answered"
"""Where a COMMIT is cut off: before the server gets it, as soon as it has it, or when it has answered."""
PLACES = (ASKED, ARRIVED, ANSWERED)


class PostgresProxy:
    """Forwards to a server on a socket file. `cut(ANSWERED, 2)` lets one COMMIT pass and cuts the next one off there;
    with `away=True` all else is cut too, and nothing comes in, until `heal`. `commits` counts those that came."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432"
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.url = f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}?sslmode=disable&gssencmode=disable"
        self.commits = 0
        self.cuts = 0
        self._cut: tuple[str, int, bool] | None = None
        self._away = False
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def cut(self, place: str, after: int = 1, *, away: bool = False) -> None:
        with self._lock:
            self._cut = place, self.commits + after, away

    def heal(self) -> None:
        with self._lock:
            self._cut, self._away = None, False

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._end(self._open)
        for thread in self._threads:
            thread.join()
        self._listening.close()

    def __enter__(self) -> PostgresProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                ours, _ = self._listening.accept()
            except OSError:
                return  # closed
            with self._lock:
                away = self._away
            if away:
                ours.close()
                continue
            theirs = socket.socket(socket.AF_UNIX)
            theirs.connect(self._server)
            with self._lock:
                self._open |= {ours, theirs}
            waiting: list[str] = []
            for target, *ends in ((self._up, ours, theirs, waiting), (self._down, theirs, ours, waiting)):
                self._threads.append(threading.Thread(target=target, args=ends))
                self._threads[-1].start()

    def _up(self, source: socket.socket, target: socket.socket, waiting: list[str]) -> None:
        prepared: set[bytes] = set()

        def forward() -> None:
            head = _read(source, 4)
            target.sendall(head + _read(source, struct.unpack("!I", head)[0] - 4))  # the start has no kind
            for kind, message in _messages(source):
                if kind == b"P" and message[5:].split(b"\0")[1] == b"COMMIT":
                    prepared.add(message[5:].split(b"\0")[0])
                bound = kind == b"B" and message[5:].split(b"\0")[1] in prepared
                place = self._came() if bound or message[5:] == b"COMMIT\0" else None
                if place == ASKED:
                    return
                if place == ANSWERED:
                    waiting.append(place)
                target.sendall(message)
                if place == ARRIVED:
                    return

        self._pump(forward, source, target)

    def _down(self, source: socket.socket, target: socket.socket, waiting: list[str]) -> None:
        def forward() -> None:
            while data := source.recv(1 << 16):
                if waiting and b"C\0\0\0\x0bCOMMIT\0" in data:
                    return
                target.sendall(data)

        self._pump(forward, source, target)

    def _came(self) -> str | None:
        """A COMMIT: where it is to be cut off."""
        with self._lock:
            self.commits += 1
            if self._cut is None or self.commits < self._cut[1]:
                return None
            place, _, self._away = self._cut
            self._cut = None
            self.cuts += 1
            return place

    def _pump(self, forward: Callable[[], None], *ends: socket.socket) -> None:
        try:
            forward()
        except OSError:
            pass  # the other direction was cut
        with self._lock:
            everything = set(self._open) if self._away else set(ends)
        self._end(everything)

    def _end(self, ends: set[socket.socket]) -> None:
        for end in list(ends):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # shut already


def _messages(source: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    while True:
        head = _read(source, 5)
        yield head[:1], head + _read(source, struct.unpack("!I", head[1:])[0] - 4)


def _read(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = source.recv(size - len(found))
        if not more:
            raise ConnectionError("closed")
        found += more
    return found
