"""What changed in a table since a search index read it: new rows by their ascending numbers, other changes from a
log."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..catalog import ROW, Kind
from ..deadline import check_each
from ..sql.expression_types import NAMES
from .base import NO_ROWS, TableChanges
from .sqlite_storage import Physical, result_reader

MAX_LOG = 200_000
"""Changes that are kept; an index that is further behind reads its table again."""
_PAGE = 16_384  # rows that are returned at a time
_AT_ONCE = 500
_MARK = 1 << 63
_CUT = 0  # in the place of a row: the log of its table was cut up to here


class Version(NamedTuple):
    """The state that an index knows: the catalogue version, the table, the highest row and the last change."""

    catalogue: int
    table: int
    row: int
    change: int

    def number(self) -> int:
        return ((self.catalogue << 64 | self.table) << 64 | self.row) << 64 | _MARK | self.change

    @classmethod
    def of(cls, number: int) -> Version:
        word = 2**64 - 1
        return cls(number >> 192, number >> 128 & word, number >> 64 & word, number & (_MARK - 1))


def changes(
    connection: sqlite3.Connection, catalogue: int, physical: Physical, columns: Sequence[str], since: int
) -> TableChanges:
    newest = last(connection, "table_changes")
    if since == Version(catalogue, physical.id, last(connection, physical.name), newest).number():
        return TableChanges(since, NO_ROWS, NO_ROWS, [])
    known = Version.of(since)
    names = ", ".join([ROW, *(physical.columns[name] for name in columns)])
    whole = since == 0 or known.table != physical.id or known.change < floor_of(connection, physical.id)
    gone: list[int] = []
    rows: list[tuple[Any, ...]] = []
    if not whole:
        logged = "SELECT n, row FROM table_changes WHERE table_id = ? AND n > ? AND row <= ? ORDER BY n LIMIT ?"
        found = connection.execute(logged, (physical.id, known.change, known.row, _PAGE)).fetchall()
        gone = sorted({row for _, row in found})
        rows = select_rows(connection, physical, names, gone)
        if len(found) == _PAGE:
            version = Version(catalogue, physical.id, known.row, found[-1][0])
            return _changes(physical, columns, version, gone, rows, more=True)
    newer = f"SELECT {names} FROM {physical.name} WHERE {ROW} > ? ORDER BY {ROW} LIMIT ?"
    fresh = connection.execute(newer, (0 if whole else known.row, _PAGE)).fetchall()
    more = len(fresh) == _PAGE
    row = fresh[-1][0] if more else last(connection, physical.name)
    version = Version(catalogue, physical.id, row, newest)
    return _changes(physical, columns, version, gone, rows + fresh, whole=whole, more=more)


def segment_changes(
    connection: sqlite3.Connection, physical: Physical, column: str, span: tuple[int, int, int, int]
) -> TableChanges:
    """Return what happened to the rows of a segment since its last change."""
    first, last_row, _, change = span
    logged = "SELECT DISTINCT row FROM table_changes WHERE table_id = ? AND n > ? AND row BETWEEN ? AND ? ORDER BY row"
    gone = [row for (row,) in connection.execute(logged, (physical.id, change, first, last_row))]
    rows = select_rows(connection, physical, f"{ROW}, {physical.columns[column]}", gone)
    return _changes(physical, [column], Version(0, physical.id, last_row, change), gone, rows)


def select_rows(
    connection: sqlite3.Connection, physical: Physical, names: str, rows: Sequence[int]
) -> list[tuple[Any, ...]]:
    """Return some columns of some rows, without deleted ones."""
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(rows), _AT_ONCE):
        part = rows[start : start + _AT_ONCE]
        places = ", ".join("?" * len(part))
        found += connection.execute(f"SELECT {names} FROM {physical.name} WHERE {ROW} IN ({places})", part)
    return found


def floor_of(connection: sqlite3.Connection, table: int) -> int:
    """Return the change up to which the log of a table was cut."""
    first = "SELECT n, row FROM table_changes WHERE table_id = ? ORDER BY n LIMIT 1"
    n, row = connection.execute(first, (table,)).fetchone() or (0, None)
    return n if row == _CUT else 0


def _changes(
    physical: Physical,
    columns: Sequence[str],
    version: Version,
    gone: list[int],
    found: list[tuple[Any, ...]],
    *,
    whole: bool = False,
    more: bool = False,
) -> TableChanges:
    readers = []
    for name in columns:
        column = physical.table.column(name)
        assert column is not None
        readers.append(_array if column.type.kind is Kind.VECTOR else result_reader(NAMES[column.type.kind]))
    values = [
        tuple(item if item is None or read is None else read(item) for item, read in zip(row[1:], readers, strict=True))
        for row in check_each(found)
    ]
    rows = np.array([row[0] for row in found], dtype=np.int64)
    return TableChanges(version.number(), np.array(gone, dtype=np.int64), rows, values, whole, more)


def _array(stored: bytes) -> npt.NDArray[np.float32]:
    return np.frombuffer(stored, dtype="<f4")


def last(connection: sqlite3.Connection, name: str) -> int:
    """Return the last row number of a table."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0


def trim(connection: sqlite3.Connection) -> None:
    """Shorten the log of changes. The last removed entry of each table stays and marks where its log begins, so that
    one table does not affect the indexes of another."""
    oldest = f"SELECT n FROM table_changes WHERE row != {_CUT} ORDER BY n LIMIT 1"
    (first,) = connection.execute(oldest).fetchone() or (0,)
    newest = last(connection, "table_changes")
    if first and newest - first > MAX_LOG:
        cut = newest - MAX_LOG // 2
        lasts = "SELECT max(n) FROM table_changes WHERE n < ?1 GROUP BY table_id"
        connection.execute(f"DELETE FROM table_changes WHERE n < ?1 AND n NOT IN ({lasts})", (cut,))
        connection.execute(f"UPDATE table_changes SET row = {_CUT} WHERE n < ?", (cut,))
