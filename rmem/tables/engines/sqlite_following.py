"""How a search index follows a table: new rows by their numbers, which only grow; others by the log of changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..catalog import ROW, Kind
from ..deadline import checking
from ..sql.types import NAMES
from .base import Changes
from .sqlite_compiled import Physical
from .sqlite_storage import answer

MAX_LOG = 200_000
"""Changes that are kept; an index that is further behind reads its table again."""
_AT_ONCE = 500
_CHANGE = 2**63 - 1  # a version is the table, the highest row, a mark, and the last change that were seen
_MARK = 1 << 63


def changes(connection: sqlite3.Connection, physical: Physical, columns: Sequence[str], since: int) -> Changes:
    newest = last(connection, "table_changes")
    version = (physical.id << 128) | (last(connection, physical.name) << 64) | _MARK | newest
    known_id, known_row, known_change = since >> 128, since >> 64 & (2**64 - 1), since & _CHANGE
    (first,) = connection.execute("SELECT min(n) FROM table_changes").fetchone()
    floor = newest if first is None else first - 1
    names = ", ".join([ROW, *(physical.columns[name] for name in columns)])
    if since == 0 or known_id != physical.id or known_change < floor:
        rows = connection.execute(f"SELECT {names} FROM {physical.name} ORDER BY {ROW}").fetchall()
        return _changes(physical, columns, version, [], rows, whole=True)
    logged = "SELECT DISTINCT row FROM table_changes WHERE table_id = ? AND n > ? AND row <= ?"
    gone = [row for (row,) in connection.execute(logged, (physical.id, known_change, known_row))]
    rows = []
    for start in range(0, len(gone), _AT_ONCE):
        part = gone[start : start + _AT_ONCE]
        places = ", ".join("?" * len(part))
        rows += connection.execute(f"SELECT {names} FROM {physical.name} WHERE {ROW} IN ({places})", part)
    newer = f"SELECT {names} FROM {physical.name} WHERE {ROW} > ? ORDER BY {ROW}"
    rows += connection.execute(newer, (known_row,)).fetchall()
    return _changes(physical, columns, version, gone, rows)


def _changes(
    physical: Physical,
    columns: Sequence[str],
    version: int,
    gone: list[int],
    found: list[tuple[Any, ...]],
    *,
    whole: bool = False,
) -> Changes:
    readers = []
    for name in columns:
        column = physical.table.column(name)
        assert column is not None
        readers.append(_array if column.type.kind is Kind.VECTOR else answer(NAMES[column.type.kind]))
    values = [
        tuple(item if item is None or read is None else read(item) for item, read in zip(row[1:], readers, strict=True))
        for row in checking(found)
    ]
    rows = np.array([row[0] for row in found], dtype=np.int64)
    return Changes(version, np.array(gone, dtype=np.int64), rows, values, whole)


def _array(stored: bytes) -> npt.NDArray[np.float32]:
    return np.frombuffer(stored, dtype="<f4")


def last(connection: sqlite3.Connection, name: str) -> int:
    """The last number that a table gave to a row."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0


def trim(connection: sqlite3.Connection) -> None:
    """Keep the log of changes short."""
    first, newest = connection.execute("SELECT min(n), max(n) FROM table_changes").fetchone()
    if first is not None and newest - first > MAX_LOG:
        connection.execute("DELETE FROM table_changes WHERE n < ?", (newest - MAX_LOG // 2,))
