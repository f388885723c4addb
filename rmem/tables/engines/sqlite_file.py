"""Open connections for statements of users, with our functions and collations. An authorizer restricts them to tables
of the catalogue, whatever the SQL says. SQLite's errors become ours."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ...errors import ConstraintError, RemanenceError, SqlError, StoreClosedError, StoreError
from ...stores.sql.file import SqliteFile, translate_errors
from ..deadline import is_over, timeout_error
from ..sql.literals import LIMITS
from .sqlite_functions import StatementState, keep_error
from .sqlite_storage import COLLATIONS, Physical

MAX_VALUE = 256_000_000
"""The longest text or blob that a statement may make."""

_STEPS = 5000  # of SQLite's machine between two looks at the clock
_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
}
_TABLES = {sqlite3.SQLITE_READ, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
_WITH = re.compile(r"w\d+")
"""How `Compiler.with_queries` names the queries of a WITH; SQLite asks for one that no column is read of."""
_FORBIDDEN = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "sqlite_compileoption_get"}


class TableFile(SqliteFile):
    """An SQLite file for statements of users; each connection has a StatementState."""

    def __init__(self, path: Path, durability: str, busy_timeout: float) -> None:
        self._states: dict[int, StatementState] = {}
        super().__init__(path, durability, busy_timeout)

    def _connect(self) -> sqlite3.Connection:
        connection = super()._connect()
        connection.execute("PRAGMA case_sensitive_like = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        state = StatementState()
        self._states[id(connection)] = state
        for name, compare in COLLATIONS.items():
            connection.create_collation(name, compare)
        connection.create_function("rmem_now", 0, lambda: state.now)
        connection.create_function("rmem_score", 2, partial(_score, state))
        connection.create_function("rmem_limit", 2, keep_error(state, _limit))
        connection.create_function("rmem_nextval", 1, keep_error(state, lambda key: _next(state, key)))
        for name, read in {"rmem_float": float, "rmem_bytes": bytes.fromhex}.items():
            connection.create_function(name, 1, lambda text, read=read: None if text is None else read(text))
        connection.execute("SELECT 1 FROM json_each('[]')")  # connected now, because that takes more rights
        connection.create_function("rmem_once", 1, keep_error(state, lambda row: _once(state, row)))
        connection.set_authorizer(_authorizer(state))
        connection.set_progress_handler(is_over, _STEPS)
        return connection

    def state(self, connection: sqlite3.Connection) -> StatementState:
        return self._states[id(connection)]

    @contextmanager
    def writing(self) -> Iterator[tuple[sqlite3.Connection, StatementState]]:
        with self.write_lock, translate_errors(self.path):
            if self.closed:
                raise StoreClosedError("this workspace is closed; open it again to use it")
            yield self.writer, self.state(self.writer)

    def _discard(self, connection: sqlite3.Connection) -> None:
        super()._discard(connection)
        self._states.pop(id(connection), None)


def _authorizer(state: StatementState) -> Callable[[int, str | None, str | None, str | None, str | None], int]:
    def allow(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
        if state.inside:
            return sqlite3.SQLITE_OK
        if action in _TABLES:
            name = first or ""
            own = name.startswith("rt_") or name in ("json_each", "sqlite_sequence", "") or _WITH.fullmatch(name)
            return sqlite3.SQLITE_OK if own or (trigger or "").startswith("rl_") else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_DENY if (second or "").lower() in _FORBIDDEN else sqlite3.SQLITE_OK
        return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY

    return allow


def _score(state: StatementState, number: int, row: int | None) -> float | None:
    try:
        return state.scores[number].by_row[row]  # type: ignore[no-any-return]
    except Exception as error:
        state.error = state.error or error
        raise


def _limit(value: int | None, clause: str) -> int:
    if value is not None and value < 0:
        raise SqlError(f"{clause} must not be negative")
    return -1 if value is None else value


def _once(state: StatementState, row: int) -> bool:
    """Let ON CONFLICT DO UPDATE change a row once, and none that the same statement wrote."""
    if row > state.highest or row in state.touched:
        raise SqlError("ON CONFLICT DO UPDATE command cannot affect row a second time")
    state.touched.add(row)
    return True


def _next(state: StatementState, key: str) -> int:
    place, _, kind = key.rpartition("/")
    state.sequences[place] += 1
    if state.sequences[place] >= LIMITS[kind]:
        raise SqlError("nextval: reached maximum value of sequence")
    return state.sequences[place]


# -- errors -----------------------------------------------------------------------------------------------------

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
