"""Group commit on PostgreSQL: threads that write for one tenant at the same time share a transaction. It first locks
the tenant's head row, so that rows become visible in the order of their numbers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg

from ...errors import StoreForkedError, StoreUnreachableError
from ..touches import Touches, Waiting
from .postgres_link import PostgresConnection, PostgresLink, TenantFrame, explain, refuse_moved
from .postgres_pool import FORKED, is_conflict, is_lost
from .writer import GroupCommit, Job

Result = TypeVar("Result")

_TAKE = "SELECT moved FROM heads FOR UPDATE"


class PostgresWriter(GroupCommit[PostgresConnection]):
    """Writes of one tenant, together with pending access counts, by the statement `touch`. `on_commit` is called after
    each commit, before its callers return."""

    def __init__(
        self,
        link: PostgresLink,
        frame: TenantFrame,
        touches: Touches,
        touch: str,
        on_commit: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._on_commit = on_commit
        self._link, self._frame, self._touches, self._touch = link, frame, touches, touch

    def run(self, work: Callable[[PostgresConnection], Result], *, single: bool = False) -> Result:
        process = os.getpid()
        try:
            return super().run(work, single=single)
        except RuntimeError:
            if os.getpid() == process:
                raise
            raise StoreForkedError(FORKED) from None  # the lock is not held in the child and cannot be released

    def _commit(self, batch: list[Job[PostgresConnection, Any]]) -> None:
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

    def _commit_apart(self, batch: list[Job[PostgresConnection, Any]], taken: Waiting) -> None:
        """Write the jobs again after one has failed, each in a savepoint, so that only that one fails."""
        try:
            self._write(batch, taken, apart=True)
        except BaseException as error:
            self._failed(batch, taken, error)

    def _write(self, batch: list[Job[PostgresConnection, Any]], taken: Waiting, *, apart: bool) -> None:
        """Run all jobs in one transaction. If this thread is interrupted after the commit, only its own job fails."""
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

    def _failed(self, batch: list[Job[PostgresConnection, Any]], taken: Waiting, error: BaseException) -> None:
        self._touches.put_back(taken)
        for job in batch:
            job.error = job.error or error

    def _do(
        self, connection: PostgresConnection, batch: list[Job[PostgresConnection, Any]], taken: Waiting, *, apart: bool
    ) -> None:
        refuse_moved(connection.execute(_TAKE).fetchone())
        if taken:
            when, counts = zip(*taken.values(), strict=True)
            connection.execute(self._touch, (list(when), list(counts), list(taken)))
        for job in batch:
            job.error = None
            if apart:
                self._attempt(connection, job)
            else:
                job.result = job.work(connection)

    def _attempt(self, connection: PostgresConnection, job: Job[PostgresConnection, Any]) -> None:
        """Run one job in a savepoint; if it fails, undo only that job."""
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(connection)
        except Exception as error:
            if isinstance(error, psycopg.Error):
                if is_lost(error) or is_conflict(error):
                    raise  # the whole transaction is run again
                job.error = explain(error, self._link.address)
            else:
                job.error = error
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
