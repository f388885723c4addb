"""Connect tables to a PostgreSQL database: transactions that see one schema as one role, on the connections of
`stores.sql.postgres_pool`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import local
from typing import Any, TypeVar

import psycopg

from ...errors import ConfigError, RemanenceError, StoreUnreachableError
from ...stores.sql.postgres_pool import (
    CONNECT_OPTIONS,
    READ,
    SNAPSHOT,
    WRITE,
    Attempt,
    ConnectionProfile,
    PooledDatabase,
    Raw,
    is_lost,
    line,
)
from ..deadline import left
from .postgres_errors import translate_error
from .postgres_values import register

__all__ = ["PATIENCE", "READ", "SNAPSHOT", "WRITE", "Connection", "Frame", "TablesLink"]

Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

PATIENCE = 15.0
"""Seconds to wait for a free connection, and for a server that is restarting or failing over."""
_SETTINGS = (
    "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres'; SET extra_float_digits = 1; "
    "SET standard_conforming_strings = on; SET jit = off; SET lock_timeout = '15s'; "
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'; "
    "SELECT set_config('client_connection_check_interval', '1s', false) "  # what runs for a dead process ends too
    "WHERE current_setting('client_connection_check_interval', true) = '0'; "
    "SELECT set_config('temp_file_limit', '4GB', false) FROM pg_roles "
    "WHERE rolname = current_user AND rolsuper AND current_setting('temp_file_limit') = '-1'"
)
# A plan that is kept knows neither the scores of a search nor an ALTER TABLE.
_PROFILE = ConnectionProfile(16, _SETTINGS.encode(), register, prepared_after=None)


@dataclass(frozen=True, slots=True)
class Frame:
    """Whose transaction it is: the schema that names are looked up in, and the role that may see no more than it. Each
    statement in it may take the time that is left (`deadline`)."""

    schema: str = "pg_catalog"
    role: str | None = None

    def begin(self, kind: str) -> bytes:
        """Everything before the first statement, in one message to the server. No part of it is the caller's text."""
        lines = [f"BEGIN {kind}", f'SET LOCAL search_path = "{self.schema}"']
        timeout = _timeout()
        lines += [f"SET LOCAL statement_timeout = {timeout}"] if timeout else []
        lines += [f'SET LOCAL ROLE "{self.role}"'] if self.role else []
        lines += ["SELECT pg_current_xact_id()::text"] if kind == WRITE else []
        return "; ".join(lines).encode()

    def change(self) -> bytes:
        """Go on in this frame, in a transaction that began in another one."""
        timeout = _timeout() or "DEFAULT"
        role = f'"{self.role}"' if self.role else "NONE"
        text = f'SET LOCAL ROLE {role}; SET LOCAL search_path = "{self.schema}"; '
        return f"{text}SET LOCAL statement_timeout TO {timeout}".encode()

    def enter(self, raw: Raw, kind: str) -> str | None:
        begun = raw.execute(self.begin(kind))
        if kind != WRITE:
            return None
        while begun.nextset():
            pass
        return str(begun.fetchone()[0])  # type: ignore[index]  # the last of them is a SELECT of one row


def _timeout() -> int:
    """Return the milliseconds that are left; 0 if there is no limit."""
    seconds = left()
    return 0 if seconds is None else max(1, round(seconds * 1000))


class _OpenTransaction(local):
    """The transaction in which a thread does several things at the moment."""

    connection: Connection | None = None
    repeated = True
    """Whether all of it is done again after a conflict, so that errors have to reach who repeats it."""


class TablesLink(PooledDatabase[Connection]):
    """Connections of tables to one database."""

    attempts = 8
    closed_words = "these tables were closed"
    causes = False
    shown = "PostgreSQL"

    def __init__(self, address: str, *, size: int = 16) -> None:
        try:
            psycopg.conninfo.conninfo_to_dict(address)
        except psycopg.ProgrammingError as error:
            raise ConfigError(f"not an address of PostgreSQL: {str(error).strip()}") from None
        self.address = address
        self._together = _OpenTransaction()
        self.connect().close()  # a wrong address fails at once, not after the pool's timeout
        super().__init__(address, _PROFILE, size)

    def connect(self) -> Raw:
        """Open a connection outside the pool, for long use."""
        try:
            connection = Raw.connect(self.address, **CONNECT_OPTIONS)
        except psycopg.Error as error:
            raise StoreUnreachableError(f"PostgreSQL does not answer: {line(error)}") from None
        _PROFILE.apply(connection)
        return connection

    def read_directly(self, work: Callable[[Connection], T]) -> T:
        """Run a read-only statement of our own, without a transaction."""
        return self._run(None, READ, work)

    def read(self, frame: Frame, work: Callable[[Connection], T], *, kind: str = READ) -> T:
        """Run `work` in a read-only transaction; repeat it on a new connection if one is lost."""
        return self._run(frame, kind, work)

    def write(self, frame: Frame, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction, durable on return, or when the enclosing `run_in_transaction` returns."""
        connection = self._together.connection
        if connection is None:
            return self._run(frame, WRITE, work)
        try:
            connection.execute(frame.change())
            return work(connection)
        except psycopg.Error as error:
            if self._together.repeated:
                raise
            raise self.to_error(error, frame) from None

    @property
    def inside(self) -> bool:
        """Return whether this thread is inside `run_in_transaction`."""
        return self._together.connection is not None

    def run_in_transaction(self, work: Callable[[], T]) -> T:
        """Run `work`, all whose writes are one transaction."""

        def run_joined(connection: Connection) -> T:
            self._together.connection = connection
            try:
                return work()
            finally:
                self._together.connection = None

        return self._run(Frame(), WRITE, run_joined)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction. It cannot be repeated, so a conflict is an error."""
        tried: Attempt[None] = Attempt()
        try:
            with self._connection(time.monotonic() + self.timeout()) as raw:
                tried.begin(raw, Frame(), WRITE)
                self._together.connection, self._together.repeated = raw, False
                try:
                    yield
                finally:
                    self._together.connection, self._together.repeated = None, True
                tried.commit(raw)
        except psycopg.Error as error:
            if not (is_lost(error) and tried.committing and self._was_committed(tried)):
                raise self.to_error(error, None) from None

    def timeout(self) -> float:
        return PATIENCE

    def open(self) -> Raw:
        return self.connect()

    def to_error(self, error: psycopg.Error, frame: Frame | None) -> RemanenceError:
        return translate_error(error, (frame or Frame()).schema)

    def wrap(self, raw: Raw) -> Connection:
        return raw
