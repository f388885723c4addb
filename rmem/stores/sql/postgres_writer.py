"""Group commit on PostgreSQL: threads that write for one tenant at the same time share a transaction. It first locks
the tenant's head row, so that rows become visible in the order of their numbers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg

from ...errors import StoreForkedError, StoreUnreachableError
from ..touches import Touches, Waiting
from .postgres_link import Connection, Frame, Link, check_here, explain
from .postgres_pool import FORKED, is_conflict, is_lost
from .writer import Groups, Job

Result = TypeVar("Result")

_TAKE = "SELECT moved FROM heads FOR UPDATE"


class PostgresWriter(Groups[Connection]):
    """Writes of one tenant. Access counts that wait are written along, by the statement `touch`. `on_commit` is called
    after each commit, before anybody is told of it."""

    def __init__(
        self, link: Link, frame: Frame, touches: Touches, touch: str, on_commit: Callable[[], None] | None = None
    ) -> None:
        super().__init__()
        self._on_commit = on_commit
        self._link, self._frame, self._touches, self._touch = link, frame, touches, touch

    def run(self, work: Callable[[Connection], Result], *, single: bool = False) -> Result:
        process = os.getpid()
        try:
            return super().run(work, single=single)
        except RuntimeError:
            if os.getpid() == process:
                raise
            raise StoreForkedError(FORKED) from None  # the lock that it held is free here, and cannot be released

    def _commit(self, batch: list[Job[Connection, Any]]) -> None:
        taken: Waiting = self._touches.take()
        try:
            self._write(batch, taken, apart=False)
        except BaseException as error:
            if len(batch) > 1 and isinstance(error, Exception) and not isinstance(error, StoreUnreachableError):
                self._commit_apart(batch, taken)
            else:
                self._failed(batch, taken, error)
        for job in batch:
            job.done = True

    def _commit_apart(self, batch: list[Job[Connection, Any]], taken: Waiting) -> None:
        """Once more after a job failed, so that no other fails with it."""
        try:
            self._write(batch, taken, apart=True)
        except BaseException as error:
            self._failed(batch, taken, error)

    def _write(self, batch: list[Job[Connection, Any]], taken: Waiting, *, apart: bool) -> None:
        """Do all jobs in one transaction. If the thread that does them is interrupted when they are written, only its
        own job fails."""
        written = False

        def too_late() -> None:
            nonlocal written
            written = True

        try:
            self._link.write(self._frame, lambda link: self._do(link, batch, taken, apart=apart), too_late)
        except BaseException as error:
            if not written:
                raise
            batch[0].error = error
        if self._on_commit is not None:
            self._on_commit()

    def _failed(self, batch: list[Job[Connection, Any]], taken: Waiting, error: BaseException) -> None:
        self._touches.put_back(taken)
        for job in batch:
            job.error = job.error or error

    def _do(self, connection: Connection, batch: list[Job[Connection, Any]], taken: Waiting, *, apart: bool) -> None:
        check_here(connection.execute(_TAKE).fetchone())
        if taken:
            when, counts = zip(*taken.values(), strict=True)
            connection.execute(self._touch, (list(when), list(counts), list(taken)))
        for job in batch:
            job.error = None
            if apart:
                self._attempt(connection, job)
            else:
                job.result = job.work(connection)

    def _attempt(self, connection: Connection, job: Job[Connection, Any]) -> None:
        """One job; if it fails, only its own part of the transaction is undone."""
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(connection)
        except Exception as error:
            if isinstance(error, psycopg.Error):
                if is_lost(error) or is_conflict(error):
                    raise  # the whole transaction is done again
                job.error = explain(error, self._link.address)
            else:
                job.error = error
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
