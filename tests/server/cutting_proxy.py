"""A network that breaks: a proxy on real sockets which drops every connection after some bytes in one direction."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from urllib.parse import urlsplit

UP, DOWN = "up", "down"
"""To the server, and back."""


class CuttingProxy:
    """Forwards to a server. `cut(UP, 1000)` lets 1000 more bytes through and closes what is open and what comes after
    that, until `heal`; with `once=True` only the one connection is closed. `passed` counts the bytes that went by."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.passed: Counter[str] = Counter()
        self.cuts = 0
        self._left: dict[str, int] = {}
        self._once = False
        self._lock = threading.Lock()
        self._accepting = threading.Thread(target=self._accept)
        self._pumps: list[threading.Thread] = []
        self._accepting.start()

    def cut(self, direction: str, after: int, *, once: bool = False) -> None:
        with self._lock:
            self._left, self._once = {direction: after}, once

    def heal(self) -> None:
        with self._lock:
            self._left = {}

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listening.close()
        for pump in self._pumps:
            pump.join()

    def _accept(self) -> None:
        while True:
            try:
                ours, _ = self._listening.accept()
            except OSError:
                return  # closed
            theirs = socket.create_connection(self._server)
            for ends in ((UP, ours, theirs), (DOWN, theirs, ours)):
                self._pumps.append(threading.Thread(target=self._pump, args=ends))
                self._pumps[-1].start()

    def _pump(self, direction: str, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                allowed = self._allowed(direction, len(data))
                target.sendall(data[:allowed])
                if allowed < len(data):
                    break
        except OSError:
            pass  # the other direction was cut
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # shut already

    def _allowed(self, direction: str, size: int) -> int:
        with self._lock:
            allowed = min(size, self._left.get(direction, size))
            self.passed[direction] += allowed
            if direction in self._left:
                self._left[direction] -= allowed
            if allowed < size:
                self.cuts += 1
                if self._once:
                    self._left = {}
            return allowed
