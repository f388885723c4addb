"""Transactions of one tenant's memories in PostgreSQL, on the connections of `postgres_pool`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from pgvector.psycopg import register_vector
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict

from ...errors import (
    ConfigError,
    InputError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreMovedError,
    StoreReadOnlyError,
    StoreUnreachableError,
)
from . import postgres_arrays
from .postgres_pool import (
    CONNECT_OPTIONS,
    SNAPSHOT,
    WRITE,
    ConnectionProfile,
    PooledDatabase,
    Raw,
    Result,
    is_lost,
    line,
)

if TYPE_CHECKING:
    from .postgres_index import TenantSnapshot

ARRIVING = "arriving"
"""The value of `moved` in the head of a tenant while its rows are copied to this server."""
_MAINTENANCE_LOCK = 0x524D454D_0001  # an advisory lock
_LOCK_PATIENCE = 2000  # milliseconds
_OWN = ("tenant", "replica", "staleness")  # options of an address that are not the server's


class Address(NamedTuple):
    """The address of a store, its tenant, its replicas, and how many seconds these may be behind."""

    url: str
    tenant: str | None
    replicas: tuple[str, ...] = ()
    staleness: float | None = None

    @classmethod
    def of(cls, written: str) -> Address:
        """Parse postgresql://…; `?tenant=…`, `replica=…` and `staleness=…` are ours and not passed to the server."""
        scheme, separator, rest = written.partition("://")
        if not separator or scheme.partition("+")[0] not in ("postgresql", "postgres"):
            raise ConfigError(f"not an address of PostgreSQL: {written!r}; write postgresql://user@host/database")
        parts = urlsplit(f"postgresql://{rest}")
        options = parse_qsl(parts.query, keep_blank_values=True)
        own: dict[str, list[str]] = {key: [value for name, value in options if name == key] for key in _OWN}
        url = urlunsplit(parts._replace(query=urlencode([pair for pair in options if pair[0] not in own])))
        try:
            conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise ConfigError(f"not an address of PostgreSQL: {line(error)}") from None
        try:
            staleness = float(own["staleness"][-1]) if own["staleness"] else None
        except ValueError:
            raise ConfigError(f"staleness must be a number of seconds, got {own['staleness'][-1]!r}") from None
        return cls(url, own["tenant"][-1] if own["tenant"] else None, tuple(own["replica"]), staleness)

    @property
    def shown(self) -> str:
        """The address without its password."""
        parts = conninfo_to_dict(self.url)
        return f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}"


class PostgresConnection:
    """A running transaction with the interface of SQLite's driver: parameters are written `?`."""

    seen: TenantSnapshot | None = None
    """The state of the tenant, after its own writes."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> psycopg.Cursor[tuple[Any, ...]]:
        return self.raw.execute(_translate(sql), parameters, binary=True)

    def execute_numbered(self, sql: bytes, parameters: Sequence[Any]) -> None:
        """Run a statement whose parameters are written `$1`: long ones take longer to translate than to run."""
        psycopg.RawCursor(self.raw).execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> None:
        with self.raw.cursor() as cursor:
            cursor.executemany(_translate(sql), parameters)


@lru_cache(1024)
def _translate(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


class TenantFrame(NamedTuple):
    """How a transaction of a tenant is begun: the tenant, the role that sees no other's rows, and the search path."""

    tenant: str
    role: str | None
    path: str
    number: int = 0  # of the tenant
    durable: bool = True  # whatever the server would do by itself

    def enter(self, raw: Raw, kind: str) -> str | None:
        """Begin a transaction of the tenant in one round trip; return its number if it writes."""
        results = raw.execute(_begin_sql(self, kind), prepare=False)  # several commands cannot be prepared
        while results.nextset():
            pass
        found = results.fetchone()
        if kind != WRITE:
            refuse_moved(found)
            return None
        return None if found is None else str(found[0])

    def apply(self, raw: Raw, *, writing: bool) -> None:
        """Become the tenant for the rest of a transaction."""
        settings = self.settings(writing=writing)
        calls = ", ".join(f"set_config('{name}', %s, true)" for name in settings)
        raw.execute(f"SELECT {calls}".encode(), list(settings.values()))

    def settings(self, *, writing: bool) -> dict[str, str]:
        """Return the settings of a transaction of the tenant."""
        found = {"search_path": self.path, "remanence.tenant": self.tenant}
        if writing and self.durable:
            found["synchronous_commit"] = "on"
        if self.role is not None:
            found["role"] = self.role
        return found

    def stay(self, raw: Raw) -> None:
        """Become the role until the connection ends, for statements outside transactions."""
        raw.execute("SELECT set_config('search_path', %s, false)", [self.path])
        if self.role is not None:
            raw.execute("SELECT set_config('role', %s, false)", [self.role])


