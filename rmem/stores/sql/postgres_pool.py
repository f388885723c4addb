"""Connections to PostgreSQL and transactions on them, for memories and tables alike: one pool for each database in a
process, transactions that are repeated when another was in the way, and what happens when the server goes away.

A transaction that was lost before COMMIT left nothing behind, so it is run again. One that was lost in COMMIT may have
been written: the server is asked what became of it, and only when it cannot say is the caller told so.

A forked child shares the sockets of its parent, and whatever it said there would break the protocol for both. So it
drops its copies without a word to the server, and opens a pool of its own when it needs one."""

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
Hand = TypeVar("Hand")
"""What the work of a transaction gets into its hands."""

READ = "READ ONLY"
SNAPSHOT = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"
WRITE = "READ WRITE"
"""Kinds of transactions."""
HOW: dict[str, Any] = {"autocommit": True, "connect_timeout": 10}
FORKED = "this process was forked in the middle of a transaction, with which its parent goes on; begin it anew here"
_SLICE = 2.0  # seconds after which the pool is asked again: it gives up on a server that is away, and does not go on
_END = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid = %s AND backend_xid::text::bigint = %s::bigint %% 4294967296"
)


@dataclass(frozen=True, slots=True, eq=False)
class Manner:
    """How a part of the package uses connections: how many at most, what is set for as long as it has one, what is
    registered with each, and after how often a statement is prepared."""

    size: int
    settings: bytes
    register: Callable[[Raw], None]
    prepared_after: int | None = 5

    def take(self, raw: Raw) -> None:
        """Make a connection one's own; nothing remains of what another set."""
        if raw.manner is self:
            return
        raw.execute(b"RESET ALL; " + self.settings)
        if self not in raw.registered:
            self.register(raw)
            raw.registered |= {self}
        raw.prepare_threshold = self.prepared_after
        raw.manner = self


class Raw(psycopg.Connection[tuple[Any, ...]]):
    """A connection that knows whose it was last, and which process opened it."""

    manner: Manner | None = None
    registered: frozenset[Manner] = frozenset()

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.process = os.getpid()
        hide_from_children(self)


class Frame(Protocol):
    """What a transaction begins with."""

    def enter(self, raw: Raw, kind: str) -> str | None:
        """Begin it; its number when it writes."""


class _Shared:
    """The pool of one database, as large as its users together want it."""

    def __init__(self, url: str) -> None:
        self.users = 0
        self.sizes: dict[Manner, int] = {}
        self.pool: ConnectionPool[Raw] = ConnectionPool(
            url,
            connection_class=Raw,
            min_size=0,
            max_size=1,
            max_idle=60,
            reconnect_timeout=1.0,
            kwargs=HOW,
            open=True,
            name="rmem",
        )

    def join(self, manner: Manner, size: int) -> None:
        self.users += 1
        if size > self.sizes.get(manner, 0):
            self.sizes[manner] = size
            self.pool.resize(0, sum(self.sizes.values()))


_SHARED: dict[Hashable, _Shared] = {}
_LOCK = new_lock()
_OPEN: WeakSet[psycopg.Connection[Any]] = WeakSet()


def hide_from_children(connection: psycopg.Connection[Any]) -> None:
    """Let no forked child use a connection, nor keep it open when this process is gone."""
    _OPEN.add(connection)


class _Inherited(Forking):
    """What a forked child does with the connections and pools of its parent."""

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
            os.dup2(nothing, socket, inheritable=False)  # the number stays taken: libpq still knows it
            os.close(nothing)
        _OPEN.clear()
        for shared in _SHARED.values():
            shared.pool._closed = True  # or the collector would wait for its threads, which are not here
            self._kept.append(shared)
        _SHARED.clear()


_INHERITED = _Inherited()


