"""The numbers of serial columns. None is given twice, even after a rollback."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
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


class SerialNumbers:
    """The numbers that the transaction under way gave."""

    def __init__(self) -> None:
        self.given: dict[str, int] = {}  # the last number of each column, "table/column"

    def begin(self) -> None:
        """Begin a transaction."""
        self.given = {}

    @contextmanager
    def numbering(self, connection: sqlite3.Connection, state: StatementState, physical: Physical) -> Iterator[None]:
        """Number the rows that a statement writes."""
        serial = [physical.columns[column.name] for column in physical.table.columns if column.serial]
        if not serial:
            yield
            return
        state.sequences = {f"{physical.id}/{name}": 0 for name in serial}
        for name, last in connection.execute(_READ, (physical.id,)):
            state.sequences[f"{physical.id}/{name}"] = last
        before = dict(state.sequences)
        try:
            yield
        finally:
            given = {key: last for key, last in state.sequences.items() if last != before.get(key)}
            self.given |= given
        state.inside = True
        _save(connection, given)

    def keep(self, connection: sqlite3.Connection, tables: Iterable[Physical]) -> None:
        """Save the numbers of the tables that are left after a rollback."""
        known = {str(physical.id) for physical in tables}
        _save(connection, {key: last for key, last in self.given.items() if key.partition("/")[0] in known})


def _save(connection: sqlite3.Connection, given: Mapping[str, int]) -> None:
    for key, last in given.items():
        identifier, name = key.split("/")
        connection.execute(_SAVE, (int(identifier), name, last))
