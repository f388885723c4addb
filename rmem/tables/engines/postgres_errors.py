"""Translate PostgreSQL's errors into ours. Only the first line of the server's message is shown, without schema names;
what a role may not see gives the same error as what does not exist."""

from __future__ import annotations

import psycopg
from psycopg import errors as pg

from ...errors import (
    ConstraintError,
    NoSuchTableError,
    RemanenceError,
    SqlError,
    StatementTimeoutError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
    TableExistsError,
)

VECTOR_CHECK = "rmem_vector_"
"""How the names of the checks on vectors begin."""

_MISSING = (pg.UndefinedTable, pg.UndefinedColumn, pg.InvalidSchemaName)
_KNOWN = (pg.DuplicateTable, pg.DuplicateColumn, pg.DuplicateObject)
_BUSY = (pg.TooManyConnections, pg.LockNotAvailable, pg.DeadlockDetected, pg.SerializationFailure)


def translate_error(error: psycopg.Error, schema: str = "") -> RemanenceError:
    """Return the error to raise instead of `error`: `raise translate_error(error, schema) from None`."""
    text = _message(error, schema)
    match error:
        case pg.CheckViolation() if (error.diag.constraint_name or "").startswith(VECTOR_CHECK):
            return SqlError(_wanted_vector(error))
        case pg.NotNullViolation():
            return ConstraintError(f"column {error.diag.column_name!r} must not be NULL")
        case pg.IntegrityError():
            detail = (error.diag.message_detail or "").replace(f"{schema}.", "")
            return ConstraintError(f"{text}: {detail}" if detail else text)
        case pg.DependentObjectsStillExist():
            return ConstraintError(text)
        case pg.InsufficientPrivilege():
            return NoSuchTableError("no such table in this workspace")
        case pg.QueryCanceled():
            return StatementTimeoutError("the statement ran longer than it may and was stopped")
        case pg.ConfigurationLimitExceeded():
            return SqlError("the statement needs more temporary space than it may use")
        case pg.DiskFull() | pg.OutOfMemory():
            return StoreFullError(text)
        case pg.ReadOnlySqlTransaction():
            return StoreReadOnlyError("this PostgreSQL server takes no writes")
    if isinstance(error, _MISSING):
        return NoSuchTableError(text)
    if isinstance(error, _KNOWN):
        return TableExistsError(text)
    if isinstance(error, _BUSY):
        return StoreBusyError(text)
    state = error.sqlstate or ""
    if state[:2] in ("57", "08") or (isinstance(error, psycopg.OperationalError) and not state):
        return StoreUnreachableError("PostgreSQL does not answer")
    if state[:2] in ("21", "22", "2F", "34", "42", "54", "0A") or isinstance(error, psycopg.DataError):
        return SqlError(text)
    return StoreError("PostgreSQL could not run the statement")


def _message(error: psycopg.Error, schema: str) -> str:
    text = error.diag.message_primary or str(error).partition("\n")[0] or type(error).__name__
    return text.replace(f"{schema}.", "") if schema else text


def _wanted_vector(error: psycopg.Error) -> str:
    """Parse the dimension (0 is any) and the column from the name of the check."""
    dimension, _, column = (error.diag.constraint_name or "").removeprefix(VECTOR_CHECK).partition("_")
    wanted = f"{dimension} numbers" if dimension != "0" else "numbers"
    return f"column {column!r} expects vectors of {wanted}, none of them NULL"
