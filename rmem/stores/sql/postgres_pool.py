"""Connections to PostgreSQL and transactions on them, for memories and tables: one pool for each database in a process,
retries of conflicting transactions, and recovery after the server was away.

A transaction that is lost before COMMIT left nothing behind and is run again. One that is lost in COMMIT may have been
written: the server is asked, and only if it does not know either, StoreUnreachableError says so.

A forked child shares the sockets of its parent, and using them would break the protocol for both. It closes its copies
without sending anything, and opens its own pool when it needs one."""

from __future__ import annotations

import os
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from weakref import WeakSet

import psycopg
from psycopg import errors as pg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from ...errors import (
    RemanenceError,
    StoreBusyError,
    StoreClosedError,
    StoreForkedError,
    StoreUnreachableError,
)
from ...forks import Forking, new_lock, watch

Result = TypeVar("Result")
Handle = TypeVar("Handle")
"""The object that the work of a transaction gets: a connection, perhaps wrapped."""

READ = "READ ONLY"
SNAPSHOT = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"
WRITE = "READ WRITE"
"""Kinds of transactions."""
CONNECT_OPTIONS: dict[str, Any] = {"autocommit": True, "connect_timeout": 10}
FORKED = "this process was forked in the middle of a transaction, with which its parent goes on; begin it anew here"
_POOL_WAIT = 2.0  # seconds of one request to the pool, which gives up on a server that is away and does not try again
_TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid = %s AND backend_xid::text::bigint = %s::bigint %% 4294967296"
)


@dataclass(frozen=True, slots=True, eq=False)
class ConnectionProfile:
    """How memories or tables use connections: the largest number, settings, types to register, and after how many uses
    a statement is prepared."""

    size: int
    settings: bytes
    register: Callable[[Raw], None]
    prepared_after: int | None = 5

    def apply(self, raw: Raw) -> None:
        """Configure a connection, and undo the settings of another profile."""
        if raw.profile is self:
            return
        raw.execute(b"RESET ALL; " + self.settings)
        if self not in raw.registered:
            self.register(raw)
            raw.registered |= {self}
        raw.prepare_threshold = self.prepared_after
        raw.profile = self


class Raw(psycopg.Connection[tuple[Any, ...]]):
    """A connection that knows its profile and the process that opened it."""

    profile: ConnectionProfile | None = None
    registered: frozenset[ConnectionProfile] = frozenset()

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.process = os.getpid()
        hide_from_children(self)


class TransactionFrame(Protocol):
    """How a transaction is begun: for which tenant, as which role."""

    def enter(self, raw: Raw, kind: str) -> str | None:
        """Begin a transaction; return its number if it writes."""


class _SharedPool:
    """The pool of one database, whose size is the sum of what its users want."""

    def __init__(self, url: str) -> None:
        self.users = 0
        self.sizes: dict[ConnectionProfile, int] = {}
        self.pool: ConnectionPool[Raw] = ConnectionPool(
            url,
            connection_class=Raw,
            min_size=0,
            max_size=1,
            max_idle=60,
            reconnect_timeout=1.0,
            kwargs=CONNECT_OPTIONS,
            open=True,
            name="rmem",
        )

    def join(self, profile: ConnectionProfile, size: int) -> None:
        self.users += 1
        if size > self.sizes.get(profile, 0):
            self.sizes[profile] = size
            self.pool.resize(0, sum(self.sizes.values()))


_SHARED: dict[Hashable, _SharedPool] = {}
_LOCK = new_lock()
_OPEN: WeakSet[psycopg.Connection[Any]] = WeakSet()


def hide_from_children(connection: psycopg.Connection[Any]) -> None:
    """Close a connection in forked children, so that they neither use it nor keep it open."""
    _OPEN.add(connection)