@lru_cache(1024)
def _begin_sql(frame: TenantFrame, kind: str) -> bytes:
    """Return the SQL that begins a transaction, as one text."""
    settings = "".join(
        f"; SELECT set_config({_quote(name)}, {_quote(value)}, true)"
        for name, value in frame.settings(writing=kind == WRITE).items()
    )
    last = "pg_current_xact_id()::text" if kind == WRITE else "moved FROM heads"
    return f"BEGIN {kind}{settings}; SELECT {last}".encode()


def refuse_moved(head: tuple[Any, ...] | None) -> None:
    """Refuse a tenant whose rows were moved to another server; `head` is its head row. Writers check after they have
    locked the head (`postgres_writer`)."""
    if head is not None and head[0] is not None:
        raise StoreMovedError(f"these rows are not on this server ({head[0]}); try again")


def _quote(text: str) -> str:
    return psycopg.sql.Literal(text).as_string()


def _register(raw: Raw) -> None:
    register_vector(raw)
    postgres_arrays.register(raw)


_PROFILE = ConnectionProfile(12, b"SET jit = off; SET idle_in_transaction_session_timeout = '10min'", _register)


class PostgresLink(PooledDatabase[PostgresConnection]):
    """Transactions of memories on one database. `patience` is how many seconds to wait for a server."""

    attempts = 10
    closed_words = "this store is closed; open it again to use it"
    causes = True

    def __init__(self, address: Address, *, patience: float = 5.0) -> None:
        self.address, self.patience = address, patience
        super().__init__(address.url, _PROFILE)

    @property
    def shown(self) -> str:
        return self.address.shown

    def timeout(self) -> float:
        return self.patience

    def open(self) -> Raw:
        return connect(self.address)

    def to_error(self, error: psycopg.Error, frame: object) -> Exception:
        return explain(error, self.address)

    def wrap(self, raw: Raw) -> PostgresConnection:
        return PostgresConnection(raw)

    def read(self, frame: TenantFrame, work: Callable[[PostgresConnection], Result]) -> Result:
        """Run `work` in one snapshot; again on another connection if one is lost."""
        return self._run(frame, SNAPSHOT, work)

    def write(
        self,
        frame: TenantFrame,
        work: Callable[[PostgresConnection], Result],
        too_late: Callable[[], None] | None = None,
    ) -> Result:
        """Run `work` in a transaction that is durable when this returns. It may be run several times, of which the last
        counts. `too_late` is called if this is interrupted after the commit."""
        return self._run(frame, WRITE, work, too_late)

    def maintain(self, frame: TenantFrame, statement: str) -> None:
        """Run a maintenance statement outside any transaction; StoreBusyError if it does not get its lock soon, because
        all others would wait behind it."""
        with connect(self.address) as raw:
            try:
                frame.stay(raw)
                raw.execute(f"SET lock_timeout = {_LOCK_PATIENCE}".encode())
                lock_maintenance(raw)
                raw.execute(statement.encode())
            except psycopg.Error as error:
                raise explain(error, self.address) from error


def connect(address: Address) -> Raw:
    """Open a connection outside the pool, for statements outside transactions."""
    try:
        return Raw.connect(address.url, **CONNECT_OPTIONS)
    except psycopg.OperationalError as error:
        message = line(error)
        if any(words in message for words in ("authentication", "does not exist", "no pg_hba.conf entry", "role ")):
            raise ConfigError(f"{address.shown} cannot be opened: {message}") from None
        raise StoreUnreachableError(f"{address.shown} does not answer: {message}") from None
    except psycopg.Error as error:
        raise explain(error, address) from error


def lock_maintenance(raw: Raw) -> None:
    """Take the maintenance lock of the database until the connection ends. Poll for it: waiting inside the server would
    be a deadlock, because building an index waits for every transaction."""
    while raw.execute("SELECT pg_try_advisory_lock(%s)", [_MAINTENANCE_LOCK]).fetchone() != (True,):
        time.sleep(0.1)


def explain(error: psycopg.Error, address: Address) -> Exception:
    """Convert an error of PostgreSQL to ours."""
    message, where = line(error), address.shown
    match error:
        case pg.DiskFull() | pg.OutOfMemory():
            return StoreFullError(f"no space left at {where}: {message}; the write was rolled back")
        case pg.ReadOnlySqlTransaction():
            return StoreReadOnlyError(f"{where} takes no writes: {message}")
        case pg.InsufficientPrivilege():
            return StoreReadOnlyError(f"{where} does not allow it: {message}")
        case pg.LockNotAvailable() | pg.QueryCanceled() | pg.TooManyConnections():
            return StoreBusyError(f"{where}: {message}; try again")
        case pg.SerializationFailure() | pg.DeadlockDetected():
            return StoreBusyError(f"others were in the way at {where} again and again: {message}")
        case psycopg.DataError():
            return InputError(f"PostgreSQL cannot keep this: {message}")
    if is_lost(error):
        return StoreUnreachableError(f"{where} does not answer: {message}")
    return StoreError(f"{where}: {message}")
