"""The connection to Redis: connecting, translating errors, naming keys, and noticing that another server answers. It
knows nothing of memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from .. import checks
from ..errors import (
    ConfigError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
)
from ..extras import require
from ..forks import Forking, new_lock, watch
from .redis_scripts import PARTS

Command = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """The address and credentials of Redis. Neither its repr nor its text shows the password."""

    host: str
    port: int
    db: int
    username: str | None
    password: str | None = field(repr=False)
    tls: bool
    ca: str | Path | None
    cluster: bool
    connect_timeout: float
    socket_timeout: float

    def __post_init__(self) -> None:
        checks.name("host", self.host)
        checks.whole("port", self.port, low=1, high=65_535)
        checks.whole("db", self.db)
        for key in ("username", "password"):
            value = getattr(self, key)
            if value is not None and not isinstance(value, str):  # a refused password must not be shown
                raise ConfigError(f"{key} must be a text, got {type(value).__name__}")
        checks.flag("tls", self.tls)
        checks.flag("cluster", self.cluster)
        checks.number("connect_timeout", self.connect_timeout, low=0.001)
        checks.number("socket_timeout", self.socket_timeout, low=0.001)
        if self.ca is not None and not self.tls:
            raise ConfigError("ca is given but tls is not: the connection would not be encrypted")
        if self.cluster and self.db:
            raise ConfigError(f"db must be 0 in a cluster, got {self.db}; use a namespace of its own instead")

    @classmethod
    def options(cls, url: str) -> dict[str, Any]:
        """Return the options of a store at redis://[user[:password]@]host[:port][/db][?namespace=…&cluster=yes];
        rediss:// is the same over TLS."""
        try:
            parts = urlsplit(url)
            port = parts.port or 6379
        except ValueError as error:
            raise ConfigError(f"the address of Redis is malformed: {error}") from None
        options = dict(parse_qsl(parts.query))
        database = parts.path.strip("/") or "0"
        if unknown := sorted(options.keys() - {"namespace", "cluster"}):
            raise ConfigError(f"the address of Redis takes ?namespace=… and cluster=yes, not {unknown[0]}")
        if not parts.hostname or not database.isdecimal() or options.get("cluster", "yes") != "yes":
            raise ConfigError("the address of Redis must be redis://host:port/0?namespace=…, its path a number")
        return {
            "host": parts.hostname,
            "port": port,
            "db": int(database),
            "username": unquote(parts.username) if parts.username else None,
            "password": unquote(parts.password) if parts.password else None,
            "tls": parts.scheme == "rediss",
            "cluster": "cluster" in options,
        } | ({"namespace": options["namespace"]} if "namespace" in options else {})

    def place(self) -> dict[str, Any]:
        """Return all fields but the password."""
        return {
            "host": self.host,
            "port": self.port,
            "db": self.db,
            "username": self.username,
            "tls": self.tls,
            "ca": None if self.ca is None else str(self.ca),
            "cluster": self.cluster,
        }

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class RedisLink(Forking):
    """Runs commands on one Redis or Redis Cluster. Connects at first use, again after a failure, and anew in every
    forked child; a client that was passed in handles forks itself."""

    def __init__(self, address: RedisAddress, client: Any = None) -> None:
        require("redis", "the Redis store")
        import redis

        if client is not None and client.get_encoder().decode_responses:
            raise ConfigError("client must be made without decode_responses: memories are kept as bytes")
        self._redis = redis
        self._address = address
        self._client = client
        self._given = client is not None
        self._nodes: set[tuple[str, int]] = set()  # of a cluster, as far as known, beside the one of the address
        self._lock = new_lock()
        self.fresh = True  # a connection was made since `server` was asked: it may be another server
        self._server = ""
        self._closed = False
        watch(self)

    def after_fork_in_child(self) -> None:
        self.fresh = True
        if not self._given:
            self._client = None

    def __str__(self) -> str:
        return str(self._address)

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands in one round trip, but not in one transaction; return their answers."""
        if not commands:
            return []
        with self._translate_errors():
            client = self._get_client()
            if len(commands) == 1:
                return [client.execute_command(*commands[0])]
            with client.pipeline(**({} if self._in_cluster(client) else {"transaction": False})) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                answers: list[Any] = pipeline.execute()
                return answers

    def confirm(self, key: str, copies: int) -> None:
        """Wait until `copies` replicas have all that was written to the slot of `key`; StoreUnreachableError if they do
        not in time. Sets `key` for a moment and waits for that write: WAIT only knows writes of its own connection, and
        replicas apply writes in order."""
        moved: tuple[type[Exception], ...] = (self._redis.exceptions.MovedError, self._redis.exceptions.AskError)
        patience = int(self._address.socket_timeout * 500)
        with self._translate_errors():
            client = self._get_client()
            if self._in_cluster(client):
                client = client.get_redis_connection(client.get_node_from_key(key))
            try:
                with client.pipeline(transaction=False) as pipeline:
                    pipeline.execute_command("SET", key, "", "PX", 60_000)
                    pipeline.execute_command("WAIT", copies, patience)
                    _, reached = pipeline.execute()
            except moved as error:
                self._drop_client()
                raise StoreUnreachableError("the slot was moved meanwhile; the write may or may not be kept") from error
        if reached < copies:
            raise StoreUnreachableError(
                f"{reached} of {copies} replicas had the write after {patience / 1000:g} s; it may or may not be kept"
            )

    def states(
        self, keys: Sequence[tuple[str, str]], more: Sequence[Command]
    ) -> tuple[list[tuple[Any, Any]], list[Any]]:
        """Return the values under pairs of keys of one slot each, and the answers to `more`."""
        with self._translate_errors():
            together = not self._in_cluster(self._get_client())
        if together and keys:
            flat, *answers = self.run([("MGET", *(key for pair in keys for key in pair)), *more])
            return list(zip(flat[::2], flat[1::2], strict=True)), answers
        answers = self.run([*(("MGET", *pair) for pair in keys), *more])
        return [(first, second) for first, second in answers[: len(keys)]], answers[len(keys) :]

    def server(self) -> str:
        """Return an identifier that changes when the server (or one of a cluster) was restarted or replaced, which may
        have lost data. Asks only if a connection was made since the last call."""
        if self.fresh or not self._server:
            self.fresh = False
            try:
                with self._translate_errors():
                    client = self._get_client()
                    where = {"target_nodes": type(client).PRIMARIES} if self._in_cluster(client) else {}
                    info = client.info("server", **where)
            except StoreError:
                self.fresh = True
                raise
            runs = [info] if "run_id" in info else info.values()
            self._server = " ".join(sorted(str(run["run_id"]) for run in runs))
        return self._server

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        with self._lock:
            client, self._client = self._client, None
        if client is not None and not self._given:
            client.close()

    def _in_cluster(self, client: Any) -> bool:
        return isinstance(client, self._redis.RedisCluster)

    def _get_client(self) -> Any:
        with self._lock:
            if self._closed:
                raise StoreClosedError("this store is closed; open it again to use it")
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> Any:
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        address = self._address
        options: dict[str, Any] = {
            "host": address.host,
            "port": address.port,
            "username": address.username,
            "password": address.password,
            "socket_connect_timeout": address.connect_timeout,
            "socket_timeout": address.socket_timeout,
            # A write that is sent twice could be stored twice; the caller knows whether to retry.
            "retry": Retry(NoBackoff(), 0),
        }
        if address.tls:
            options |= {"ssl": True, "ssl_ca_certs": None if address.ca is None else str(address.ca)}
        if address.cluster:
            made: Any = self._redis.cluster.ClusterNode
            nodes = [made(host, port) for host, port in self._nodes]
            return self._redis.RedisCluster(**options, startup_nodes=nodes or None, redis_connect_func=self._on_connect)
        return self._redis.Redis(**options, db=address.db, redis_connect_func=self._on_connect_single)  # type: ignore[arg-type]

    def _on_connect_single(self, connection: Any) -> None:
        connection.on_connect()
        self.fresh = True

    def _on_connect(self, connection: Any) -> None:
        self.fresh = True

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of the redis library as ours."""
        known = self._redis.exceptions
        try:
            yield
        except (
            known.ConnectionError,
            known.TimeoutError,
            known.ClusterDownError,
            known.ClusterError,
            known.RedisClusterException,
            known.TryAgainError,
            known.MasterDownError,
        ) as error:
            self._drop_client()
            raise StoreUnreachableError(
                f"Redis at {self._address} cannot be reached: {self._message(error)}"
            ) from error
        except known.OutOfMemoryError as error:
            raise StoreFullError(f"Redis at {self._address} has no memory left; nothing was written") from error
        except known.ReadOnlyError as error:
            raise StoreReadOnlyError(f"Redis at {self._address} is a replica that cannot be written") from error
        except known.RedisError as error:
            raise StoreError(f"Redis at {self._address} refused a command: {self._message(error)}") from error

    def _drop_client(self) -> None:
        """Drop a cluster client that has lost its nodes, so that a new one is made from the nodes it knew: the node of
        the address may be the one that failed. A plain client reconnects itself."""
        if self._address.cluster and not self._given:
            with self._lock:
                if self._client is not None:
                    self._nodes = {(str(node.host), int(node.port)) for node in self._client.get_nodes()} or self._nodes
                self._client = None

    def _message(self, error: Exception) -> str:
        text = str(error) or type(error).__name__
        return text.replace(self._address.password, "***") if self._address.password else text


class Keys:
    """The names of keys. All keys of an agent share a hash tag, and so one slot of a cluster."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._space = _escape(checks.name("namespace", namespace))
        self.agents = f"{self._space}:agents"
        self.meta = f"{self._space}:notes"
        self.strangers = f"{self._space}:strangers"  # id → agent, of foreign ids

    def __str__(self) -> str:
        return f"namespace {self._namespace!r}"

    def of(self, agent: str, part: str) -> str:
        return f"{self._space}:{{{_escape(agent)}}}:{part}"

    def all_of(self, agent: str) -> list[str]:
        """Return all keys of an agent, in the order in which the scripts expect them."""
        stem = self.of(agent, "")
        return [stem + part for part in PARTS]


def _escape(name: str) -> str:
    """Escape braces, which would end the hash tag early."""
    return name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def script(text: str, keys: Sequence[str], *arguments: Any) -> Command:
    """Return the command that runs a script. Redis caches the compiled form of each text."""
    return ("EVAL", text, len(keys), *keys, *arguments)
