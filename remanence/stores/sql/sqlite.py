"""The embedded store: one SQLite file. The rows are the truth; the recall index is derived from them, held in
memory, cached in the file as segments, and follows other processes' writes by `seq` and by the change log."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from ... import checks, receipts
from ...crypto.encryption import Encryption
from ...errors import StoreError
from ...index.vocabulary import WordVectors
from ...models import Memory
from ..base import StoreStats
from ..indexed import Derived, derive, index_row, new_id
from . import audit, cache, inserts, rows
from . import keys as data_keys
from .connection import Connection
from .file import DURABILITY, SqliteFile
from .receipts import put_once
from .records import Dialect, SqlRecords
from .reembed import new_generation
from .sealing import Seal
from .writer import GroupWriter

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_READ_AHEAD = 8192  # rows read into the index at a time
_BULK = 256  # memories written together from which on a writer looks after its own index

# A row behind the last one, if its id is free and the notes of its kind are what they were.
_INSERT_ONE = (
    f"INSERT INTO memories (seq, born, {', '.join(rows.MEMORY + rows.DERIVED)}) "
    f"SELECT next.seq, next.seq, {', '.join('?' * len(rows.MEMORY + rows.DERIVED))} "
    "FROM (SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'memories'), 0) + 1 AS seq) AS next WHERE "
    + " AND ".join(f"(SELECT value FROM notes WHERE key = '{key}') IS ?" for key in rows.KIND)
    + " ON CONFLICT (id) DO NOTHING"
)


class SqliteRecordStore(SqlRecords):
    """`SqliteRecordStore("memories.db")`. `durability="normal"` skips the fsync of each commit: a power cut may
    then lose the newest memories, a crash of the process still loses none. `encryption` encrypts what is written from
    now on; None takes the master key of the environment, if there is one, and False none."""

    dialect = Dialect(
        touch="INSERT INTO access (born, last, count) SELECT born, ?, ? FROM memories WHERE id = ? "
        "ON CONFLICT (born) DO UPDATE SET last = max(last, excluded.last), count = count + excluded.count",
        note="INSERT INTO notes VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )

    def __init__(
        self,
        path: str | Path,
        *,
        durability: str = "full",
        busy_timeout: float = 30.0,
        word_vectors: WordVectors | None = None,
        encryption: Encryption | Literal[False] | None = None,
    ) -> None:
        super().__init__(word_vectors, encryption)
        checks.one_of("durability", durability, list(DURABILITY))
        self.path = Path(path)
        self._file = SqliteFile(self.path, durability, checks.number("busy_timeout", busy_timeout, low=0))
        self._writer = GroupWriter(self._file)
        self._seen = _State(0, 0, 0)
        self._loaded = False
        self._distrusted: int | None = None
        self._unsettled = 0  # rows behind the last segment, as far as we know

    # Writing

    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        if not memories:
            return []
        memories = [memory.copied() for memory in memories]
        self.check_vectors(memories)
        derived = [derive(memory) for memory in memories]
        if receipts.current() is not None:
            kept = put_once(self.write, lambda connection: self.insert(connection, memories, derived)[0], memories)
        elif len(memories) == 1 and self._put_one(memories[0], derived[0]):
            kept = memories
        elif len(memories) < _BULK:
            kept = self.write(lambda connection: self.insert(connection, memories, derived))[0]
        else:
            kept = self._put_many(memories, derived)
        threshold = cache.SETTLE_FROM if len(memories) < _BULK else cache.SETTLE_BULK
        self._unsettled += len(memories)
        if self._unsettled >= threshold or self._unsettled == len(memories):
            self._settle_if_possible(threshold)
        return kept

    def _put_one(self, memory: Memory, derived: Derived) -> bool:
        """Write a new memory of the kind that the last one was, as agents store them one by one; False for others."""
        vector, sound = memory.embeddings.full_vector, self._sound
        if sound is None or sound[1:] != (self.owner, None if vector is None else vector.size):
            return False
        if memory.memory_id or memory.step_number < 0 or self.encryption is not None:
            return False
        memory.memory_id = new_id(memory)  # nearly always free
        values = *rows.memory_values(memory, self.codec), *rows.derived_values(derived), *map(sound[0].get, rows.KIND)
        touched = bool(self.touches)

        def work(connection: sqlite3.Connection) -> int:
            if touched:
                self.write_touched(connection)
            return connection.execute(_INSERT_ONE, values).rowcount

        if self._writer.run(work, single=not touched):
            return True
        memory.memory_id = ""
        return False

    def _put_many(self, memories: Sequence[Memory], derived: Sequence[Derived]) -> list[Memory]:
        """Write memories, and hand them to an index that is up to date: reading them back costs more."""

        def work(connection: sqlite3.Connection) -> tuple[_State, list[Memory], Sequence[Derived], _State]:
            before = _state(connection)
            return before, *self.insert(connection, memories, derived), _state(connection)

        before, kept, parts, after = self.write(work)
        with self.index.lock:
            if not self._loaded and before.row == 0:  # the file was empty, as the index is
                self._loaded, self._seen = True, before
            if self._loaded and self._seen == before and after.change == before.change:
                given = enumerate(zip(kept, parts, strict=True), before.row + 1)
                self.index.extend([index_row(memory, part, seq, born=seq) for seq, (memory, part) in given])
                self.use_keys(self.index)
                self._seen = after
        return kept

    def scrub(self) -> None:
        """Make sure that what was removed is nowhere in the file: not in a segment's words, not in the log of pages."""
        with self._file.reading() as connection:
            covered = cache.covering_changes(connection)
        if covered is not None:
            self.write(lambda connection: cache.drop_from(connection, covered))
            self.settle(1)
        self._writer.between(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
        self._unscrubbed = False

    def broken_audit(self) -> list[int]:
        """The numbers of entries of the audit log that are not as they were written."""
        with self._file.reading() as connection:
            found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'audit'").fetchone()
            return list(audit.broken(connection, 0 if found is None else found[0]))

    def flush(self) -> None:
        """Write the access counts that wait; a read-only file keeps none."""
        if self.touches and not self._file.read_only:
            self.write(self.write_touched)

    def append(
        self, connection: Connection, memories: Sequence[Memory], derived: Sequence[Derived], seal: Seal | None
    ) -> bool:
        (last,) = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'memories'").fetchone() or (0,)
        return inserts.append(connection, memories, derived, self.codec, seal, last)

    # Reading

    def stats(self) -> StoreStats:
        stats = self._index_stats()
        with self._file.reading() as connection:
            (stats.segments,) = connection.execute("SELECT count(*) FROM segments").fetchone()
        stats.bytes = sum(part.stat().st_size for part in (self.path, Path(f"{self.path}-wal")) if part.exists())
        return stats

    # The index

    def refresh(self) -> None:
        with self._file.reading() as connection:
            if self._loaded and self._seen == _state(connection):
                return
        with self.index.lock, self._file.snapshot() as connection:
            self._follow(connection)
        if self._distrusted is not None:
            self._settle_if_possible(1)

    def _follow(self, connection: sqlite3.Connection) -> None:
        """Take in the rows and removals since the last look; start anew if the file was re-embedded."""
        now = _state(connection)
        self.vault.follow(data_keys.read(connection))
        if not self._loaded or now.generation != self._seen.generation:
            self.index.clear()
            loaded = cache.load(connection, self.index)
            self._distrusted = loaded.distrusted
            self._seen = _State(self.index.last_seq, loaded.changes, now.generation)
            self._loaded = True
        self.use_keys(self.index)
        known = connection.execute("SELECT value FROM notes WHERE key = 'dimension'").fetchone()
        dimension = None if known is None else int(known[0])
        last = self._seen.row
        while last < now.row:
            batch = connection.execute(rows.READ_INDEX, (last, now.row, _READ_AHEAD)).fetchall()
            self.index.extend([rows.to_index_row(row, dimension) for row in batch])
            last = batch[-1][0] if len(batch) == _READ_AHEAD else now.row
        since = (self._seen.change,)
        moved = connection.execute("SELECT seq, tier FROM changes WHERE n > ? AND tier IS NOT NULL ORDER BY n", since)
        if found := moved.fetchall():
            self.index.columns.move(*zip(*found, strict=True))
        for (seq,) in connection.execute("SELECT seq FROM changes WHERE n > ? AND tier IS NULL ORDER BY n", since):
            self.index.kill(seq)
        self._seen = now

    def settle(self, threshold: int = cache.SETTLE_FROM) -> None:
        """Pack the rows behind the last good segment into a new one, if there are enough of them."""
        if self._file.read_only:
            return
        distrusted, self._distrusted = self._distrusted, None
        if distrusted is not None:
            self.write(lambda connection: cache.drop_from(connection, distrusted))
        with self._file.reading() as connection:
            self._unsettled = cache.uncovered(connection)
        if self._unsettled < threshold:
            return
        self.refresh()
        with self.index.lock, self._file.reading() as connection:
            segment, generation = cache.next_segment(connection, self.index, self._seen.change), self._seen.generation

        def save(connection: sqlite3.Connection) -> None:
            if segment is not None and _state(connection).generation == generation:
                cache.save(connection, segment)

        if segment is not None:
            self.write(save)

    def tidy(self) -> None:
        """Pack what the last bulk left behind, or every new process would read it row by row."""
        self._settle_if_possible(cache.SETTLE_FROM)

    def _settle_if_possible(self, threshold: int) -> None:
        """The same where it is not what the caller asked for: a cache that cannot be written harms nobody."""
        try:
            self.settle(threshold)
        except StoreError as error:
            log.warning("no new segment was written: %s", error)

    def renew(self, connection: Connection) -> None:
        assert isinstance(connection, sqlite3.Connection)
        cache.clear(connection)
        new_generation(connection)

    def rebuild(self) -> None:
        """Throw the segments away and derive the index from the rows again."""
        self.write(cache.clear)
        with self.index.lock:
            self._loaded = False
        self.refresh()
        self.settle(1)

    def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        with self._file.reading() as connection:
            return work(connection)

    def write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do `work` in a transaction of its own (or one shared with other threads); durable when this returns."""
        return self._writer.run(work)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A reading connection, for checks and backups."""
        with self._file.reading() as connection:
            yield connection

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            self._file.hurry()  # closing after a recall must not wait for another process's writes
            self.flush()
            if self._unscrubbed:
                self.scrub()
        except StoreError as error:
            log.info("not everything was tidied up: %s", error)
        self._writer.close()


class _State(NamedTuple):
    """How far a file has come: its last row, its last change, and how often it was re-embedded."""

    row: int
    change: int
    generation: int


def _state(connection: sqlite3.Connection) -> _State:
    counters = dict(connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    (generation,) = connection.execute("PRAGMA user_version").fetchone()
    return _State(counters.get("memories", 0), counters.get("changes", 0), generation)
