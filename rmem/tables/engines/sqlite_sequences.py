"""The numbers of serial columns. None is given again, whichever rows are deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from .sqlite_functions import StatementState
from .sqlite_layout import Physical

_READ = 'SELECT "column", last FROM table_sequences WHERE table_id = ?'
_SAVE = (
    'INSERT INTO table_sequences (table_id, "column", last) VALUES (?, ?, ?) '
    'ON CONFLICT (table_id, "column") DO UPDATE SET last = max(last, excluded.last)'
)


def last_numbers(connection: sqlite3.Connection, physical: Physical) -> dict[str, int]:
    """Return the last number of each serial column of a table."""
    names = {stored: name for name, stored in physical.columns.items()}
    found = connection.execute(_READ, (physical.id,))
    return {names[stored]: last for stored, last in found if stored in names}


@contextmanager
def numbering(connection: sqlite3.Connection, state: StatementState, physical: Physical) -> Iterator[None]:
    """Number the rows that a statement writes."""
    serial = [physical.columns[column.name] for column in physical.table.columns if column.serial]
    if not serial:
        yield
        return
    before = dict.fromkeys(serial, 0) | dict(connection.execute(_READ, (physical.id,)).fetchall())
    state.sequences = dict(before)
    yield
    state.inside = True
    given = [(physical.id, name, last) for name, last in state.sequences.items() if last != before[name]]
    connection.executemany(_SAVE, given)
