"""The SQLite file: open it safely, manage its connections, and translate SQLite's errors."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from threading import get_ident
from typing import TypeVar

from ...errors import (
    StoreBusyError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreForkedError,
    StoreFullError,
    StoreReadOnlyError,
    StoreVersionError,
)
from ...forks import Forking, new_rlock, watch
from ...private_files import make_file, make_folder
from .. import migrations

Result = TypeVar("Result")

log = logging.getLogger(__name__)

APPLICATION_ID = 0x524D454D  # "RMEM"
DURABILITY = {"full": "FULL", "normal": "NORMAL"}
_MAPPED = 176 << 20  # bytes of a file that are memory-mapped: reads take a third of the time, and count as memory
_WRITER_PATIENCE = "PRAGMA busy_timeout = 2"  # milliseconds: `retry_while_locked` waits
_WAL_KEPT = 8 << 20  # bytes to which the write-ahead log is truncated after a checkpoint
_LONG_READ = 1.0  # seconds
_FORK_PATIENCE = 5.0  # seconds that a fork waits for threads to release their connections
_inherited: set[tuple[int, int]] = set()  # files (device, inode) for which a forked child has connections of its parent


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate_error(error, path) from error


def translate_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Return the error of ours that says what happened to the file."""
    extended = getattr(error, "sqlite_errorcode", 0)
    code = extended & 0xFF
    # A full disk first fails at the shared-memory file, before anything is written.
    if code == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_SHMSIZE:
        return StoreFullError(f"no space left for {path}; the write was rolled back and the file is intact")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreReadOnlyError(f"{path} or its folder cannot be written; check its permissions")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusyError(f"another process held the write lock of {path} for too long; try again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorruptError(
            f"{path} is damaged or not a Remanence store ({error}); restore a backup made by `rmem backup`"
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreReadOnlyError(f"{path} cannot be opened; check that its folder exists and can be written")
    if "closed database" in str(error):
        return closed_error()
    return StoreError(f"{path}: {error}")


@contextmanager
def lenient(connection: sqlite3.Connection) -> Iterator[None]:
    """Decode texts that are not UTF-8, as in damaged cells, with replacement characters."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        yield
    finally:
        connection.text_factory = str


def is_undecodable(error: sqlite3.Error) -> bool:
    return "decode" in str(error)


class _Forking(Enum):
    """The state of the connections of a file around a fork."""

    NO = "no fork is under way"
    CLOSED = "all are closed: parent and child open their own"
    IN_USE = "a thread uses one, so that they had to be left alone"


def closed_error() -> StoreClosedError:
    return StoreClosedError("this store is closed; open it again to use it")


class SqliteFile(Forking):
    """One file: its single writing connection and a pool of reading ones.

    Both are opened at first use. All connections are closed around a fork, because SQLite's locks belong to a process:
    a child with inherited connections would hold no locks, and lose what it writes.
    """

    def __init__(self, path: Path, durability: str, busy_timeout: float) -> None:
        self.path = path
        self._durability = DURABILITY[durability]
        self.timeout = busy_timeout
        """Seconds to wait for the write lock of another process."""
        self._idle: list[sqlite3.Connection] = []
        self._used: dict[int, tuple[int, sqlite3.Connection]] = {}  # connections in use by id, with their threads
        self._lock = (
            new_rlock()
        )  # re-entrant: garbage collection of a snapshot may release its connection at any moment
        self.closed = False
        self._forking = _Forking.NO
        self.write_lock = new_rlock()
        """Held while the writing connection is used."""
        self.read_only = False
        self._writer: sqlite3.Connection | None = self._open()
        watch(self)

    @property
    def writer(self) -> sqlite3.Connection:
        """The writing connection; callers hold `write_lock`."""
        if self._writer is None:
            if self.closed:
                raise closed_error()
            with translate_errors(self.path):
                self._refuse_inherited()
                self._writer = self._connect()
                self._writer.execute(_WRITER_PATIENCE)
        return self._writer

    def _open(self) -> sqlite3.Connection:
        folder = self.path.parent
        try:
            make_folder(folder)
        except OSError as error:
            raise StoreReadOnlyError(f"the folder {folder} cannot be made: {error.strerror or error}") from error
        if self.path.is_dir():
            raise StoreCorruptError(f"{self.path} is a folder, not a Remanence store")
        self._refuse_inherited()
        exists = self.path.exists() and self.path.stat().st_size > 0
        if exists:
            self._refuse_truncated()
        else:
            with suppress(OSError):  # opening it raises the right error
                make_file(self.path)
        if (exists and not os.access(self.path, os.W_OK)) or (exists and not os.access(folder, os.W_OK)):
            self.read_only = True
        with translate_errors(self.path):
            connection = self._connect()
            try:
                self._prepare(connection, exists)
                connection.execute(_WRITER_PATIENCE)
            except BaseException:
                connection.close()
                raise
            return connection

    def _refuse_truncated(self) -> None:
        """Refuse a file that is shorter than its header says, unless a write-ahead log has the rest."""
        journal = Path(f"{self.path}-wal")
        try:
            if journal.exists() and journal.stat().st_size:
                return
            with self.path.open("rb") as file:
                head = file.read(100)
                size = os.fstat(file.fileno()).st_size
        except OSError:
            return  # opening it raises the right error
        if len(head) == 100 and head.startswith(b"SQLite format 3\0"):
            page_size, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
            if size < (65_536 if page_size == 1 else page_size) * pages:
                raise StoreCorruptError(f"{self.path} was cut off; restore a backup made by `rmem backup`")

    def _connect(self) -> sqlite3.Connection:
        address = self.path.absolute().as_uri()
        if self.read_only:
            address += "?mode=ro&immutable=1" if self._is_still() else "?mode=ro"
        connection = sqlite3.connect(
            address, uri=True, timeout=self.timeout, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA busy_timeout = {int(self.timeout * 1000)}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        if not self.read_only:
            connection.execute("PRAGMA secure_delete = ON")  # overwrite deleted rows
            connection.execute(f"PRAGMA synchronous = {self._durability}")
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT}")
        return connection

    def _is_still(self) -> bool:
        """Whether no process writes this file: then SQLite needs no files beside it, which it cannot create in a
        read-only folder."""
        journal = Path(f"{self.path}-wal")
        return not os.access(self.path.parent, os.W_OK) and not (journal.exists() and journal.stat().st_size)

    def _prepare(self, connection: sqlite3.Connection, exists: bool) -> None:
        if not exists and not self.read_only:
            connection.execute("PRAGMA page_size = 4096")
            self._use_wal(connection)
        if self._revision(connection) == migrations.HEAD:
            return
        if self.read_only:
            raise StoreReadOnlyError(f"{self.path} needs its schema upgraded, but cannot be written")
        self._use_wal(connection)
        self._migrate(connection)

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to write-ahead logging. SQLite does not wait for locks here, so this does."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _revision(self, connection: sqlite3.Connection) -> str | None:
        """Return the file's schema revision; None for a new file. Refuse files that are not ours or too new."""
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            return None
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION_ID or "alembic_version" not in tables:
            raise StoreCorruptError(f"{self.path} is an SQLite file of another program, not a Remanence store")
        found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        revision: str | None = found[0] if found else None
        if revision is not None and revision not in migrations.REVISIONS:
            raise StoreVersionError(
                f"{self.path} was written by a newer version of Remanence (schema {revision}; this version "
                f"knows {migrations.HEAD}); upgrade with `pip install -U rmem`"
            )
        return revision

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Apply missing migrations under the write lock; another process may have applied them meanwhile."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            if self._revision(connection) != migrations.HEAD:
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                migrations.upgrade(connection)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Borrow a reading connection for one thread. It is closed after an error or an interrupt: an unfinished
        statement would keep an old snapshot open."""
        with translate_errors(self.path):
            connection = self._take()
            try:
                yield connection
            except BaseException:
                self._release(connection, reuse=False)
                raise
            self._release(connection, reuse=not connection.in_transaction)

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self.closed:
                raise closed_error()
            connection = self._idle.pop() if self._idle else None
            if connection is not None:
                self._used[id(connection)] = get_ident(), connection
                return connection
            self._refuse_inherited()
            connection = self._connect()
            connection.execute(f"PRAGMA mmap_size = {_MAPPED}")
            self._used[id(connection)] = get_ident(), connection
            return connection

    def _release(self, connection: sqlite3.Connection, *, reuse: bool) -> None:
        with self._lock:
            self._used.pop(id(connection), None)
            if reuse and not self.closed:
                self._idle.append(connection)
                return
        self._discard(connection)

    def _discard(self, connection: sqlite3.Connection) -> None:
        connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Borrow a connection whose reads all see one snapshot of the file."""
        with self.reading() as connection:
            connection.execute("BEGIN")
            began = time.monotonic()
            yield connection
            connection.execute("ROLLBACK")
        if time.monotonic() - began > _LONG_READ:
            self._warn_of_log(time.monotonic() - began)

    def _warn_of_log(self, seconds: float) -> None:
        """Warn about a long read while the write-ahead log grows: nothing after its snapshot can be checkpointed."""
        with suppress(OSError):
            size = Path(f"{self.path}-wal").stat().st_size
            if size > 2 * _WAL_KEPT:
                log.warning(
                    "a read of %.0f s kept the write-ahead log of %s from being cut; it has grown to %d MB",
                    seconds,
                    self.path,
                    size >> 20,
                )

    def begin(self, patience: float) -> None:
        """Begin a transaction of the writing connection; wait for other processes."""
        self.retry_while_locked(lambda: self.writer.execute("BEGIN IMMEDIATE"), patience)

    def retry_while_locked(self, work: Callable[[], Result], patience: float) -> Result:
        """Retry `work` while another process holds a lock. SQLite's own waiting backs off more and more, so that a
        process that writes all the time starves the others."""
        deadline = time.monotonic() + patience
        while True:
            try:
                return work()
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.0005 + time.perf_counter_ns() % 3500 / 1e6)  # with jitter

    def wait_briefly(self) -> None:
        """Wait only briefly for other writers from now on."""
        self.timeout = min(self.timeout, 0.25)

    def close(self) -> None:
        with self._lock:
            self.closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            self._discard(connection)
        if self._writer is not None:
            self._discard(self._writer)
            self._writer = None

    # Forks

    def before_fork(self) -> None:
        """Close all connections, unless a thread does not release one in time."""
        deadline = time.monotonic() + _FORK_PATIENCE
        mine = get_ident()
        self._holds_turn = self.write_lock.acquire(timeout=_FORK_PATIENCE)
        self._lock.acquire()
        while any(thread != mine for thread, _ in self._used.values()) and time.monotonic() < deadline:
            self._lock.release()
            time.sleep(0.001)
            self._lock.acquire()
        writing = self._writer is not None and (not self._holds_turn or self._writer.in_transaction)
        if self._used or writing:
            self._forking = _Forking.IN_USE
            return
        for connection in self._idle:
            self._discard(connection)
        self._idle.clear()
        if self._writer is not None:
            self._discard(self._writer)
            self._writer = None
        self._forking = _Forking.CLOSED

    def after_fork_in_parent(self) -> None:
        self._forking = _Forking.NO
        self._lock.release()
        if self._holds_turn:
            self.write_lock.release()

    def after_fork_in_child(self) -> None:
        from ctypes import py_object, pythonapi

        if self._forking is _Forking.IN_USE and not self.closed:
            # SQLite believes that this process holds the locks of its parent: the file must not be used here again.
            for connection in (*self._idle, *[used for _, used in self._used.values()], self._writer):
                pythonapi.Py_IncRef(py_object(connection))  # nor may garbage collection close them
            with suppress(OSError):
                found = self.path.stat()
                _inherited.add((found.st_dev, found.st_ino))
        self._forking = _Forking.NO
        self._idle, self._used, self._writer = [], {}, None

    def _refuse_inherited(self) -> None:
        if not _inherited:
            return
        with suppress(FileNotFoundError):
            found = self.path.stat()
            if (found.st_dev, found.st_ino) in _inherited:
                raise StoreForkedError(
                    f"this process was forked while a thread used {self.path}, so that it cannot use that file safely; "
                    "fork before the store is in use, or start processes by spawn or forkserver"
                )