class _ForkHandler(Forking):
    """Drops the connections and pools of the parent in a forked child."""

    def __init__(self) -> None:
        self._kept: list[object] = []
        watch(self)

    def after_fork_in_child(self) -> None:
        for connection in list(_OPEN):
            try:
                socket = connection.pgconn.socket
            except psycopg.Error:
                continue  # closed
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, socket, inheritable=False)  # keeps the number in use: libpq still knows it
            os.close(nothing)
        _OPEN.clear()
        for shared in _SHARED.values():
            shared.pool._closed = True  # or the garbage collector would wait for its threads
            self._kept.append(shared)
        _SHARED.clear()


_FORK_HANDLER = _ForkHandler()


class PooledDatabase(Forking, ABC, Generic[Handle]):
    """Transactions on one database. Safe to use from many threads; a forked child opens its own pool."""

    attempts: ClassVar[int]
    """How often a conflicting transaction is tried."""
    closed_words: ClassVar[str]
    causes: ClassVar[bool]
    """Whether errors have PostgreSQL's error as cause, which may reveal more than a user should know."""

    def __init__(self, url: str, profile: ConnectionProfile, size: int | None = None) -> None:
        self._profile, self._url, self._size = profile, url, size or profile.size
        self._key = tuple(sorted((name, str(value)) for name, value in conninfo_to_dict(url).items()))
        self._closed = False
        self._shared: _SharedPool | None = None
        self._join_pool()
        watch(self)

    def _join_pool(self) -> _SharedPool:
        """Return the pool of this process; open it if there is none, as in a forked child."""
        with _LOCK:
            if self._closed:
                raise StoreClosedError(self.closed_words)
            if self._shared is None:
                self._shared = _SHARED.get(self._key) or _SHARED.setdefault(self._key, _SharedPool(self._url))
                self._shared.join(self._profile, self._size)
            return self._shared

    @property
    def _pool(self) -> ConnectionPool[Raw]:
        return (self._shared or self._join_pool()).pool

    def after_fork_in_child(self) -> None:
        self._shared = None

    @property
    @abstractmethod
    def shown(self) -> str:
        """The name of the server in errors."""

    @abstractmethod
    def timeout(self) -> float:
        """Return the seconds to wait for a free connection, and for a server that does not answer."""

    @abstractmethod
    def open(self) -> Raw:
        """Open a connection outside the pool; raise the error that says why it cannot be opened."""

    @abstractmethod
    def to_error(self, error: psycopg.Error, frame: Any) -> Exception:
        """Convert an error of PostgreSQL to ours."""

    @abstractmethod
    def wrap(self, raw: Raw) -> Handle:
        """Wrap a connection for the work of a transaction."""

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Release the pool, which is closed with its last user."""
        with _LOCK:
            if self._closed:
                return
            self._closed = True
            shared, self._shared = self._shared, None
            if shared is None:
                return
            shared.users -= 1
            if shared.users:
                return
            del _SHARED[self._key]
        shared.pool.close()

    def _run(
        self,
        frame: TransactionFrame | None,
        kind: str,
        work: Callable[[Handle], Result],
        too_late: Callable[[], None] | None = None,
    ) -> Result:
        """Run `work` in a transaction, again after conflicts and lost connections; without a frame, outside any
        transaction. `too_late` is called if this is interrupted after the commit."""
        until = time.monotonic() + self.timeout()
        attempt, process = 0, os.getpid()
        while True:
            attempt += 1
            tried: Attempt[Result] = Attempt()
            try:
                with self._connection(until) as raw:
                    if frame is None:
                        return work(self.wrap(raw))
                    return tried.run(raw, frame, kind, lambda raw: work(self.wrap(raw)))
            except psycopg.Error as error:
                if os.getpid() != process:
                    raise StoreForkedError(FORKED) from None
                if is_lost(error):
                    if tried.committing and kind == WRITE and self._was_committed(tried):
                        return tried.result  # type: ignore[return-value]
                    self._pool.check()  # drop idle connections that are lost, too
                    if time.monotonic() >= until:
                        raise self.to_error(error, frame) from (error if self.causes else None)
                elif not is_conflict(error) or attempt >= self.attempts:
                    raise self.to_error(error, frame) from (error if self.causes else None)
                time.sleep(random.uniform(0.5, 1.0) * min(0.01 * 2**attempt, 0.25))
            except BaseException:
                if too_late and tried.committing and os.getpid() == process and self._was_committed(tried):
                    too_late()
                raise

    @contextmanager
    def _connection(self, until: float) -> Iterator[Raw]:
        pool = self._pool
        raw = self._take(pool, until)
        try:
            self._profile.apply(raw)
            yield raw
        finally:
            if raw.process == os.getpid():
                if not raw.closed and raw.info.transaction_status != pq.TransactionStatus.IDLE:
                    try:
                        raw.execute("ROLLBACK")
                    except psycopg.Error:
                        raw.close()
                pool.putconn(raw)

    def _take(self, pool: ConnectionPool[Raw], until: float) -> Raw:
        while True:
            if self._closed:
                raise StoreClosedError(self.closed_words)
            left = until - time.monotonic()
            try:
                return pool.getconn(timeout=max(0.1, min(left, _POOL_WAIT)))
            except PoolClosed:
                raise StoreClosedError(self.closed_words) from None
            except PoolTimeout:
                if left > _POOL_WAIT:
                    continue
                self.open().close()  # raises if the server is away
                raise StoreBusyError(f"all {pool.max_size} connections to {self.shown} are busy") from None

    def _was_committed(self, tried: Attempt[Any]) -> bool:
        """Return whether a transaction whose COMMIT was not answered was committed.

        Asks on a connection outside the pool, which may be exhausted, and with a new time limit. Raise only
        StoreUnreachableError if it cannot be determined: callers retry after other errors.
        """
        until = time.monotonic() + self.timeout()
        while True:
            try:
                with self.open() as raw:
                    # The server may not know yet that its client is gone, and would hold its locks.
                    raw.execute(_TERMINATE, [tried.backend, tried.number])
                    row = raw.execute("SELECT pg_xact_status(%s::xid8)", [tried.number]).fetchone()
            except (psycopg.OperationalError, RemanenceError):
                row = ("in progress",)
            except psycopg.Error:
                row = None  # unknown to this server
            status = row[0] if row else None  # None: too long ago
            if status in ("committed", "aborted"):
                return bool(status == "committed")
            if status is None or time.monotonic() > until:
                raise StoreUnreachableError(
                    f"{self.shown} went away; what was being written may or may not have arrived"
                )
            time.sleep(0.05)


class Attempt(Generic[Result]):
    """One run of a transaction, with its state."""

    def __init__(self) -> None:
        self.committing = False
        self.number: str | None = None
        self.backend = 0
        self.result: Result | None = None

    def run(self, raw: Raw, frame: TransactionFrame, kind: str, work: Callable[[Raw], Result]) -> Result:
        self.begin(raw, frame, kind)
        self.result = work(raw)
        self.commit(raw)
        return self.result

    def begin(self, raw: Raw, frame: TransactionFrame, kind: str) -> None:
        self.backend = raw.info.backend_pid
        self.number = frame.enter(raw, kind)

    def commit(self, raw: Raw) -> None:
        self.committing = True
        raw.execute("COMMIT")


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is lost, so that an uncommitted transaction left nothing behind."""
    state = error.sqlstate or ""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        not state or state[:2] == "08" or state in ("57P01", "57P02", "57P03", "57P05")
    )


def is_conflict(error: psycopg.Error) -> bool:
    """Whether a transaction conflicted with another one and may succeed if repeated."""
    return isinstance(error, pg.SerializationFailure | pg.DeadlockDetected)


def line(error: Exception) -> str:
    """Return the first line of an error message."""
    return str(error).strip().partition("\n")[0]
