"""Replace the vectors, or the terms, of every row while other processes use the store.

New vectors are staged beside the old ones, batch by batch, and replace them in one transaction at the end: a store
never holds vectors of two embedders, and an interrupted run continues where it stopped."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import StoreCorruptError
from ...facts import VERSION as FACTS
from ...facts import facts_of
from ...index.analyser import VERSION as ANALYSER
from ..base import Progress
from ..indexed import Derived, derive
from ..packing import quantize_vector, quantized_bytes
from . import encrypted_rows, facts, rows
from .connection import Connection

if TYPE_CHECKING:
    from ...embed.state import MemoryVectors
    from .records import SqlRecords
    from .sqlite import SqliteRecordStore

log = logging.getLogger(__name__)


_BATCH = 256
_PASSES = 10
_WAITING = (  # not staged yet, or in another tier since, where vectors are shorter or longer
    "SELECT m.seq, m.text, m.contents, m.packed, m.level, m.id, m.sealed, m.key_version, m.vector IS NOT NULL "
    "FROM memories m LEFT JOIN staged s ON s.seq = m.seq WHERE m.seq > ? AND (s.seq IS NULL OR "
    "length(s.vector) <> CASE m.level WHEN 0 THEN ? WHEN 1 THEN ? ELSE ? END) ORDER BY m.seq LIMIT ?"
)
_REWRITE = (
    f"UPDATE memories SET {', '.join(f'{name} = ?' for name in rows.DERIVED)} WHERE seq = ? "
    f"AND key_version IS ? AND NOT ({' AND '.join(f'{name} IS ?' for name in rows.DERIVED)})"
)

_UNCHANGED = "SELECT 1 FROM memories WHERE seq = ? AND key_version IS ?"


def reembed(store: SqlRecords, vectors: MemoryVectors, spec: str | None, on_progress: Progress | None = None) -> int:
    """Replace all vectors; return how many rows were embedded by this call."""
    total = _count(store, "memories")
    store.write(lambda connection: _begin(connection, store, vectors.embedder.name))
    embedded = 0
    for _ in range(_PASSES):  # rows that are added or moved meanwhile; the last few are left to _finish
        fresh = _stage_waiting(store, vectors, total, on_progress)
        embedded += fresh
        if fresh <= _BATCH:
            break
    store.before_reembed()
    return embedded + store.write(lambda connection: _finish(connection, store, vectors, spec))


def _stage_waiting(store: SqlRecords, vectors: MemoryVectors, total: int, on_progress: Progress | None) -> int:
    """Stage the vectors of all rows without one, batch by batch; return how many."""
    done, last = 0, 0
    while True:
        batch = store.read(lambda connection, last=last: _waiting(connection, vectors, last))  # type: ignore[misc]
        if on_progress is not None:
            on_progress(min(_count(store, "staged"), total), total)
        if not batch:
            return done
        staged = _embedded(store, vectors, batch)
        store.write(lambda connection, staged=staged: _stage(connection, staged))  # type: ignore[misc]
        done += len(batch)
        last = batch[-1][0]


def _waiting(connection: Connection, vectors: MemoryVectors, last: int) -> list[tuple[Any, ...]]:
    """Return the next rows behind `last` that need a vector."""
    sizes = (quantized_bytes(vectors.embedder.dimension, level) for level in range(3))
    return connection.execute(_WAITING, (last, *sizes, _BATCH)).fetchall()


def _count(store: SqlRecords, table: str) -> int:
    (number,) = store.read(lambda connection: connection.execute(f"SELECT count(*) FROM {table}").fetchone())
    return int(number)


def _embedded(
    store: SqlRecords, vectors: MemoryVectors, batch: Sequence[tuple[Any, ...]]
) -> list[tuple[int, bytes | None]]:
    """Return rows for `staged`: the vectors of a batch, shortened as the memories are. Encrypted memories that have
    none get none."""
    staged: list[tuple[int, bytes | None]] = []
    bodies, waiting = [], []
    for seq, text, contents, packed, level, memory_id, sealed, version, has_vector in batch:
        if sealed is not None and not has_vector:
            staged.append((seq, None))
            continue
        opened = None if sealed is None else store.vault.open(memory_id, sealed, version)
        try:
            bodies.append(rows.body_of(text, contents, packed, store.codec, opened))
        except (StoreCorruptError, ValueError, TypeError, LookupError) as error:
            log.warning("memory %r is damaged and gets no vector: %s", memory_id, error)
            staged.append((seq, None))
            continue
        waiting.append((seq, level))
    for (seq, level), vector in zip(waiting, vectors.of(bodies) if bodies else (), strict=True):
        staged.append((seq, rows.stored_vector(quantize_vector(vector, level), level) if vector.any() else None))
    return staged


def _begin(connection: Connection, store: SqlRecords, name: str) -> None:
    """Delete what an interrupted run has staged, unless it was for the same embedder."""
    target = connection.execute("SELECT value FROM notes WHERE key = 'reembedding'").fetchone()
    if target is None or target[0] != name:
        connection.execute("DELETE FROM staged")
        connection.execute(store.dialect.set_meta, ("reembedding", name))


def _stage(connection: Connection, staged: Sequence[tuple[int, bytes | None]]) -> None:
    connection.executemany("DELETE FROM staged WHERE seq = ?", [(seq,) for seq, _ in staged])
    connection.executemany("INSERT INTO staged VALUES (?, ?)", staged)


def _finish(connection: Connection, store: SqlRecords, vectors: MemoryVectors, spec: str | None) -> int:
    """Embed the remaining rows and replace all vectors, in the caller's transaction."""
    late, last = 0, 0
    while batch := _waiting(connection, vectors, last):
        _stage(connection, _embedded(store, vectors, batch))
        late += len(batch)
        last = batch[-1][0]
    connection.execute("UPDATE memories SET vector = (SELECT vector FROM staged WHERE staged.seq = memories.seq)")
    connection.execute("DELETE FROM staged")
    connection.execute("DELETE FROM notes WHERE key IN ('reembedding', 'embedder_spec')")
    facts = {"embedder": vectors.embedder.name, "dimension": str(vectors.embedder.dimension)}
    facts |= {} if spec is None else {"embedder_spec": spec}
    connection.executemany(store.dialect.set_meta, list(facts.items()))
    store.on_rows_rewritten(connection)
    return late


