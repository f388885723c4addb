"""Tables on SQLite, in the same file as the memories. Readers see one state of the file; a writing statement is one
transaction, written to disk before it returns; other processes may read and write at the same time."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import exp

from ...errors import (
    NoSuchTableError,
    SqlError,
    StoreBusyError,
    StoreFullError,
    StoreReadOnlyError,
)
from ...forks import new_rlock
from ...index.segments import Segment
from ...stores.sql import cache, receipts
from .. import deadline
from ..catalog import ROW, Column, Index, Table
from ..results import Result
from ..sql.expression_types import result_type
from . import sqlite_catalog as catalog
from . import sqlite_changes as change_log
from . import sqlite_segments as segments
from .base import (
    Engine,
    RowNumbers,
    StaleCatalogueError,
    StatementPlan,
    TableChanges,
    fetch_batch,
    fetch_rows,
    pattern_parameters,
)
from .sqlite_compile import Compiled, Compiler, parameter_values
from .sqlite_file import TableFile, translate_constraints, translate_error, translate_interrupts
from .sqlite_functions import StatementState, install
from .sqlite_storage import Physical, result_reader
from .sqlite_text import is_short
from .sqlite_writes import bulk_insert, compile_write, default_sql, last_numbers, numbering, stored_rows

if TYPE_CHECKING:
    from ..search.texts import TextColumn
    from ..search.vectors import VectorColumn

log = logging.getLogger(__name__)

T = TypeVar("T")
_PATIENCE = 0.05  # seconds that a search waits for the write lock to keep its index
_MANY = 256  # rows of an answer whose conversion looks at the clock
_COMPILED = "sqlite"
"""Where a tree keeps what it was compiled to, for as long as the catalogue stays the same."""


class SqliteEngine(Engine):
    """The tables of one file."""

    def __init__(self, path: Path, *, durability: str = "full", busy_timeout: float = 30.0) -> None:
        self._file = TableFile(path, durability, busy_timeout)
        self._lock = new_rlock()
        self._together: int | None = None  # the thread whose writes are one transaction
        self._seen: tuple[int, dict[str, Physical]] = (-1, {})
        self._tables: tuple[dict[str, Physical], dict[str, Table]] = ({}, {})  # as stored, and as users know them
        self._removed = False  # whether rows were changed or deleted here

    def close(self) -> None:
        self._file.close()

    # -- the catalogue --------------------------------------------------------------------------------------

    def tables(self) -> dict[str, Table]:
        with self._read_snapshot() as (connection, _):
            physical = self._physical(connection)
        seen, tables = self._tables
        if seen is not physical:
            tables = {name: stored.table for name, stored in physical.items()}
            self._tables = physical, tables
        return tables

    def _physical(self, connection: sqlite3.Connection) -> dict[str, Physical]:
        """Return the tables as this connection's transaction sees them."""
        seen, tables = self._seen
        now = catalog.version(connection)
        if seen != now:
            now, tables = catalog.load(connection)
            if now > seen:
                self._seen = (now, tables)
        return tables

    @contextmanager
    def _write_transaction(self) -> Iterator[tuple[sqlite3.Connection, StatementState]]:
        """Begin the one write transaction, or join the open one."""
        with self._lock, self._file.writing() as (connection, state):
            if self._together is not None:
                if not connection.in_transaction:
                    raise SqlError("an earlier part of this transaction failed, so it was rolled back")
                yield connection, state
                return
            self._file.begin(self._file.timeout)
            try:
                with translate_interrupts():
                    yield connection, state
                connection.execute("COMMIT")
            except BaseException:
                state.inside = True
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._seen = (-1, {})
                raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._write_transaction():
            self._together = get_ident()
            try:
                yield
            finally:
                self._together = None

    @property
    def in_transaction(self) -> bool:
        return self._together == get_ident()

    def run_in_transaction(self, work: Callable[[], T]) -> T:
        if self.in_transaction:
            return work()
        with self.transaction():
            return work()

    @contextmanager
    def _read_snapshot(self) -> Iterator[tuple[sqlite3.Connection, StatementState]]:
        """Read one snapshot of the file; inside a transaction, with its own writes."""
        if self._together == get_ident():
            with self._write_transaction() as own:
                yield own
        else:
            with self._file.snapshot() as connection:
                yield connection, self._file.state(connection)

    def claim(self, key: str) -> str | None:
        with self._write_transaction() as (connection, _):
            return receipts.claim(connection, key)

    def keep(self, key: str, value: str) -> None:
        with self._write_transaction() as (connection, _):
            receipts.keep(connection, key, value)

    def change_catalogue(self, work: Callable[[dict[str, Table]], T]) -> T:
        return self.run_in_transaction(lambda: work(self.tables()))

    def create_table(self, table: Table) -> None:
        with self._write_transaction() as (connection, _):
            catalog.create(connection, table, self._physical(connection))

    def drop_table(self, name: str) -> None:
        with self._write_transaction() as (connection, _):
            catalog.drop(connection, self._physical(connection)[name])

    def alter_table(self, changed: Table) -> None:
        with self._write_transaction() as (connection, state):
            tables = self._physical(connection)
            old = tables[changed.name]
            physical, added = catalog.alter(connection, old, changed, tables)
            if added:
                self._fill(connection, state, physical, added)
            install(connection, state, catalog.checks(physical)[1])
            with translate_constraints(tables):
                catalog.finish(connection, old, physical, added)

    def _fill(
        self, connection: sqlite3.Connection, state: StatementState, physical: Physical, added: list[Column]
    ) -> None:
        """Fill existing rows with the defaults of new columns."""
        compiler = Compiler({})
        compiler.target = physical
        sets = [
            f"{physical.columns[column.name]} = {default_sql(compiler, column)}"
            for column in added
            if column.serial or column.default is not None
        ]
        if sets:
            compiled = compiler.finish(f"UPDATE {physical.name} SET {', '.join(sets)}")
            install(connection, state, compiled.udfs)
            state.now = time.time_ns() // 1000
            with numbering(connection, state, physical):
                connection.execute(compiled.sql)

    def create_index(self, index: Index) -> None:
        with self._write_transaction() as (connection, _):
            tables = self._physical(connection)
            physical = tables[index.table]
            with translate_constraints(tables):
                catalog.create_index(connection, physical, index)
            catalog.save(connection, _with_indexes(physical, (*physical.table.indexes, index)))

    def drop_index(self, index: Index) -> None:
        with self._write_transaction() as (connection, _):
            physical = self._physical(connection)[index.table]
            catalog.drop_index(connection, physical, index)
            rest = tuple(other for other in physical.table.indexes if other != index)
            catalog.save(connection, _with_indexes(physical, rest))

    # -- statements -----------------------------------------------------------------------------------------

    def run(self, plan: StatementPlan) -> Result:
        if isinstance(plan.tree, exp.Query):
            with deadline.time_limit(plan.timeout), self._read_snapshot() as (connection, state):
                compiled = self._compile(connection, plan)
                with self._run_as_user(connection, state, compiled, plan) as values:
                    cursor = connection.execute(compiled.sql, values)
                    return _result(compiled, fetch_rows(cursor, plan))
        return self._write(plan)

    def _write(self, plan: StatementPlan) -> Result:
        with deadline.time_limit(plan.timeout), self._write_transaction() as (connection, state):
            compiled = self._compile(connection, plan)
            with self._writing(connection, state, compiled, plan) as values:
                cursor = connection.execute(compiled.sql, values)
                rows = fetch_rows(cursor, plan) if compiled.columns else []
                (count,) = connection.execute("SELECT changes()").fetchone()
            self._removed |= bool(count) and not isinstance(plan.tree, exp.Insert)
            change_log.trim(connection)
            return replace(_result(compiled, rows), row_count=len(rows) if compiled.columns else count)

    @contextmanager
    def _writing(
        self, connection: sqlite3.Connection, state: StatementState, compiled: Compiled, plan: StatementPlan
    ) -> Iterator[list[Any]]:
        """Run a statement that writes, then check the CHECKs of the rows that it wrote."""
        target = compiled.target
        assert target is not None
        install(connection, state, catalog.checks(target)[1])
        state.touched = set()
        state.highest = change_log.last(connection, target.name)
        before = change_log.last(connection, "table_changes")
        with (
            numbering(connection, state, target),
            self._run_as_user(connection, state, compiled, plan) as values,
            translate_constraints(self._physical(connection), target),
        ):
            yield values
            state.inside = True
            if target.table.checks:
                changed = "SELECT row FROM table_changes WHERE table_id = ? AND n > ?"
                where = f"NEW.{ROW} > ? OR NEW.{ROW} IN ({changed})"
                broken = catalog.broken_check(connection, target, where, (state.highest, target.id, before))
                if broken is not None:
                    raise broken

    def stream(self, plan: StatementPlan, batch_size: int) -> Iterator[Result]:
        with self._file.snapshot() as connection:
            compiled = self._compile(connection, plan)
            state = self._file.state(connection)
            limit = None if plan.timeout is None else deadline.Deadline(plan.timeout)
            with self._run_as_user(connection, state, compiled, plan) as values:
                cursor, begun = None, False
                try:
                    while True:
                        with deadline.time_limit(limit):  # another thread may go on after each batch
                            cursor = cursor or connection.execute(compiled.sql, values)
                            rows = fetch_batch(cursor, batch_size)
                        if not rows and begun:
                            break
                        begun = True
                        yield _result(compiled, rows)
                finally:
                    if cursor is not None:
                        cursor.close()

    def explain(self, plan: StatementPlan) -> list[str]:
        with deadline.time_limit(plan.timeout), self._read_snapshot() as (connection, state):
            compiled = self._compile(connection, plan)
            names = {physical.name: name for name, physical in self._physical(connection).items()}
            with self._run_as_user(connection, state, compiled, plan) as values:
                rows = connection.execute(f"EXPLAIN QUERY PLAN {compiled.sql}", values).fetchall()
        depth = {0: 0}
        lines = []
        for number, parent, _, detail in rows:
            depth[number] = depth.get(parent, 0) + 1
            words = [names.get(word, word) for word in str(detail).split(" ")]
            lines.append("  " * (depth[number] - 1) + " ".join(words))
        return lines

    def _compile(self, connection: sqlite3.Connection, plan: StatementPlan) -> Compiled:
        tables = self._physical(connection)
        seen, patterns, known = plan.tree.meta.get(_COMPILED, (None, (), {}))
        if seen is not tables:
            patterns, known = pattern_parameters(plan.tree), {}
            plan.tree.meta[_COMPILED] = tables, patterns, known
        long = frozenset(number for number in patterns if not is_short(plan.parameters[number - 1]))
        key = tuple(plan.candidates), long
        if key in known:
            return known[key]  # type: ignore[no-any-return]
        compiler = Compiler(tables, plan.candidates, long, nodes=sum(1 for _ in plan.tree.walk()))
        if isinstance(plan.tree, exp.Query):
            compiled = compiler.finish(compiler.query(plan.tree), plan.tree.meta["columns"])
        else:
            compiled = compile_write(compiler, plan.tree)
        known[key] = compiled
        return compiled

    @contextmanager
    def _run_as_user(
        self, connection: sqlite3.Connection, state: StatementState, compiled: Compiled, plan: StatementPlan
    ) -> Iterator[list[Any]]:
        """Run a user's statement with its functions, its time limit, and access to tables only."""
        values = parameter_values(compiled, plan.parameters, plan.candidates)
        if compiled.udfs:
            install(connection, state, compiled.udfs)
        state.now, state.error = time.time_ns() // 1000, None
        state.scores, state.inside = plan.scores, False
        try:
            yield values
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            raise translate_error(error, state) from error
        finally:
            state.inside, state.scores = True, ()

    # -- bulk -----------------------------------------------------------------------------------------------

    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
        with self._write_transaction() as (connection, state):
            physical = self._physical(connection).get(table.name)
            if physical is None:
                raise NoSuchTableError(f'table "{table.name}" does not exist')
            if physical.table != table:
                raise StaleCatalogueError(table.name)
            compiled = bulk_insert(physical, columns)
            with self._writing(connection, state, compiled, StatementPlan(exp.Insert())):
                connection.executemany(compiled.sql, stored_rows(physical.table, columns, rows))
            return len(rows)

    # -- following ------------------------------------------------------------------------------------------

    @contextmanager
    def _table_snapshot(self, table: str) -> Iterator[tuple[sqlite3.Connection, Physical | None]]:
        """Read one snapshot of the file for an index; None for a table that is gone."""
        with self._file.snapshot() as connection, translate_interrupts():
            yield connection, self._physical(connection).get(table)

    def changes(self, table: str, columns: Sequence[str], since: int) -> TableChanges:
        with self._table_snapshot(table) as (connection, physical):
            if physical is None:
                raise NoSuchTableError(f'table "{table}" does not exist')
            return change_log.changes(connection, catalog.version(connection), physical, columns, since)

    # -- segments of search indexes -------------------------------------------------------------------------

    def load_segments(self, table: str, column: str, index: TextColumn | VectorColumn) -> int:
        with self._table_snapshot(table) as (connection, physical):
            if physical is None or column not in physical.columns:
                return 0
            owner, catalogue = segments.owner_of(physical, column), catalog.version(connection)
            found = cache.load_chain(connection, index.absorb, index.is_sound, owner)
        if (distrusted := found.distrusted) is not None:
            self._write_cache(lambda connection: cache.drop_from(connection, distrusted, owner))
        if found.changes is None:
            return 0
        return change_log.Version(catalogue, physical.id, found.row, found.changes).number()

    def save_segments(
        self, table: str, column: str, index: TextColumn | VectorColumn, version: int, least: int
    ) -> None:
        known = change_log.Version.of(version)
        with self._table_snapshot(table) as (connection, physical):
            if physical is None or catalog.version(connection) != known.catalogue:
                return
            owner = segments.owner_of(physical, column)
            packed = segments.pack(connection, owner, physical, index, known, least)

        def write(connection: sqlite3.Connection) -> None:
            for segment in packed if catalog.version(connection) == known.catalogue else ():
                cache.replace(connection, segment, owner)
                cache.save(connection, segment, owner)

        if packed:
            self._write_cache(write)

    def read_vectors(self, table: str, column: str, rows: RowNumbers) -> dict[int, bytes]:
        with self._table_snapshot(table) as (connection, physical):
            if physical is None or column not in physical.columns:
                return {}
            found = change_log.select_rows(connection, physical, f"{ROW}, {physical.columns[column]}", rows.tolist())
            return {row: stored for row, stored in found if stored is not None}

    def outdated_segments(self) -> Iterator[tuple[Table, str, Segment, TableChanges]]:
        if not self._removed or self._file.closed:
            return
        self._removed = False
        with self._file.snapshot() as connection, translate_interrupts():
            stale = segments.outdated_segments(connection, self._physical(connection).values())
            for physical, column, segment, found in stale:
                yield physical.table, column, segment, found

    def replace_segment(self, table: str, column: str, segment: Segment) -> None:
        def write(connection: sqlite3.Connection) -> None:
            physical = self._physical(connection).get(table)
            if physical is not None and column in physical.columns:
                cache.replace(connection, segment, segments.owner_of(physical, column))

        self._write_cache(write)

    def _write_cache(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Write derived data; skip it while anybody else writes."""
        if self._file.read_only or self._together is not None or not self._lock.acquire(blocking=False):
            return
        try:
            with self._file.writing() as (connection, _):
                self._file.begin(_PATIENCE)
                try:
                    work(connection)
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except (StoreBusyError, StoreFullError, StoreReadOnlyError) as error:
            log.info("a search index was not kept in the file: %s", error)
        finally:
            self._lock.release()

    def numbers(self, table: str) -> dict[str, int]:
        with self._file.snapshot() as connection:
            return last_numbers(connection, self._physical(connection)[table])


def _with_indexes(physical: Physical, indexes: tuple[Index, ...]) -> Physical:
    return replace(physical, table=replace(physical.table, indexes=indexes))


def _result(compiled: Compiled, rows: list[tuple[Any, ...]]) -> Result:
    readers = [result_reader(kind) for _, kind in compiled.columns]
    if any(read is not None for read in readers):
        rows = [
            tuple(item if item is None or read is None else read(item) for item, read in zip(row, readers, strict=True))
            for row in (deadline.check_each(rows) if len(rows) > _MANY else rows)
        ]
    names = tuple(name for name, _ in compiled.columns)
    return Result(names, tuple(result_type(kind) for _, kind in compiled.columns), rows, len(rows))
