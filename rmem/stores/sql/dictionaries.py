"""The compression dictionaries of packed memories. A dictionary contains text that it was trained on, so it is replaced
when a person is forgotten or memories are encrypted: later writes use a new one, all packed rows are rewritten with it,
then the old ones are deleted."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import packing
from . import rows
from .connection import Connection

if TYPE_CHECKING:
    from ..base import Progress
    from .records import SqlRecords

log = logging.getLogger(__name__)
_BATCH = 500
_NEWEST = "SELECT id, substr(data, 1, 8) FROM dictionaries ORDER BY id DESC LIMIT 1"
_REPACK = f"UPDATE memories SET {', '.join(f'{name} = ?' for name in rows.BODY)} WHERE seq = ?"


def newest(connection: Connection) -> int:
    """Return the number of the current dictionary; 0 if there is none."""
    found = connection.execute("SELECT max(id) FROM dictionaries").fetchone()
    return 0 if found is None or found[0] is None else int(found[0])


def use_newest(store: SqlRecords, connection: Connection) -> None:
    """Use the newest dictionary of this transaction for packing."""
    found = connection.execute(_NEWEST).fetchone()
    number = 0 if found is None else packing.dictionary_number(bytes(found[1] or b""))
    sql = "SELECT data FROM dictionaries WHERE id = ?"
    store.codec.use_dictionary(number, lambda: bytes(connection.execute(sql, (found[0],)).fetchone()[0]))


def train(store: SqlRecords) -> bytes | None:
    """Train a dictionary on the newest unencrypted memories; None if they are too few or too different."""
    found = store.read(
        lambda connection: connection.execute(
            f"{rows.READ} WHERE m.key_version IS NULL ORDER BY m.seq DESC LIMIT ?", (packing.SAMPLES,)
        ).fetchall()
    )
    if len(found) < min(packing.TRAIN_FROM, packing.SAMPLES):
        return None
    memories = [rows.to_memory(row, store.codec) for row in found]
    return packing.train([(memory.text, memory.contents) for memory in memories])


def add(store: SqlRecords, data: bytes) -> None:
    """Use another dictionary from now on; none if it is empty."""
    store.write(lambda connection: connection.execute("INSERT INTO dictionaries (data) VALUES (?)", (data,)))


def replace(store: SqlRecords, on_progress: Progress | None = None) -> None:
    """Pack all memories again with a new dictionary, and delete the old ones."""
    old = store.read(newest)
    if not old:
        return
    add(store, train(store) or b"")
    number, done, last = store.read(_count), 0, 0
    while batch := store.write(partial(_repack, store, last)):
        done, last = done + len(batch), batch[-1]
        if on_progress is not None:
            on_progress(done, max(done, number))
    store.write(partial(_remove, store, old))


def _count(connection: Connection) -> int:
    """Count the packed rows."""
    return int(connection.execute("SELECT count(*) FROM memories WHERE level > 0").fetchone()[0])


def _repack(store: SqlRecords, last: int, connection: Connection) -> list[int]:
    """Pack a batch of rows after `last` with the newest dictionary; return their numbers."""
    use_newest(store, connection)
    sql = f"{store.dialect.read} WHERE m.seq > ? AND m.level > 0 ORDER BY m.seq LIMIT {_BATCH}"
    batch = connection.execute(sql, (last,)).fetchall()
    for row in batch:
        _pack(store, connection, row)
    return [row[0] for row in batch]


def _pack(store: SqlRecords, connection: Connection, row: tuple[Any, ...]) -> bool:
    memory = rows.readable(row, store.codec)
    if memory is None:
        return False
    connection.execute(_REPACK, (*rows.body_values(memory, store.codec, rows.seal_of(row)), row[0]))
    return True


def _remove(store: SqlRecords, old: int, connection: Connection) -> None:
    """Delete the old dictionaries, unless an unreadable row may need them."""
    use_newest(store, connection)
    known = connection.execute("SELECT data FROM dictionaries WHERE id <= ?", (old,)).fetchall()
    numbers = {packing.dictionary_number(data) for (data,) in known}
    held = connection.execute("SELECT seq, packed FROM memories WHERE packed IS NOT NULL").fetchall()
    for seq in [seq for seq, packed in held if packing.dictionary_of(packed) in numbers]:
        for row in connection.execute(f"{store.dialect.read} WHERE m.seq = ?", (seq,)).fetchall():
            if not _pack(store, connection, row):
                log.warning("a dictionary stays, because row %s, which cannot be read, may need it", seq)
                return
    connection.execute("DELETE FROM dictionaries WHERE id <= ?", (old,))
