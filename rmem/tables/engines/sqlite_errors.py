"""Translate errors of SQLite into ours."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ...errors import ConstraintError, RemanenceError, SqlError, StoreError
from ..deadline import timeout_error
from .sqlite_functions import StatementState
from .sqlite_storage import Physical

_OF_STATEMENTS = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_MISMATCH)


def translate_error(error: sqlite3.Error, state: StatementState) -> RemanenceError | sqlite3.Error:
    """Translate an error of SQLite; return the error of our own function if one raised it."""
    if state.error is not None:
        found, state.error = state.error, None
        return found if isinstance(found, RemanenceError) else StoreError(str(found))
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        return timeout_error()
    message = str(error)
    if code in _OF_STATEMENTS or isinstance(error, (sqlite3.ProgrammingError, sqlite3.DataError)):
        if "integer overflow" in message:
            return SqlError("bigint out of range")
        if "stack overflow" in message or "too large (maximum depth" in message:
            return SqlError("the statement is nested too deeply")
        return SqlError(f"the statement cannot be run: {message}")
    return error


@contextmanager
def translate_interrupts() -> Iterator[None]:
    """Translate the end of the time limit in a statement of our own."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_INTERRUPT:
            raise timeout_error() from None
        raise


@contextmanager
def translate_constraints(tables: Mapping[str, Physical], target: Physical | None = None) -> Iterator[None]:
    """Report broken constraints by the names that users know; `target` is the table that is written to."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise _constraint_error(str(error), tables, target) from None


def _constraint_error(message: str, tables: Mapping[str, Physical], target: Physical | None) -> ConstraintError:
    if message.startswith("rmem:null:"):
        place = message.removeprefix("rmem:null:")
        names = {place: name for name, place in target.columns.items()} if target is not None else {}
        return ConstraintError(f'null value in column "{names.get(place, place)}" violates not-null constraint')
    if message.startswith("FOREIGN KEY"):
        return ConstraintError("insert, update or delete violates a foreign key constraint")
    found = re.search(r"rt_(\d+)|r[ik]_(\d+)", message)
    identifier = int(found[1] or found[2]) if found else 0
    for physical in tables.values():
        if physical.id == identifier:
            names = {place: name for name, place in physical.columns.items()}
            columns = ", ".join(names[place] for place in re.findall(r"\bc\d+\b", message) if place in names)
            broken = f'duplicate key value violates unique constraint of table "{physical.table.name}"'
            return ConstraintError(f"{broken}: ({columns})" if columns else broken)
    return ConstraintError("a constraint is violated")