def reanalyse(store: SqliteRecordStore, on_progress: Progress | None = None) -> int:
    """Derive the terms, attribute hashes and flags of all rows again; return how many rows changed."""
    with store.connection() as connection:
        (total,) = connection.execute("SELECT count(*) FROM memories").fetchone()
    changed = seen = last = 0
    while True:
        with store.connection() as connection:
            batch = connection.execute(f"{rows.READ} WHERE m.seq > ? ORDER BY m.seq LIMIT ?", (last, _BATCH)).fetchall()
        if not batch:
            break
        derived = [parts for row in batch if (parts := _derived(store, row)) is not None]
        changed += store.write(lambda connection, derived=derived: _rewrite(connection, derived))  # type: ignore[misc]
        seen += len(batch)
        last = batch[-1][0]
        if on_progress is not None:
            on_progress(min(seen, total), total)

    def finish(connection: sqlite3.Connection) -> None:
        connection.executemany(store.dialect.set_meta, [("analyser", str(ANALYSER)), ("facts", str(FACTS))])
        if changed:
            store.on_rows_rewritten(connection)

    store.write(finish)
    return changed


class _Row(NamedTuple):
    """The derived data of a row, and the version of its keys."""

    seq: int
    version: int | None
    derived: Derived
    facts: list[tuple[Any, ...]]


def _derived(store: SqliteRecordStore, row: tuple[Any, ...]) -> _Row | None:
    """Derive everything from a row again; None if it cannot be decrypted."""
    memory = rows.readable(row, store.codec)
    if memory is None:
        return None
    parts, seal = derive(memory, facts_of(memory)), rows.seal_of(row)
    version = None if seal is None else seal.version
    found = list(facts.to_rows(row[0], memory, parts.facts, store.vault, version))
    return _Row(row[0], version, parts if seal is None else encrypted_rows.blind(parts, seal, store.vault), found)


def _rewrite(connection: sqlite3.Connection, derived: Sequence[_Row]) -> int:
    """Write what differs; skip rows that were changed or removed meanwhile."""
    changed = 0
    for row in derived:
        values = rows.derived_values(row.derived)
        changed += connection.execute(_REWRITE, (*values, row.seq, row.version, *values)).rowcount
        if connection.execute(_UNCHANGED, (row.seq, row.version)).fetchone():
            facts.replace(connection, row.seq, row.facts)
    return changed
