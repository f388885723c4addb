"""Connections to PostgreSQL: one pool for each address in a process, transactions that are repeated when another was
in the way, and what happens when the server goes away.

A transaction that was lost before COMMIT left nothing behind, so it is run again. One that was lost in COMMIT may
have been written: the server is asked what became of it (`pg_xact_status`), and only when it cannot say is the
caller told that the write may or may not have arrived."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from psycopg import pq
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from ...errors import ConfigError, StoreBusyError, StoreClosedError, StoreUnreachableError
from .postgres_errors import in_our_words, is_conflict, is_lost
from .postgres_values import ADAPTERS

Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

READ = "READ ONLY"
SNAPSHOT = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "READ WRITE"
"""Kinds of transactions."""
PATIENCE = 15.0
"""Seconds to wait for a free connection, and for a server that is restarting or failing over."""
ATTEMPTS = 8
"""How often a transaction is repeated when others are in its way."""
_HOW: dict[str, Any] = {
    "autocommit": True,
    "prepare_threshold": None,  # a plan that is kept knows neither the scores of a search nor an ALTER TABLE
    "connect_timeout": 10,
    "context": ADAPTERS,
}
_SETTINGS = (
    "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres'; SET extra_float_digits = 1; "
    "SET standard_conforming_strings = on; SET jit = off; SET lock_timeout = '15s'; "
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'; "
    "SELECT set_config('temp_file_limit', '4GB', false) FROM pg_roles "
    "WHERE rolname = current_user AND rolsuper AND current_setting('temp_file_limit') = '-1'"
)
_END = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid = %s AND backend_xid::text::bigint = %s::bigint %% 4294967296"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """Whose transaction it is: the schema that names are looked up in, the role that may see no more than it, and the
    milliseconds a statement may take (0 is no limit)."""

    schema: str = "pg_catalog"
    role: str | None = None
    timeout: int = 0

    def begin(self, kind: str) -> bytes:
        """Everything before the first statement, in one message to the server. No part of it is the caller's text."""
        lines = [f"BEGIN {kind}", f'SET LOCAL search_path = "{self.schema}"']
        lines += [f"SET LOCAL statement_timeout = {self.timeout}"] if self.timeout else []
        lines += [f'SET LOCAL ROLE "{self.role}"'] if self.role else []
        lines += ["SELECT pg_current_xact_id()::text"] if kind == WRITE else []
        return "; ".join(lines).encode()


@dataclass
class _Shared:
    pool: ConnectionPool[Connection]
    users: int = 0


