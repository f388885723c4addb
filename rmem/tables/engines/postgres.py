"""Tables on PostgreSQL. One database holds the tables of many tenants, each in a schema of its own; a statement runs in
a transaction that sees this schema only, as a role that may see no more (`postgres_catalog` says when there is none).

    engine = PostgresEngine("postgresql://…", tenant="acme/notes")
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import BoundedSemaphore
from typing import Any, TypeVar

import psycopg
from psycopg import RawCursor, RawServerCursor
from sqlglot import exp

from ...errors import ConfigError, NoSuchTableError, SqlError, StoreBusyError
from ...forks import Forking, new_lock, watch
from ...stores.sql.postgres_arrays import Array, VectorDumper
from ..catalog import Column, Index, Kind, Table, Type
from ..deadline import time_limit
from ..results import Result
from ..sql.expression_types import NAMES, is_array, result_type
from ..sql.times import read_interval
from . import postgres_catalog as catalog
from . import postgres_changes
from .base import Engine, StaleCatalogueError, StatementPlan, TableChanges, fetch_batch, fetch_rows
from .postgres_catalog import OWN
from .postgres_ddl import DdlBuilder, quote
from .postgres_errors import translate_error
from .postgres_link import PATIENCE, SNAPSHOT, Connection, Frame, TablesLink
from .postgres_render import render
from .postgres_values import to_driver, type_of

T = TypeVar("T")
RowBatch = Sequence[Sequence[Any]]
_STREAMS = 16  # each keeps a connection of its own


class PostgresEngine(Engine, Forking):
    """The tables of one tenant in a PostgreSQL database."""

    def __init__(self, address: str, *, tenant: str, connections: int = 16) -> None:
        if not tenant or "\0" in tenant:
            raise ConfigError(f"tenant must be a name, got {tenant!r}")
        self._link = TablesLink(address, size=connections)
        try:
            self._tenant = catalog.tenant_of(self._link, tenant)
            self._words = DdlBuilder(self._tenant, self._link.read_directly(_collation))
        except BaseException:
            self._link.close()
            raise
        self._lock = new_lock()
        self._seen: tuple[int, dict[str, Table]] = (0, {})
        self.after_fork_in_child()
        watch(self)
        if self._tenant.layout < catalog.LAYOUT:
            self._change(self._guard_old_tables)

    def after_fork_in_child(self) -> None:
        self._streams = BoundedSemaphore(_STREAMS)  # those of the parent are its own

    def close(self) -> None:
        self._link.close()

    # The catalogue

    def tables(self) -> dict[str, Table]:
        if self._link.inside:
            return self._link.write(OWN, self._tables_inside)
        version = self._version()
        with self._lock:
            seen, tables = self._seen
        if seen != version:
            version, tables = self._link.read(
                OWN,
                lambda connection: (catalog.version(connection, self._tenant), catalog.load(connection, self._tenant)),
                kind=SNAPSHOT,
            )
            with self._lock:
                self._seen = (version, tables)
        return dict(tables)

    def _tables_inside(self, connection: Connection) -> dict[str, Table]:
        """Return the tables as a transaction sees them; not cached, because it may be rolled back."""
        with self._lock:
            seen, tables = self._seen
        if seen == catalog.version(connection, self._tenant):
            return dict(tables)
        return catalog.load(connection, self._tenant)

    def change_catalogue(self, work: Callable[[dict[str, Table]], T]) -> T:
        return self.run_in_transaction(
            lambda: work(self._change(lambda connection: catalog.load(connection, self._tenant)))
        )

    def _change(self, work: Callable[[Connection], T]) -> T:
        """Change the catalogue and the tables in one transaction; one at a time for each tenant."""

        def run_locked(connection: Connection) -> T:
            catalog.touch(connection, self._tenant)
            return work(connection)

        return self._link.write(Frame(self._tenant.schema), run_locked)

    def create_table(self, table: Table) -> None:
        self._change(lambda connection: self._create_table(connection, table))

    def _create_table(self, connection: Connection, table: Table) -> None:
        identifier, first = catalog.add(connection, self._tenant, table)
        if table.view is None:
            _all(connection, self._words.create(table, identifier, first))

    def drop_table(self, name: str) -> None:
        def work(connection: Connection) -> None:
            if catalog.load(connection, self._tenant)[name].view is not None:
                catalog.remove_view(connection, self._tenant, name)
            else:
                catalog.remove(connection, self._tenant, name)
                _all(connection, [f"DROP TABLE {self._words.place(name)}"])

        self._change(work)

    def alter_table(self, changed: Table) -> None:
        def work(connection: Connection) -> None:
            old = catalog.load(connection, self._tenant)[changed.name]
            _all(connection, self._words.alter(old, changed))
            if not {column.name for column in old.columns} <= {column.name for column in changed.columns}:
                catalog.forget_changes(connection, self._tenant, changed.name)
            catalog.save(connection, self._tenant, changed)

        self._change(work)

    def create_index(self, index: Index) -> None:
        self._change(
            lambda connection: self._save_indexes(connection, index, self._words.create_index(index), (index,))
        )

    def drop_index(self, index: Index) -> None:
        self._change(lambda connection: self._save_indexes(connection, index, self._words.drop_index(index), ()))

    def _save_indexes(
        self, connection: Connection, index: Index, statements: Iterable[str], new: tuple[Index, ...]
    ) -> None:
        """Run statements, and replace an index of a table by new ones in the catalogue."""
        table = catalog.load(connection, self._tenant)[index.table]
        _all(connection, statements)
        rest = tuple(other for other in table.indexes if other.name != index.name)
        catalog.save(connection, self._tenant, replace(table, indexes=(*rest, *new)))

    def _guard_old_tables(self, connection: Connection) -> None:
        for table in catalog.load(connection, self._tenant).values():
            if table.view is None:
                _all(connection, self._words.guard(table))
        catalog.set_layout(connection, self._tenant)

    # Several writes in one transaction

    def transaction(self) -> AbstractContextManager[None]:
        return self._link.transaction()

    @property
    def in_transaction(self) -> bool:
        return self._link.inside

    def run_in_transaction(self, work: Callable[[], T]) -> T:
        if self.in_transaction:
            return work()
        before = self._version()
        try:
            return self._link.run_in_transaction(work)
        except (NoSuchTableError, SqlError):
            if self._version() != before:  # perhaps a statement was bound to a table that is no longer what it was
                raise StaleCatalogueError from None
            raise

    def _version(self) -> int:
        return self._link.read_directly(lambda connection: catalog.version(connection, self._tenant))

    def claim(self, key: str) -> str | None:
        return self._link.write(OWN, lambda connection: catalog.claim(connection, self._tenant, key))

    def keep(self, key: str, value: str) -> None:
        self._link.write(OWN, lambda connection: catalog.keep(connection, self._tenant, key, value))

    # Statements

    def run(self, plan: StatementPlan) -> Result:
        statement = render(plan, self._tenant.schema)

        def work(connection: Connection) -> Result:
            cursor = RawCursor(connection)
            cursor.execute(statement.text, statement.values(plan), binary=True)
            return _result(cursor, plan)

        run = self._link.write if statement.writes or self._link.inside else self._link.read
        try:
            with time_limit(plan.timeout):
                result = run(self._frame(), work)
        except (NoSuchTableError, SqlError):
            if not self._link.inside:
                self._check_fresh(plan)
            raise
        often = result.row_count / postgres_changes.KEPT
        if isinstance(plan.tree, exp.Delete) and not self._link.inside and random.random() < often:
            postgres_changes.forget(self._link, self._tenant, plan.tree.this.name)
        return result

    def _check_fresh(self, plan: StatementPlan) -> None:
        """Raise StaleCatalogueError if a statement failed because its tables changed after binding."""
        tables = self.tables()
        for node in plan.tree.find_all(exp.Table):
            bound = node.meta.get("table")
            if isinstance(bound, Table) and tables.get(bound.name) != bound:
                raise StaleCatalogueError(bound.name)

    def stream(self, plan: StatementPlan, batch_size: int) -> Iterator[Result]:
        statement = render(plan, self._tenant.schema)
        if not self._streams.acquire(timeout=PATIENCE):
            raise StoreBusyError(f"{_STREAMS} streams are being read already")
        try:
            with self._link.connect() as connection:
                try:
                    with time_limit(plan.timeout):
                        connection.execute(self._frame().begin(SNAPSHOT))
                    with RawServerCursor(connection, "stream") as cursor:
                        cursor.execute(statement.text, statement.values(plan), binary=True)
                        yield from _batches(cursor, plan, batch_size)
                except psycopg.Error as error:
                    raise translate_error(error, self._tenant.schema) from None
        finally:
            self._streams.release()

    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
        written = [column for name in columns if (column := table.column(name))]
        place = self._words.place(table.name)

        def work(connection: Connection) -> int:
            return _copy(connection, place, written, rows)

        if not rows:
            return 0
        try:
            return self._link.write(self._frame(), work)
        except NoSuchTableError:
            self._version()  # raises if all tables were moved to another server
            raise

    def adopt(self, table: Table, batches: Callable[[], Iterable[RowBatch]], numbers: Mapping[str, int]) -> None:
        """Create a table with its rows in one transaction. JSONB and intervals come as text; serial columns continue
        after `numbers` and their largest value."""
        place = self._words.place(table.name)
        spans = [column.type.kind is Kind.INTERVAL for column in table.columns]

        def adopt(row: Sequence[Any]) -> list[Any]:
            return [read_interval(value) if span and value else value for value, span in zip(row, spans, strict=True)]

        def work(connection: Connection) -> None:
            self._create_table(connection, table)
            _copy(connection, place, table.columns, (adopt(row) for rows in batches() for row in rows))
            for column in table.columns:
                if column.serial:
                    connection.execute(
                        f"SELECT setval(pg_get_serial_sequence(%s, %s), last) FROM (SELECT greatest(%s::bigint, "
                        f"max({quote(column.name)})) AS last FROM {place}) AS _ WHERE last > 0".encode(),
                        [place, column.name, numbers.get(column.name, 0)],
                    )

        self._change(work)

    def numbers(self, table: str) -> dict[str, int]:
        place = self._words.place(table)
        serial = [column.name for column in self.tables()[table].columns if column.serial]
        sql = "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence(%s, %s)::regclass), 0)"

        def work(connection: Connection) -> dict[str, int]:
            rows = {name: connection.execute(sql, [place, name]).fetchone() for name in serial}
            return {name: int(row[0]) for name, row in rows.items() if row is not None}

        return self._link.read_directly(work)

    def explain(self, plan: StatementPlan) -> list[str]:
        statement = render(plan, self._tenant.schema)

        def work(connection: Connection) -> list[str]:
            cursor = RawCursor(connection)
            cursor.execute(b"EXPLAIN (COSTS OFF) " + statement.text, statement.values(plan))
            return [str(row[0])[:500] for row in cursor.fetchall()]

        with time_limit(plan.timeout):
            return self._link.read(self._frame(), work)

    def changes(self, table: str, columns: Sequence[str], since: int) -> TableChanges:
        return postgres_changes.changes(self._link, self._tenant, table, columns, since)

    def _frame(self) -> Frame:
        return Frame(self._tenant.schema, self._tenant.role)


def _collation(connection: Connection) -> str:
    """Return the collation that orders texts by code point, as SQLite does."""
    row = connection.execute("SELECT 1 FROM pg_collation WHERE collname = 'pg_c_utf8'").fetchone()
    return 'pg_catalog."pg_c_utf8"' if row else 'pg_catalog."C"'


def _all(connection: Connection, statements: Any) -> None:
    for statement in statements:
        connection.execute(statement.encode())


def _copy(connection: Connection, place: str, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> int:
    """Write rows with COPY; return how many."""
    names, kinds = ", ".join(quote(column.name) for column in columns), [NAMES[column.type.kind] for column in columns]
    with connection.cursor() as cursor:
        cursor.adapters.register_dumper(Array, VectorDumper)
        with cursor.copy(f"COPY {place} ({names}) FROM STDIN (FORMAT binary)".encode()) as copy:
            copy.set_types([kind.replace("[][]", "[]") for kind in kinds])
            for row in rows:
                copy.write_row([to_driver(value, kind) for value, kind in zip(row, kinds, strict=True)])
        return cursor.rowcount


def _types(cursor: Any, plan: StatementPlan) -> tuple[Type | None, ...]:
    """Return the result types from PostgreSQL; binding knows the depth of arrays, which it does not report."""
    found = [type_of(column.type_code) for column in cursor.description]
    bound = [kind for _, kind in plan.tree.meta.get("columns", ())]
    if len(bound) != len(found):
        return tuple(found)
    declared = [result_type(kind) for kind in bound]
    return tuple(declared[at] if declared[at] is None or is_array(kind) else found[at] for at, kind in enumerate(bound))


def _result(cursor: Any, plan: StatementPlan) -> Result:
    if cursor.description is None:
        return Result(row_count=max(0, cursor.rowcount))
    rows = fetch_rows(cursor, plan)
    return Result(tuple(column.name for column in cursor.description), _types(cursor, plan), rows, len(rows))


def _batches(cursor: Any, plan: StatementPlan, batch_size: int) -> Iterator[Result]:
    """Yield at least one batch, so that the columns of an empty result are known."""
    rows = fetch_batch(cursor, batch_size)
    names, types = tuple(column.name for column in cursor.description), _types(cursor, plan)
    while True:
        yield Result(names, types, rows, len(rows))
        rows = fetch_batch(cursor, batch_size)
        if not rows:
            return
