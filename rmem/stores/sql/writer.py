"""Group commit: threads that write at the same time share one transaction and one fsync."""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from threading import Lock, RLock
from typing import Any, Generic, TypeVar

from ...errors import StoreReadOnlyError
from ...forks import Forking, new_lock, watch
from ..touches import Touches, Waiting
from .file import SqliteFile, closed_error, translate_error

Result = TypeVar("Result")
Link = TypeVar("Link")


class Job(Generic[Link, Result]):
    """One write of a shared transaction."""

    __slots__ = ("cancelled", "done", "error", "result", "since", "single", "work")

    def __init__(self, work: Callable[[Link], Result], single: bool) -> None:
        self.work = work
        self.single = single
        self.since = time.monotonic()
        self.done = False
        self.cancelled = False  # its thread was interrupted
        self.result: Result | None = None
        self.error: BaseException | None = None


class GroupCommit(Forking, ABC, Generic[Link]):
    """Runs writes one transaction at a time; the thread that gets the lock commits the waiting writes of all."""

    def __init__(self, turn: Lock | RLock | None = None) -> None:
        self._turn = turn or new_lock()
        self._queue: deque[Job[Link, Any]] = deque()
        watch(self)

    def run(self, work: Callable[[Link], Result], *, single: bool = False) -> Result:
        """Run `work` in a transaction that is durable when this returns. A `single` statement needs no explicit
        transaction if no other thread writes at the same time."""
        job = Job(work, single)
        self._queue.append(job)
        try:
            with self._turn:
                if not job.done:
                    self._commit_waiting(job)
        except BaseException:
            job.cancelled = True
            raise
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value]

    def _commit_waiting(self, job: Job[Link, Any]) -> None:
        """Commit this job and all waiting ones. If this thread is interrupted, only its own job fails: the others that
        were not committed are run by their own threads."""
        waiting = [self._queue.popleft() for _ in range(len(self._queue))]
        batch = [job, *[other for other in waiting if other is not job and not other.cancelled]]
        self._commit(batch)
        for other in batch[1:]:
            if other.error is not None and not isinstance(other.error, Exception):
                other.error, other.done = None, False

    @abstractmethod
    def _commit(self, batch: list[Job[Link, Any]]) -> None:
        """Run all jobs in one transaction; each has a result or an error afterwards."""

    def after_fork_in_child(self) -> None:
        self._queue.clear()  # the parent runs these


class GroupWriter(GroupCommit[sqlite3.Connection]):
    """Writes to an SQLite file, together with pending access counts, by the statement `touch`, except for a single
    statement."""

    def __init__(self, file: SqliteFile, touches: Touches, touch: str) -> None:
        super().__init__(file.write_lock)
        self._file, self._touches, self._touch = file, touches, touch

    def between(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run `work` between transactions."""
        with self._turn:
            if self._file.closed:
                raise closed_error()
            try:
                return self._file.retry_while_locked(lambda: work(self._file.writer), self._file.timeout)
            except sqlite3.Error as error:
                raise translate_error(error, self._file.path) from error

    def close(self) -> None:
        """Close the file after the running transaction."""
        with self._turn:
            self._file.close()

    def _commit(self, batch: list[Job[sqlite3.Connection, Any]]) -> None:
        connection: sqlite3.Connection | None = None
        committing = False
        taken: Waiting = {}
        try:
            if self._file.closed:
                raise closed_error()
            if self._file.read_only:
                raise StoreReadOnlyError(f"{self._file.path} or its folder cannot be written; check its permissions")
            connection = self._file.writer
            alone, first = len(batch) == 1, batch[0]
            waited = time.monotonic() - min(job.since for job in batch)
            patience = max(min(1.0, self._file.timeout), self._file.timeout - waited)
            if alone and first.single:
                first.result = self._file.retry_while_locked(lambda: first.work(self._file.writer), patience)
            else:
                self._file.begin(patience)
                taken = self._touches.take()
                connection.executemany(self._touch, [(last, count, key) for key, (last, count) in taken.items()])
                if alone:
                    first.result = first.work(connection)
                else:
                    for job in batch:
                        self._attempt(connection, job)
                committing = True
                if connection.in_transaction:
                    connection.execute("COMMIT")
            for job in batch:
                job.done = True
        except BaseException as error:
            interrupted = not isinstance(error, Exception)
            if interrupted and committing and connection is not None and not connection.in_transaction:
                batch[0].error = error  # everything is committed already
            else:
                if connection is not None and not self._file.closed and connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._touches.put_back(taken)
                failure = translate_error(error, self._file.path) if isinstance(error, sqlite3.Error) else error
                for job in batch:
                    job.error = failure if interrupted else job.error or failure
            for job in batch:
                job.done = True

    def _attempt(self, connection: sqlite3.Connection, job: Job[sqlite3.Connection, Any]) -> None:
        """Run one of several jobs in a savepoint; if it fails, undo only that job."""
        connection.execute("SAVEPOINT job")
        job.error = None
        try:
            job.result = job.work(connection)
        except Exception as error:
            if not connection.in_transaction:
                raise  # SQLite rolled back the whole transaction, as it does if the disk is full
            connection.execute("ROLLBACK TO job")
            job.error = translate_error(error, self._file.path) if isinstance(error, sqlite3.Error) else error
        connection.execute("RELEASE job")