@dataclass
class _Pools:
    """The pools of this process. A forked child opens its own."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    open: dict[tuple[int, str, int], _Shared] = field(default_factory=dict)


_POOLS = _Pools()


class Link:
    """The way to one PostgreSQL database. Safe to use from many threads; all links to an address share a pool."""

    def __init__(self, address: str, *, size: int = 16) -> None:
        try:
            psycopg.conninfo.conninfo_to_dict(address)
        except psycopg.ProgrammingError as error:
            raise ConfigError(f"not an address of PostgreSQL: {str(error).strip()}") from None
        self.address = address
        self._key = (os.getpid(), address, size)
        self._closed = False
        self.connect().close()  # a wrong address is told at once, not after the pool's patience
        with _POOLS.lock:
            shared = _POOLS.open.get(self._key)
            if shared is None:
                pool = ConnectionPool(
                    address,
                    min_size=1,
                    max_size=size,
                    timeout=PATIENCE,
                    max_idle=60,
                    configure=_configure,
                    kwargs=_HOW,
                    open=True,
                    name="remanence",
                )
                shared = _POOLS.open[self._key] = _Shared(pool)
            shared.users += 1
        self._pool = shared.pool

    def connect(self) -> Connection:
        """A connection outside the pool, for what keeps one for long."""
        try:
            connection = psycopg.connect(self.address, **_HOW)
        except psycopg.Error as error:
            raise StoreUnreachableError(f"PostgreSQL does not answer: {_first_line(error)}") from None
        _configure(connection)
        return connection

    def look(self, work: Callable[[Connection], T]) -> T:
        """Run one of our own statements that changes nothing, without a transaction around it."""
        return self._repeated(Frame(), None, work)

    def read(self, frame: Frame, work: Callable[[Connection], T], *, kind: str = READ) -> T:
        """Run `work` in a transaction that changes nothing; again on a new connection when one is lost."""
        return self._repeated(frame, kind, work)

    def write(self, frame: Frame, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction: all or nothing, and durable when this returns."""
        return self._repeated(frame, WRITE, work)

    def close(self) -> None:
        """Give up the link; the pool is closed with its last one."""
        with _POOLS.lock:
            if self._closed:
                return
            self._closed = True
            shared = _POOLS.open[self._key]
            shared.users -= 1
            if shared.users:
                return
            del _POOLS.open[self._key]
        if self._key[0] == os.getpid():
            shared.pool.close()

    def _repeated(self, frame: Frame, kind: str | None, work: Callable[[Connection], T]) -> T:
        until = time.monotonic() + PATIENCE
        attempt = 0
        while True:
            attempt += 1
            tried = _Attempt()
            try:
                with self._connection(until) as connection:
                    return work(connection) if kind is None else tried.run(connection, frame, kind, work)
            except psycopg.Error as error:
                if is_lost(error):
                    if tried.committing and kind == WRITE and self._was_committed(tried, until):
                        return tried.outcome  # type: ignore[no-any-return]
                    self._pool.check()  # the others are lost too; those that answer are kept
                    if time.monotonic() >= until:
                        raise StoreUnreachableError("PostgreSQL does not answer") from None
                elif not is_conflict(error) or attempt >= ATTEMPTS:
                    raise in_our_words(error, frame.schema) from None
                time.sleep(random.uniform(0.5, 1.0) * min(0.01 * 2**attempt, 0.5))

    @contextmanager
    def _connection(self, until: float) -> Iterator[Connection]:
        if self._closed:
            raise StoreClosedError("these tables were closed")
        try:
            connection = self._pool.getconn(timeout=max(0.1, until - time.monotonic()))
        except PoolClosed:
            raise StoreClosedError("these tables were closed") from None
        except PoolTimeout:
            self.connect().close()  # raises when it is the server that is away
            raise StoreBusyError(f"all {self._pool.max_size} connections to PostgreSQL are busy") from None
        try:
            yield connection
        finally:
            if connection.info.transaction_status != pq.TransactionStatus.IDLE and not connection.closed:
                _roll_back(connection)
            self._pool.putconn(connection)

    def _was_committed(self, tried: _Attempt, until: float) -> bool:
        """What became of a transaction whose COMMIT was not answered; False means that nothing of it remains."""
        while time.monotonic() < until:
            try:
                with self._connection(until) as connection:
                    # The server may not know yet that nobody is at the other end; it would hold its locks meanwhile.
                    connection.execute(_END, [tried.backend, tried.xact])
                    row = connection.execute("SELECT pg_xact_status(%s::xid8)", [tried.xact]).fetchone()
            except psycopg.OperationalError:
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
        raise StoreUnreachableError("PostgreSQL went away; what was being written may or may not have arrived")


class _Attempt:
    """One run of a transaction, and how far it came."""

    def __init__(self) -> None:
        self.committing = False
        self.xact: str | None = None
        self.backend = 0
        self.outcome: Any = None

    def run(self, connection: Connection, frame: Frame, kind: str, work: Callable[[Connection], T]) -> T:
        begun = connection.execute(frame.begin(kind))
        if kind == WRITE:
            while begun.nextset():
                pass
            self.backend = connection.info.backend_pid
            self.xact = str(begun.fetchone()[0])  # type: ignore[index]  # the last of them is a SELECT of one row
        outcome = self.outcome = work(connection)
        self.committing = True
        connection.execute("COMMIT")
        return outcome


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _configure(connection: Connection) -> None:
    connection.execute(_SETTINGS)


def _roll_back(connection: Connection) -> None:
    try:
        connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()
