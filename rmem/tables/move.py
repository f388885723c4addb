"""Copy the tables of an SQLite file or of another server into PostgreSQL, with keys, checks, references and indexes.
Each table is created and filled in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from graphlib import CycleError
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from ..errors import ConfigError, StoreError
from .catalog import Kind, Table, parents_first, quote_identifier
from .engines.postgres import PostgresEngine
from .engines.sqlite import SqliteEngine
from .workspace import Workspace

Progress = Callable[[int], None]

_BATCH = 1000
_AS_TEXT = (Kind.JSONB, Kind.INTERVAL)
"""What Python's values would round: numbers inside JSON, and months."""


class Checksum:
    """A checksum of rows that does not depend on their order."""

    def __init__(self) -> None:
        self._total = self.count = 0

    def add(self, rows: Iterable[Sequence[Any]]) -> Self:
        for row in rows:
            digest = blake2b(repr(tuple(row)).encode(errors="surrogatepass"), digest_size=16).digest()
            self._total = (self._total + int.from_bytes(digest, "big")) % (1 << 128)
            self.count += 1
        return self

    def __str__(self) -> str:
        return f"{self.count}-{self._total:032x}"


class _SourceTable(NamedTuple):
    """A table of the source, its number of rows, and whether the target has it."""

    table: Table
    rows: int
    there: bool


def move(path: Path, url: str, tenant: str) -> TableMove | None:
    """Move the tables of a file to one tenant of a database; None if the file has no tables."""
    old = SqliteEngine(path)
    if not old.tables():
        old.close()
        return None
    try:
        new = PostgresEngine(url, tenant=tenant)
    except BaseException:
        old.close()
        raise
    return TableMove(old, new)


class TableMove:
    """Copy tables. Only `copy` writes. Existing tables are kept, unless `replace`: then those that differ are dropped
    first."""

    def __init__(self, old: SqliteEngine | PostgresEngine, new: PostgresEngine, *, replace: bool = False) -> None:
        self._old, self._new = old, new
        self._replaced: list[Table] | None = [] if replace else None
        self._source, self._target = Workspace(old), Workspace(new)
        try:
            tables = self._source.tables()
            if self._replaced is not None:
                known = {table.name for table in tables}
                self._replaced += [table for table in self._target.tables() if table.name not in known]
            self._left = [self._inspect(table) for table in parents_first(table for table in tables if not table.view)]
            self._views = [table for table in tables if table.view and not self._has_view(table)]
        except CycleError as error:
            self.close()
            raise ConfigError(
                f"the tables {', '.join(error.args[1])} refer to each other in a ring, which cannot be copied; "
                "drop one of the references and add it again afterwards"
            ) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._source.close()
        self._target.close()

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of rows of each source table."""
        return {left.table.name: left.rows for left in self._left}

    def copy(self, on_progress: Progress) -> dict[str, str]:
        """Copy missing tables; return the checksum of each, verified on both sides."""
        done, sums = 0, {}
        self._drop_replaced()
        for left in self._left:
            name = left.table.name
            if left.there:
                sums[name] = str(self._sum(self._source, left.table))
            else:
                sums[name] = self._copy_table(left.table, lambda count, done=done: on_progress(done + count))  # type: ignore[misc]
            done += left.rows
            on_progress(done)
        for view in self._views:
            self._new.create_table(view)
        return sums

    def _drop_replaced(self) -> None:
        """Drop what differs: views first, and tables before those that they reference."""
        gone = self._replaced or []
        names = {table.name for table in gone}
        referring = [t for t in self._target.tables() if names & {other.table for other in t.references}]
        both = {table.name: table for table in (*gone, *referring) if not table.view}
        self._left = [left._replace(there=left.there and left.table.name not in both) for left in self._left]
        for table in [*(other for other in gone if other.view), *reversed(parents_first(both.values()))]:
            self._new.drop_table(table.name)

    def _inspect(self, table: Table) -> _SourceTable:
        (row,) = self._source.query(f"SELECT count(*) FROM {quote_identifier(table.name)}").rows
        there = self._new.tables().get(table.name)
        if there is not None and (
            there != table or str(self._sum(self._source, table)) != str(self._sum(self._target, table))
        ):
            if self._replaced is not None:
                self._replaced.append(there)
                return _SourceTable(table, int(row[0]), False)
            raise ConfigError(
                f"the target has a table {table.name!r} with other contents; nothing was written. Choose another "
                "database or tenant, as in ?tenant=new, or drop that table"
            )
        return _SourceTable(table, int(row[0]), there is not None)

    def _has_view(self, view: Table) -> bool:
        there = self._new.tables().get(view.name)
        if there is None or there == view:
            return there is not None
        if self._replaced is None:
            raise ConfigError(f"the target has something else called {view.name!r}; nothing was written")
        self._replaced.append(there)
        return False

    def _copy_table(self, table: Table, on_progress: Progress) -> str:
        read = Checksum()

        def batches() -> Iterator[list[tuple[Any, ...]]]:
            nonlocal read
            read = Checksum()  # a transaction that is repeated begins anew
            for rows in self._rows(self._source, table):
                read.add(_hashable_rows(table, rows))
                yield rows
                on_progress(read.count)

        self._new.adopt(table, batches, self._old.numbers(table.name))
        written = self._sum(self._target, table)
        if str(written) != str(read):
            self._new.drop_table(table.name)
            raise StoreError(
                f"table {table.name!r} did not arrive as it is ({written.count:,} of {read.count:,} rows, or other "
                "values); it was taken away again, and the source is as it was"
            )
        return str(read)

    def _sum(self, side: Workspace, table: Table) -> Checksum:
        return Checksum().add(row for rows in self._rows(side, table) for row in _hashable_rows(table, rows))

    @staticmethod
    def _rows(side: Workspace, table: Table) -> Iterator[list[tuple[Any, ...]]]:
        columns = ", ".join(
            f"{quote_identifier(column.name)}::text" if column.type.kind in _AS_TEXT else quote_identifier(column.name)
            for column in table.columns
        )
        for result in side.stream(f"SELECT {columns} FROM {quote_identifier(table.name)}", batch_size=_BATCH):
            yield result.rows


def _hashable_rows(table: Table, rows: list[tuple[Any, ...]]) -> Iterable[Sequence[Any]]:
    """Convert rows for the checksum; vectors as bytes, because formatting their numbers would take most of the time."""
    vectors = [at for at, column in enumerate(table.columns) if column.type.kind in (Kind.VECTOR, Kind.VECTORS)]
    if not vectors:
        return rows
    counted = [list(row) for row in rows]
    for row in counted:
        for at in vectors:
            if row[at] is not None:
                array = np.asarray(row[at], np.float32)
                row[at] = (array.shape, array.tobytes()) if array.size else ()
    return counted
