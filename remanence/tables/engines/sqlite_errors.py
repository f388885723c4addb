"""What errors of SQLite mean to whoever wrote the statement, and the clock that stops it."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ...errors import RemanenceError, SqlError, StatementTimeoutError, StoreError
from .sqlite_calls import State
from .sqlite_catalog import constraint_error
from .sqlite_compiled import Physical


def clock(deadline: float) -> Callable[[], int]:
    """A function that SQLite asks now and then whether to stop."""
    return lambda: int(time.monotonic() > deadline)


def explained(error: sqlite3.Error, state: State, timeout: float | None) -> RemanenceError | sqlite3.Error:
    """What an error of SQLite means to a user; errors of our functions as they were raised."""
    if state.error is not None:
        found, state.error = state.error, None
        return found if isinstance(found, RemanenceError) else StoreError(str(found))
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        limit = f"longer than {timeout:g} s" if timeout is not None and math.isfinite(timeout) else "too long"
        return StatementTimeoutError(f"the statement ran {limit} and was stopped")
    message = str(error)
    if code in (
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_MISMATCH,
    ) or isinstance(error, (sqlite3.ProgrammingError, sqlite3.DataError)):
        if "integer overflow" in message:
            return SqlError("bigint out of range")
        if "stack overflow" in message or "too large (maximum depth" in message:
            return SqlError("the statement is nested too deeply")
        return SqlError(f"the statement cannot be run: {message}")
    return error


@contextmanager
def constraints(tables: Mapping[str, Physical]) -> Iterator[None]:
    """Broken constraints by the names that users know."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise constraint_error(error, dict(tables)) from None