class Pooled(Forking, ABC, Generic[Hand]):
    """The way to one database. Safe to use from many threads; a forked child opens its own pool."""

    attempts: ClassVar[int]
    """How often a transaction is repeated when others are in its way."""
    closed_words: ClassVar[str]
    causes: ClassVar[bool]
    """Whether errors carry PostgreSQL's own, which may say more than a user should know."""

    def __init__(self, url: str, manner: Manner, size: int | None = None) -> None:
        self._manner, self._url, self._size = manner, url, size or manner.size
        self._key = tuple(sorted((name, str(value)) for name, value in conninfo_to_dict(url).items()))
        self._closed = False
        self._shared: _Shared | None = None
        self._joined()
        watch(self)

    def _joined(self) -> _Shared:
        """Return the pool of this process; opened if there is none, as in a forked child."""
        with _LOCK:
            if self._closed:
                raise StoreClosedError(self.closed_words)
            if self._shared is None:
                self._shared = _SHARED.get(self._key) or _SHARED.setdefault(self._key, _Shared(self._url))
                self._shared.join(self._manner, self._size)
            return self._shared

    @property
    def _pool(self) -> ConnectionPool[Raw]:
        return (self._shared or self._joined()).pool

    def after_fork_in_child(self) -> None:
        self._shared = None

    @property
    @abstractmethod
    def shown(self) -> str:
        """How errors name the server."""

    @abstractmethod
    def waits(self) -> float:
        """Seconds to wait for a free connection, and for a server that does not answer."""

    @abstractmethod
    def open(self) -> Raw:
        """Return a connection of one's own; or the error that says why there is none."""

    @abstractmethod
    def told(self, error: psycopg.Error, frame: Any) -> Exception:
        """Return an error of PostgreSQL in our words."""

    @abstractmethod
    def hand(self, raw: Raw) -> Hand:
        """Return what work gets for a connection."""

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Give the link up; the pool is closed with its last one."""
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

    def _repeated(
        self,
        frame: Frame | None,
        kind: str,
        work: Callable[[Hand], Result],
        too_late: Callable[[], None] | None = None,
    ) -> Result:
        """Run `work` until it is done or cannot be; without a frame, outside any transaction. `too_late` is called if
        this is interrupted when all is written already."""
        until = time.monotonic() + self.waits()
        attempt, process = 0, os.getpid()
        while True:
            attempt += 1
            tried: Attempt[Result] = Attempt()
            try:
                with self._connection(until) as raw:
                    if frame is None:
                        return work(self.hand(raw))
                    return tried.run(raw, frame, kind, lambda raw: work(self.hand(raw)))
            except psycopg.Error as error:
                if os.getpid() != process:
                    raise StoreForkedError(FORKED) from None
                if is_lost(error):
                    if tried.committing and kind == WRITE and self._was_committed(tried):
                        return tried.result  # type: ignore[return-value]
                    self._pool.check()  # the idle ones are lost too; those that answer are kept
                    if time.monotonic() >= until:
                        raise self.told(error, frame) from (error if self.causes else None)
                elif not is_conflict(error) or attempt >= self.attempts:
                    raise self.told(error, frame) from (error if self.causes else None)
                time.sleep(random.uniform(0.5, 1.0) * min(0.01 * 2**attempt, 0.25))
            except BaseException:
                if too_late and tried.committing and os.getpid() == process and self._was_committed(tried):
                    too_late()
                raise

    @contextmanager
    def _connection(self, until: float) -> Iterator[Raw]:
        pool = self._pool
        raw = self._taken(pool, until)
        try:
            self._manner.take(raw)
            yield raw
        finally:
            if raw.process == os.getpid():
                if not raw.closed and raw.info.transaction_status != pq.TransactionStatus.IDLE:
                    try:
                        raw.execute("ROLLBACK")
                    except psycopg.Error:
                        raw.close()
                pool.putconn(raw)

    def _taken(self, pool: ConnectionPool[Raw], until: float) -> Raw:
        while True:
            if self._closed:
                raise StoreClosedError(self.closed_words)
            left = until - time.monotonic()
            try:
                return pool.getconn(timeout=max(0.1, min(left, _SLICE)))
            except PoolClosed:
                raise StoreClosedError(self.closed_words) from None
            except PoolTimeout:
                if left > _SLICE:
                    continue
                self.open().close()  # which raises if it is the server that is away
                raise StoreBusyError(f"all {pool.max_size} connections to {self.shown} are busy") from None

    def _was_committed(self, tried: Attempt[Any]) -> bool:
        """Learn what became of a transaction whose COMMIT was not answered; False if nothing of it remains.

        Asked on a connection of its own, because those of the pool may all be taken, and waited for anew, because the
        transaction may have used its time up. If it cannot be learned nothing but StoreUnreachableError is raised:
        what is known to have failed may be tried again.
        """
        until = time.monotonic() + self.waits()
        while True:
            try:
                with self.open() as raw:
                    # The server may not know yet that nobody is at the other end; it would hold its locks meanwhile.
                    raw.execute(_END, [tried.backend, tried.number])
                    row = raw.execute("SELECT pg_xact_status(%s::xid8)", [tried.number]).fetchone()
            except (psycopg.OperationalError, RemanenceError):
                row = ("in progress",)
            except psycopg.Error:
                row = None  # this server never knew it
            status = row[0] if row else None  # None: too long ago to be known
            if status in ("committed", "aborted"):
                return bool(status == "committed")
            if status is None or time.monotonic() > until:
                raise StoreUnreachableError(
                    f"{self.shown} went away; what was being written may or may not have arrived"
                )
            time.sleep(0.05)


class Attempt(Generic[Result]):
    """One run of a transaction, and how far it came."""

    def __init__(self) -> None:
        self.committing = False
        self.number: str | None = None
        self.backend = 0
        self.result: Result | None = None

    def run(self, raw: Raw, frame: Frame, kind: str, work: Callable[[Raw], Result]) -> Result:
        self.begin(raw, frame, kind)
        self.result = work(raw)
        self.commit(raw)
        return self.result

    def begin(self, raw: Raw, frame: Frame, kind: str) -> None:
        self.backend = raw.info.backend_pid
        self.number = frame.enter(raw, kind)

    def commit(self, raw: Raw) -> None:
        self.committing = True
        raw.execute("COMMIT")


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, so that nothing of a transaction that was not committed remains."""
    state = error.sqlstate or ""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        not state or state[:2] == "08" or state in ("57P01", "57P02", "57P03", "57P05")
    )


def is_conflict(error: psycopg.Error) -> bool:
    """Whether another transaction was in the way, so that the same one can succeed now."""
    return isinstance(error, pg.SerializationFailure | pg.DeadlockDetected)


def line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
