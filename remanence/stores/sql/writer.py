"""Group commit: threads that write at the same time share one transaction and one fsync."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar

from ...errors import StoreClosedError, StoreReadOnlyError
from .file import SqliteFile, explain

Result = TypeVar("Result")
Link = TypeVar("Link")


class Job(Generic[Link, Result]):
    """One write among those of a transaction."""

    __slots__ = ("done", "error", "result", "single", "work")

    def __init__(self, work: Callable[[Link], Result], single: bool) -> None:
        self.work = work
        self.single = single
        self.done = False
        self.result: Result | None = None
        self.error: BaseException | None = None


class Groups(ABC, Generic[Link]):
    """Runs writes one transaction at a time; whoever gets the lock commits for all who wait."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._queue: deque[Job[Link, Any]] = deque()

    def run(self, work: Callable[[Link], Result], *, single: bool = False) -> Result:
        """Do `work` inside a transaction that is durable when this returns. A `single` statement is one in itself, if
        nobody else writes at the same time."""
        job = Job(work, single)
        self._queue.append(job)
        with self._turn:
            if not job.done:
                self._commit([self._queue.popleft() for _ in range(len(self._queue))])
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value]

    @abstractmethod
    def _commit(self, batch: list[Job[Link, Any]]) -> None:
        """Do all jobs in one transaction. Each is done afterwards and has a result or an error."""


class GroupWriter(Groups[sqlite3.Connection]):
    """Writes to an SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        super().__init__()
        self._file = file

    def between(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do `work` while no transaction is under way."""
        with self._turn:
            if self._file.closed:
                raise StoreClosedError("this store is closed; open it again to use it")
            try:
                return work(self._file.writer)
            except sqlite3.Error as error:
                raise explain(error, self._file.path) from error

    def close(self) -> None:
        """Close the file once the transaction under way is done."""
        with self._turn:
            self._file.close()

    def _commit(self, batch: list[Job[sqlite3.Connection, Any]]) -> None:
        connection = self._file.writer
        try:
            if self._file.closed:
                raise StoreClosedError("this store is closed; open it again to use it")
            if self._file.read_only:
                raise StoreReadOnlyError(f"{self._file.path} or its folder cannot be written; check its permissions")
            alone = len(batch) == 1
            if not (alone and batch[0].single):
                connection.execute("BEGIN IMMEDIATE")
            if alone:
                batch[0].result = batch[0].work(connection)
            else:
                for job in batch:
                    self._attempt(connection, job)
            if connection.in_transaction:
                connection.execute("COMMIT")
        except BaseException as error:
            if not self._file.closed and connection.in_transaction:
                connection.execute("ROLLBACK")
            told = explain(error, self._file.path) if isinstance(error, sqlite3.Error) else error
            for job in batch:
                job.error = job.error or told
        for job in batch:
            job.done = True

    def _attempt(self, connection: sqlite3.Connection, job: Job[sqlite3.Connection, Any]) -> None:
        """One job of several; if it fails, only its own part of the transaction is undone."""
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(connection)
        except Exception as error:
            if not connection.in_transaction:
                raise  # SQLite gave the whole transaction up, as it does when the disk is full
            connection.execute("ROLLBACK TO job")
            job.error = explain(error, self._file.path) if isinstance(error, sqlite3.Error) else error
        connection.execute("RELEASE job")
