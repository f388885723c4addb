"""The way to a PostgreSQL database: one pool of connections for each address in a process, and transactions that belong
to one tenant, that are repeated when another was in their way, and that outlive a restart of the server.

A transaction that was lost before COMMIT left nothing behind, so it is run again. One that was lost in COMMIT may have
been written: the server is asked what became of it, and only when it cannot say is the caller told so."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ...errors import (
    ConfigError,
    InputError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
)

try:
    import psycopg
    from pgvector.psycopg import register_vector
    from psycopg import errors as pg
    from psycopg import pq
    from psycopg.conninfo import conninfo_to_dict
    from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout
except ImportError as error:
    raise ConfigError(f"PostgreSQL needs {error.name}: pip install 'remanence[postgres]'") from error

Raw = psycopg.Connection[tuple[Any, ...]]
Result = TypeVar("Result")

_ATTEMPTS = 10  # how often a transaction is repeated when others are in its way
_CONNECTIONS = 12
_TENDING = 0x524D454D_0001  # an advisory lock
_CLOSED = "this store is closed; open it again to use it"


class Address(NamedTuple):
    """Where a store is, and whose rows of it."""

    url: str
    tenant: str | None

    @classmethod
    def of(cls, written: str) -> Address:
        """From postgresql://…; `?tenant=…` is ours and not the server's."""
        scheme, separator, rest = written.partition("://")
        if not separator or scheme.partition("+")[0] not in ("postgresql", "postgres"):
            raise ConfigError(f"not an address of PostgreSQL: {written!r}; write postgresql://user@host/database")
        parts = urlsplit(f"postgresql://{rest}")
        options = parse_qsl(parts.query, keep_blank_values=True)
        given = [value for key, value in options if key == "tenant"]
        url = urlunsplit(parts._replace(query=urlencode([pair for pair in options if pair[0] != "tenant"])))
        try:
            conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise ConfigError(f"not an address of PostgreSQL: {_line(error)}") from None
        return cls(url, given[-1] if given else None)

    @property
    def shown(self) -> str:
        """The address without its password."""
        told = conninfo_to_dict(self.url)
        return f"postgresql://{told.get('host', '')}/{told.get('dbname', '')}"


class Connection:
    """A transaction under way, with the manners of SQLite's driver: parameters are written `?`."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> psycopg.Cursor[tuple[Any, ...]]:
        return self.raw.execute(_translated(sql), parameters, binary=True)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> None:
        with self.raw.cursor() as cursor:
            cursor.executemany(_translated(sql), parameters)


@lru_cache(1024)
def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


class Frame(NamedTuple):
    """What a transaction begins with: its tenant, the role that sees no other's rows, and where names are found."""

    tenant: str
    role: str | None
    path: str
    number: int = 0  # of the tenant
    durable: bool = True  # whatever the server would do by itself

    def enter(self, raw: Raw, *, writing: bool) -> str | None:
        """Begin to be the tenant; the number of the transaction when it writes."""
        settings = {"search_path": self.path, "remanence.tenant": self.tenant}
        if writing and self.durable:
            settings["synchronous_commit"] = "on"
        if self.role is not None:
            settings["role"] = self.role
        asked = [f"set_config('{name}', %s, true)" for name in settings]
        asked.append("pg_current_xact_id()::text" if writing else "NULL")
        row = raw.execute(f"SELECT {', '.join(asked)}".encode(), list(settings.values())).fetchone()
        return None if row is None or row[-1] is None else str(row[-1])

    def stay(self, raw: Raw) -> None:
        """Be the role for as long as a connection lasts, for what cannot be done inside a transaction."""
        raw.execute("SELECT set_config('search_path', %s, false)", [self.path])
        if self.role is not None:
            raw.execute("SELECT set_config('role', %s, false)", [self.role])


class _Shared:
    def __init__(self, url: str, size: int) -> None:
        self.users = 0
        self.pool: ConnectionPool[Raw] = ConnectionPool(
            url,
            min_size=0,
            max_size=size,
            max_idle=60,
            reconnect_timeout=1.0,
            configure=_configure,
            kwargs=_HOW,
            open=True,
            name="remanence",
        )


_HOW: dict[str, Any] = {"autocommit": True, "connect_timeout": 10}
_SHARED: dict[tuple[int, str, int], _Shared] = {}
_LOCK = Lock()


def _configure(raw: Raw) -> None:
    raw.execute("SET jit = off")
    raw.execute("SET idle_in_transaction_session_timeout = '10min'")
    register_vector(raw)


