"""`rmem serve` as a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
from running_server import TLS

SERVE = ("-m", "rmem")
ALONE = ("--workers", "0", "--recall-workers", "0")
"""Options of a server that does everything itself: half as much to start."""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Process:
    """A server on a folder, on a free port unless one is given. `python` is what runs it."""

    def __init__(self, data: Path, *options: str, port: int | None = None, python: Sequence[str] = SERVE) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, *python, "serve", "--data", str(data), "--port", str(self.port)]
        self.child = subprocess.Popen(
            [*command, "--json", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}
        )
        self._lines: list[bytes] = []
        self._reader = threading.Thread(target=lambda: self._lines.extend(self.child.stderr))
        self._reader.start()

    def ready(self) -> Process:
        until = time.monotonic() + 120
        with httpx.Client(verify=TLS) as client:
            while True:
                try:
                    client.get(f"{self.url}/ready").raise_for_status()
                    return self
                except httpx.HTTPError:
                    assert self.child.poll() is None, b"".join(self._lines).decode()
                    assert time.monotonic() < until
                    time.sleep(0.05)

    def first_token(self) -> str:
        return json.loads(self.child.stdout.readline())["token"]

    def end(self, how: int) -> list[dict]:
        """The log, when the process has ended."""
        if self.child.poll() is None:
            self.child.send_signal(how)
        self.code = self.child.wait(60)
        self._reader.join()
        self.child.stdout.close()
        self.child.stderr.close()
        return [json.loads(line) for line in self._lines]
