"""The SQLite file: opening it safely, its connections, and what SQLite's errors mean to a user."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from ...errors import (
    StoreBusyError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreVersionError,
)
from .. import migrations

APPLICATION_ID = 0x524D454D  # "RMEM"
DURABILITY = {"full": "FULL", "normal": "NORMAL"}
_MAPPED = (
    256 << 20
)  # bytes of a file that are read as memory, which takes a third of the time; the rest is read as ever


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """SQLite's errors in the words of our hierarchy."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, path) from error


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    extended = getattr(error, "sqlite_errorcode", 0)
    code = extended & 0xFF
    # A full disk shows at the file that readers and writers share, before anything is written.
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
        return StoreClosedError("this store is closed; open it again to use it")
    return StoreError(f"{path}: {error}")


class SqliteFile:
    """One file: its single writing connection and a pool of reading ones."""

    def __init__(self, path: Path, durability: str, busy_timeout: float) -> None:
        self.path = path
        self._durability = DURABILITY[durability]
        self._timeout = busy_timeout
        self._idle: list[sqlite3.Connection] = []
        self._lock = Lock()
        self._closed = False
        self.read_only = False
        self.writer = self._open()

    def _open(self) -> sqlite3.Connection:
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreReadOnlyError(f"the folder {folder} cannot be made: {error.strerror or error}") from error
        if self.path.is_dir():
            raise StoreCorruptError(f"{self.path} is a folder, not a Remanence store")
        exists = self.path.exists() and self.path.stat().st_size > 0
        if (exists and not os.access(self.path, os.W_OK)) or (exists and not os.access(folder, os.W_OK)):
            self.read_only = True
        with explained(self.path):
            connection = self._connect()
            try:
                self._prepare(connection, exists)
            except BaseException:
                connection.close()
                raise
            return connection

    def _connect(self) -> sqlite3.Connection:
        address = self.path.absolute().as_uri() + ("?mode=ro" if self.read_only else "")
        connection = sqlite3.connect(
            address, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA busy_timeout = {int(self._timeout * 1000)}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        if not self.read_only:
            connection.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
            connection.execute(f"PRAGMA synchronous = {self._durability}")
        return connection

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
        """Switch to write-ahead logging. SQLite does not wait for others here, so we do."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _revision(self, connection: sqlite3.Connection) -> str | None:
        """The file's schema revision; None for a new file. Refuses files that are not ours or too new."""
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
                f"knows {migrations.HEAD}); upgrade with `pip install -U remanence`"
            )
        return revision

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Apply what is missing under the write lock; whoever comes second finds nothing left to do."""
        from sqlalchemy import create_engine
        from sqlalchemy.exc import DBAPIError
        from sqlalchemy.pool import StaticPool

        engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
        try:
            with engine.connect() as wrapped:
                wrapped.exec_driver_sql("BEGIN IMMEDIATE")
                if self._revision(connection) != migrations.HEAD:
                    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    migrations.upgrade(wrapped)
                wrapped.commit()
        except DBAPIError as error:
            raise error.orig if isinstance(error.orig, sqlite3.Error) else error from None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading, used by one thread at a time."""
        with explained(self.path):
            with self._lock:
                if self._closed:
                    raise StoreClosedError("this store is closed; open it again to use it")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = self._connect()
                connection.execute(f"PRAGMA mmap_size = {_MAPPED}")
            try:
                yield connection
            finally:
                with self._lock:
                    if self._closed:
                        connection.close()
                    else:
                        self._idle.append(connection)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the file throughout."""
        with self.reading() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    def hurry(self) -> None:
        """Wait no longer than a moment for other writers from now on."""
        self.writer.execute("PRAGMA busy_timeout = 250")

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        self.writer.close()