class Link:
    """Safe to use from many threads; all links to an address share a pool. `patience` is how many seconds to wait for a
    server that does not answer."""

    def __init__(self, address: Address, *, patience: float = 5.0, size: int = _CONNECTIONS) -> None:
        self.address, self.patience = address, patience
        self._key = (os.getpid(), address.url, size)
        self._closed = False
        with _LOCK:
            shared = _SHARED.get(self._key)
            if shared is None:
                shared = _SHARED[self._key] = _Shared(address.url, size)
            shared.users += 1
        self._pool = shared.pool

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Give the link up; the pool is closed with its last one."""
        with _LOCK:
            if self._closed:
                return
            self._closed = True
            shared = _SHARED[self._key]
            shared.users -= 1
            if shared.users:
                return
            del _SHARED[self._key]
        if self._key[0] == os.getpid():  # a forked child must not speak on its parent's connections
            shared.pool.close()

    def read(self, frame: Frame, work: Callable[[Connection], Result]) -> Result:
        """Do `work` on one state of the data; again on another connection when one is lost."""
        return self._repeated(frame, "ISOLATION LEVEL REPEATABLE READ, READ ONLY", work)

    def write(self, frame: Frame, work: Callable[[Connection], Result]) -> Result:
        """Do `work` in a transaction that is durable when this returns. It may be done more than once, the last time
        counts."""
        return self._repeated(frame, "READ WRITE", work)

    def tend(self, frame: Frame, statement: str) -> None:
        """Run a statement that looks after tables, outside any transaction."""
        with connect(self.address) as raw:
            try:
                frame.stay(raw)
                take_turn(raw)
                raw.execute(statement.encode())
            except psycopg.Error as error:
                raise explain(error, self.address) from error

    def _repeated(self, frame: Frame, kind: str, work: Callable[[Connection], Result]) -> Result:
        until = time.monotonic() + self.patience
        attempt = 0
        while True:
            attempt += 1
            tried: _Attempt[Result] = _Attempt()
            try:
                with self._connection(until) as raw:
                    return tried.run(raw, frame, kind, work)
            except psycopg.Error as error:
                if is_lost(error):
                    if tried.committing and kind == "READ WRITE" and self._was_committed(tried.number, until):
                        return tried.result  # type: ignore[return-value]
                    self._pool.check()  # the idle ones are lost too; those that answer are kept
                    if time.monotonic() >= until:
                        raise StoreUnreachableError(f"{self.address.shown} does not answer: {_line(error)}") from error
                elif not isinstance(error, pg.SerializationFailure | pg.DeadlockDetected) or attempt >= _ATTEMPTS:
                    raise explain(error, self.address) from error
                time.sleep(random.uniform(0.5, 1.0) * min(0.01 * 2**attempt, 0.25))

    @contextmanager
    def _connection(self, until: float) -> Iterator[Raw]:
        if self._closed:
            raise StoreClosedError(_CLOSED)
        try:
            raw = self._pool.getconn(timeout=max(0.1, until - time.monotonic()))
        except PoolClosed:
            raise StoreClosedError(_CLOSED) from None
        except PoolTimeout:
            connect(self.address).close()  # which raises if it is the server that is away
            raise StoreBusyError(f"all {self._pool.max_size} connections to {self.address.shown} are busy") from None
        try:
            yield raw
        finally:
            if not raw.closed and raw.info.transaction_status != pq.TransactionStatus.IDLE:
                try:
                    raw.execute("ROLLBACK")
                except psycopg.Error:
                    raw.close()
            self._pool.putconn(raw)

    def _was_committed(self, number: str | None, until: float) -> bool:
        """What became of a transaction whose COMMIT was not answered; False if nothing of it remains."""
        while time.monotonic() < until:
            try:
                with self._connection(until) as raw:
                    row = raw.execute("SELECT pg_xact_status(%s::xid8)", [number]).fetchone()
            except (psycopg.OperationalError, StoreUnreachableError):
                time.sleep(0.1)
                continue
            except psycopg.Error:
                break  # this server never knew it
            status = row[0] if row else None
            if status in ("committed", "aborted"):
                return bool(status == "committed")
            if status is None:
                break  # too long ago to be known
            time.sleep(0.05)
        raise StoreUnreachableError(
            f"{self.address.shown} went away; what was being written may or may not have arrived"
        )


class _Attempt(Generic[Result]):
    """One run of a transaction, and how far it came."""

    def __init__(self) -> None:
        self.committing = False
        self.number: str | None = None
        self.result: Result | None = None

    def run(self, raw: Raw, frame: Frame, kind: str, work: Callable[[Connection], Result]) -> Result:
        raw.execute(f"BEGIN {kind}".encode())
        self.number = frame.enter(raw, writing=kind == "READ WRITE")
        self.result = work(Connection(raw))
        self.committing = True
        raw.execute("COMMIT")
        return self.result


def connect(address: Address) -> Raw:
    """A connection of one's own, for what cannot be done inside a transaction."""
    try:
        return psycopg.connect(address.url, **_HOW)
    except psycopg.OperationalError as error:
        told = _line(error)
        if any(words in told for words in ("authentication", "does not exist", "no pg_hba.conf entry", "role ")):
            raise ConfigError(f"{address.shown} cannot be opened: {told}") from None
        raise StoreUnreachableError(f"{address.shown} does not answer: {told}") from None
    except psycopg.Error as error:
        raise explain(error, address) from error


def take_turn(raw: Raw) -> None:
    """Look after tables one at a time, in all processes, until the connection ends. To wait inside the server would be
    to wait for each other: building an index waits for every transaction."""
    while raw.execute("SELECT pg_try_advisory_lock(%s)", [_TENDING]).fetchone() != (True,):
        time.sleep(0.1)


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, so that nothing of a transaction that was not committed remains."""
    state = error.sqlstate or ""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        not state or state[:2] == "08" or state in ("57P01", "57P02", "57P03", "57P05")
    )


def explain(error: psycopg.Error, address: Address) -> Exception:
    """PostgreSQL's errors in the words of our hierarchy."""
    told, where = _line(error), address.shown
    match error:
        case pg.DiskFull() | pg.OutOfMemory():
            return StoreFullError(f"no space left at {where}: {told}; the write was rolled back")
        case pg.ReadOnlySqlTransaction():
            return StoreReadOnlyError(f"{where} takes no writes: {told}")
        case pg.InsufficientPrivilege():
            return StoreReadOnlyError(f"{where} does not allow it: {told}")
        case pg.LockNotAvailable() | pg.QueryCanceled() | pg.TooManyConnections():
            return StoreBusyError(f"{where}: {told}; try again")
        case pg.SerializationFailure() | pg.DeadlockDetected():
            return StoreBusyError(f"others were in the way at {where} again and again: {told}")
        case psycopg.DataError():
            return InputError(f"PostgreSQL cannot keep this: {told}")
    if is_lost(error):
        return StoreUnreachableError(f"{where} does not answer: {told}")
    return StoreError(f"{where}: {told}")


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
