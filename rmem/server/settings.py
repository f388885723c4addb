"""The settings of a server: where its data is, where it listens, and the limits of each organisation."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from .. import checks, config
from ..errors import ConfigError, InputError, StoreError
from ..stores import is_postgres
from ..tables.search.allowance import quarter_of_memory

PORT = 8765
MAIN = "main"
"""The name of the first database, which keeps organisations, members and tokens, and where each workspace is."""
PREFIX = "RMEM_SERVER_"
_MB = 1024 * 1024
_ROOT_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*\Z")
_SERVER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}\Z")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _workers() -> int:
    return max(4, 2 * _cores())


def _recall_workers() -> int:
    """One for each core, as far as the server itself can keep them busy; one core is better without."""
    return 0 if _cores() == 1 else min(4, _cores())


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one organisation, which keep a server responsive for the others."""

    requests_per_second: float = 2000.0
    burst: int = 4000
    concurrent: int = 256
    body_bytes: int = 32 * 1024 * 1024
    statement_length: int = 250_000
    """Characters of SQL: reading a statement cannot be interrupted, and values belong into parameters."""
    statement_seconds: float = 30.0
    stream_seconds: float = 600.0
    rows: int = 10_000
    """Of an answer in one piece; a streamed answer has no end."""
    answer_bytes: int = 64 * 1024 * 1024
    """Of an answer in one piece."""
    disk_bytes: int = 50 * 1024**3
    """Of all workspaces together."""
    idempotency_bytes: int = 32 * 1024 * 1024
    """Of the answers that are kept for Idempotency-Keys; beyond, the oldest are forgotten."""

    def __post_init__(self) -> None:
        for name in ("requests_per_second", "statement_seconds", "stream_seconds"):
            checks.number(name, getattr(self, name), low=0.001)
        for name in (
            "burst", "concurrent", "body_bytes", "statement_length", "rows", "answer_bytes", "disk_bytes",
            "idempotency_bytes",
        ):  # fmt: skip
            checks.whole(name, getattr(self, name), low=1)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """One server.

    ServerSettings(data=Path("data"))                           # SQLite files in a folder
    ServerSettings(data=Path("data"), store="postgresql://…")   # one PostgreSQL database
    """

    data: Path
    store: str | None = None
    replicas: tuple[str, ...] = ()
    """Streaming replicas of that database, which answer recalls while they are fresh enough."""
    replica_staleness: float = 5.0
    """Seconds that a replica may be behind; whoever wrote finds that at once all the same."""
    servers: Mapping[str, str] = field(default_factory=dict)
    """Further PostgreSQL databases for workspaces, by a name of yours. `store` is called "main" and keeps the map."""
    host: str = "127.0.0.1"
    port: int = PORT
    auth: bool = True
    root_path: str = ""
    """The prefix that a reverse proxy takes off the paths of requests, for links that lead back through it."""
    behind_proxy: bool = False
    """Whether a reverse proxy with TLS is in front of it; what it says of the scheme is believed from this machine."""
    embedder: str | None = None
    own_store: str | None = None
    """The address of the one store that `rmem ui` shows to whoever runs it; then `data` holds nothing that lasts."""
    session_seconds: float = 1800.0
    """After so long without a request, a session of the dashboard ends."""
    limits: Limits = field(default_factory=Limits)
    threads: int = 40
    workers: int = field(default_factory=lambda: _workers() if hasattr(os, "fork") else 0)
    """Processes that run SQL statements and read long bodies; 0 to do it in the server's own process, where a statement
    that cannot be stopped holds up everybody."""
    worker_bytes: int = field(default_factory=lambda: max(512 * _MB, 2 * quarter_of_memory() // _workers()))
    """Memory that one of them may take: by default, all of them half of the machine's."""
    recall_workers: int = field(default_factory=lambda: _recall_workers() if hasattr(os, "fork") else 0)
    """Processes that recall when several ask at once; 0 to recall in the server's own threads alone. Each holds the
    indexes of the workspaces that it is asked about."""
    open_workspaces: int = 128
    shutdown_seconds: float = 30.0
    connections: int = 4096
    """At once. Beyond, the one that has waited longest without a request is closed."""
    head_bytes: int = 64 * 1024
    head_seconds: float = 10.0
    body_seconds: float = 120.0
    """How long the headers and the body of a request may be, and take to arrive."""
    body_rate: int = 4096
    """Bytes of a body that must arrive each second, after the first `head_seconds`: a body that trickles in would hold
    one of its organisation's places."""

    def __post_init__(self) -> None:
        checks.name("host", self.host)
        if not 0 <= checks.whole("port", self.port) <= 65535:
            raise checks.refuse("port", "a port number from 0 to 65535", self.port)
        for name in ("threads", "open_workspaces", "connections"):
            checks.whole(name, getattr(self, name), low=1)
        checks.whole("workers", self.workers, high=256)
        checks.whole("recall_workers", self.recall_workers, high=256)
        checks.whole("worker_bytes", self.worker_bytes, low=256 * _MB)
        checks.whole("head_bytes", self.head_bytes, low=1024)
        checks.whole("body_rate", self.body_rate)
        for name in ("head_seconds", "body_seconds"):
            checks.number(name, getattr(self, name), low=0.001)
        checks.number("shutdown_seconds", self.shutdown_seconds, low=0)
        checks.number("session_seconds", self.session_seconds, low=1)
        if not isinstance(self.root_path, str) or not _ROOT_PATH.match(self.root_path):
            raise checks.refuse("root_path", "empty, or a path such as /memory", self.root_path)
        if self.store is not None and not self.store.startswith(("postgresql://", "postgres://")):
            raise ConfigError("store must be the address of a PostgreSQL database; SQLite files lie in the data folder")
        object.__setattr__(self, "replicas", _addresses("replicas", self.replicas))
        checks.number("replica_staleness", self.replica_staleness, low=0.1)
        if self.replicas and self.store is None:
            raise ConfigError("replicas need the address of their primary: --store postgresql://…")
        object.__setattr__(self, "servers", _named_addresses("servers", self.servers))
        if self.servers and self.store is None:
            raise ConfigError("further servers need the first one, which knows what is where: --store postgresql://…")
        if not self.auth and not self.loopback:
            raise ConfigError(f"a server without tokens listens on this machine only (127.0.0.1), not on {self.host}")

    def place(self, server: str) -> str:
        """Return the address of the database that is called `server`."""
        if server == MAIN and self.store is not None:
            return self.store
        if server not in self.servers:
            known = ", ".join((MAIN, *self.servers))
            raise StoreError(
                f"there is no server {server!r}; known: {known}; name it by --server {server}=postgresql://…"
            )
        return self.servers[server]

    @property
    def loopback(self) -> bool:
        return self.host in _LOOPBACK

    @property
    def is_exposed(self) -> bool:
        """Whether tokens and memories may cross a network in the clear, as far as the settings tell."""
        return not self.loopback and not self.behind_proxy

    @property
    def control_address(self) -> str:
        """Where organisations, members and tokens are kept."""
        return self.store if self.store is not None else str(self.data / "control.db")

    @classmethod
    def read(
        cls, options: Mapping[str, Any], *, file: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> Self:
        """Read settings from options, else RMEM_SERVER_… variables, else a TOML file, else defaults.

        The file is `server.toml` in the data folder unless another is given; limits are under [limits].
        """
        given = os.environ if environment is None else environment
        chosen_options = {key: value for key, value in options.items() if value is not None}
        data = Path(
            chosen_options.pop("data", None) or given.get(PREFIX + "DATA") or config.home() / "server"
        ).expanduser()
        written = _toml(file if file is not None else data / "server.toml", required=file is not None)
        limits = written.pop("limits", {})
        own = [field_.name for field_ in fields(cls) if field_.name not in ("data", "limits", "own_store")]
        of_limits = [field_.name for field_ in fields(Limits)]
        try:
            checks.known_fields("the server's settings", written, own)
            checks.known_fields("[limits]", limits, of_limits)
            chosen = {
                **written,
                **_environment(given, own),
                **{key: chosen_options[key] for key in own if key in chosen_options},
            }
            bounds = {
                **limits,
                **_environment(given, of_limits),
                **{key: chosen_options[key] for key in of_limits if key in chosen_options},
            }
            return cls(data=data, limits=replace(Limits(), **bounds), **chosen)
        except InputError as error:
            raise ConfigError(str(error)) from None


def _addresses(field: str, given: object) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(
        isinstance(address, str) and is_postgres(address) for address in given
    ):
        raise checks.refuse(field, "a list of addresses such as postgresql://user@host/database", given)
    return tuple(given)


def _named_addresses(field: str, given: object) -> dict[str, str]:
    if not isinstance(given, Mapping) or not all(
        isinstance(address, str) and is_postgres(address) for address in given.values()
    ):
        raise checks.refuse(field, "names with addresses such as eu1=postgresql://user@host/database", given)
    for name in given:
        if not isinstance(name, str) or not _SERVER.match(name) or name == MAIN:
            raise checks.refuse(field, f"names of 1 to 63 letters, digits, '.', '_' or '-' other than {MAIN!r}", name)
    return dict(given)


def _toml(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise ConfigError(f"there is no file {path}") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as TOML: {error}") from None


def _environment(given: Mapping[str, str], names: list[str]) -> dict[str, Any]:
    """Read settings from variables such as RMEM_SERVER_BODY_BYTES=1000000."""
    found: dict[str, Any] = {}
    for name in names:
        text = given.get(PREFIX + name.upper(), "").strip()
        if not text:
            continue
        if name in ("host", "store", "embedder", "root_path"):
            found[name] = text
            continue
        try:
            found[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            raise ConfigError(f"{PREFIX}{name.upper()} must be a number, true or false, got {text!r}") from None
    return found
