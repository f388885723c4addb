"""Numbers for keys such as `exp_7`: each is given once, also after deletions and to many processes."""

from __future__ import annotations

from collections import defaultdict

from ..forks import new_lock
from ..stores.base import RecordStore
from ..stores.sql.connection import Connection
from ..stores.sql.records import SqlRecords


class Numbers:
    """Counts in this process, for a store that ends with it."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._next: dict[str, int] = defaultdict(int)
        self._lock = new_lock()

    def take(self, stem: str) -> int:
        """The next number behind `stem` that no memory has, nor ever had."""
        with self._lock:
            number = self._next[stem]
            while self._store.get(f"{stem}{number}") is not None:  # somebody chose that id
                number += 1
            self._next[stem] = number + 1
            return number


class KeptNumbers(Numbers):
    """Counts in the store itself, one transaction each, for all processes that share it."""

    def __init__(self, store: SqlRecords) -> None:
        super().__init__(store)
        self._records = store

    def take(self, stem: str) -> int:
        note = f"next {stem}"

        def work(connection: Connection) -> int:
            found = connection.execute("SELECT value FROM notes WHERE key = ?", (note,)).fetchone()
            number = 0 if found is None else int(found[0])
            while connection.execute("SELECT 1 FROM memories WHERE id = ?", (f"{stem}{number}",)).fetchone():
                number += 1
            connection.execute(self._records.dialect.note, (note, str(number + 1)))
            return number

        return self._records.write(work)


def numbers_for(store: RecordStore) -> Numbers:
    return KeptNumbers(store) if isinstance(store, SqlRecords) else Numbers(store)
