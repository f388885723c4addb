"""The store in one SQLite file. The recall index is derived from the rows, held in memory, cached in the file as
segments, and updated with writes of other processes by `seq` and by the change log."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import Literal, TypeVar

from ... import checks, receipts
from ...crypto.encryption import Encryption
from ...errors import StoreError
from ...filters import Filter
from ...forks import Forking, watch
from ...index import segments
from ...index.filtered_rows import FilteredRows
from ...index.vocabulary import WordVectors
from ...models import Memory
from .. import migrations
from ..base import Progress, StoreStats
from ..indexed import Derived, derive_with_facts, index_row
from ..vectors import check_vectors
from . import audit, cache, dictionaries, facts, inserts, reembed, rows
from .audit_chain import AuditChain
from .base import StoreDialect
from .connection import Connection
from .encrypted_rows import Seal
from .file import DURABILITY, SqliteFile, is_undecodable, lenient
from .receipts import put_once
from .records import SqlRecords
from .sqlite_index import FileFollower, FileState, read_state
from .writer import GroupWriter

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_BULK = 256  # memories in one write from which on the writer updates its own index

_APPENDED = {name: f"?{at}" for at, name in enumerate(rows.MEMORY + rows.DERIVED, 1)}
# Append a row with the agent's next step, unless one is given, and the id of `new_id`, if that is unused, the vector
# metadata is unchanged and nothing is encrypted.
_INSERT_ONE = (
    f"INSERT INTO memories (seq, born, {', '.join(_APPENDED)}) "
    f"SELECT next.seq, next.seq, {', '.join((_APPENDED | {'id': 'next.id', 'step': 'next.step'}).values())} FROM "
    f"(SELECT seq, step, {{agent}} || '-' || step || '-' || CAST({{time}} AS INTEGER) AS id FROM "
    "(SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'memories'), 0) + 1 AS seq, "
    f"CASE WHEN {{step}} >= 0 THEN {{step}} ELSE ifnull(({inserts.LAST_STEP.replace('?', '{agent}')}), -1) + 1 END "
    "AS step)) AS next WHERE typeof(next.step) = 'integer' AND "
    + " AND ".join(f"(SELECT value FROM notes WHERE key = '{key}') IS ?" for key in rows.KIND)
    + " AND NOT EXISTS (SELECT 1 FROM keys) ON CONFLICT (id) DO NOTHING RETURNING seq, step, id"
).format_map(_APPENDED)


class SqliteRecordStore(SqlRecords, Forking):
    """`SqliteRecordStore("memories.db")`. `durability="normal"` skips the fsync of each commit: a power cut may
    then lose the newest memories, a crash of the process still loses none. `encryption` encrypts what is written from
    now on; None takes the master key of the environment, if there is one, and False none."""

    dialect = StoreDialect(
        touch="INSERT INTO access (born, last, count) SELECT born, ?, ? FROM memories WHERE id = ? "
        "ON CONFLICT (born) DO UPDATE SET last = max(last, excluded.last), count = count + excluded.count",
        set_meta="INSERT INTO notes VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )

    changes_kept = cache.CHANGES_KEPT

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
        self.audit_chain = AuditChain.beside(self.path)
        self._file = SqliteFile(self.path, durability, checks.number("busy_timeout", busy_timeout, low=0))
        self._writer = GroupWriter(self._file, self.touches, self.dialect.touch)
        self._snapshot = _Snapshot()
        self._follower = FileFollower(
            self.index, self.vault, self.codec, self.use_keys, self._in_snapshot, self.vectors_at
        )
        self._unpacked_rows: int | None = None  # rows and changes after the last segment; None before the first write
        watch(self)

    # Writing

    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        if not memories:
            return []
        memories = [memory.copied() for memory in memories]
        check_vectors(memories)
        derived = derive_with_facts(memories)
        if receipts.current() is not None:
            put = self._repeatable(memories, derived)
            kept = put_once(self.write, lambda connection: put(connection)[0], memories)
        elif len(memories) == 1 and self._put_one(memories[0], derived[0]):
            kept = memories
        elif len(memories) < _BULK:
            kept = self.write(self._repeatable(memories, derived))[0]
        else:
            kept = self._put_many(memories, derived)
        self.on_write(len(memories))
        return kept

    def on_write(self, number: int) -> None:
        """Write a segment from time to time; log failures."""
        threshold = cache.SEGMENT_FROM if number < _BULK else cache.SEGMENT_BULK
        known, self._unpacked_rows = self._unpacked_rows, (self._unpacked_rows or 0) + number
        if known is None or self._unpacked_rows >= threshold:
            self._try_write_segment(threshold)

    def _repeatable(
        self, memories: Sequence[Memory], derived: Sequence[Derived]
    ) -> Callable[[sqlite3.Connection], tuple[list[Memory], Sequence[Derived]]]:
        """Return an insert that may be repeated after a rollback: ids and steps that it filled in may be taken by
        then."""
        given = [(memory.memory_id, memory.step_number) for memory in memories]

        def work(connection: sqlite3.Connection) -> tuple[list[Memory], Sequence[Derived]]:
            for memory, (memory_id, step) in zip(memories, given, strict=True):
                memory.memory_id, memory.step_number = memory_id, step
            return self.insert(connection, memories, derived)

        return work

    def _put_one(self, memory: Memory, derived: Derived) -> bool:
        """Fast path for one new memory in the same vector format; False if it does not apply."""
        vector, sound = memory.embeddings.full_vector, self._checked_format
        if sound is None or sound[1:] != (self.embedder_identity, None if vector is None else vector.size):
            return False
        if memory.memory_id or self.encryption is not None:
            return False
        values = *rows.memory_values(memory, self.codec), *rows.derived_values(derived), *map(sound[0].get, rows.KIND)

        def insert(connection: sqlite3.Connection) -> tuple[int, int, str] | None:
            row = next(iter(connection.execute(_INSERT_ONE, values).fetchall()), None)
            if row is not None and derived.facts:
                found = facts.to_rows(row[0], memory, derived.facts, self.vault, None)
                connection.executemany(facts.INSERT, found)
            return row

        inserted = self._writer.run(insert, single=not (self.touches or derived.facts))
        if inserted is None:  # the id is taken, or another process changed the vector format
            return False
        _, memory.step_number, memory.memory_id = inserted
        return True

    def _put_many(self, memories: Sequence[Memory], derived: Sequence[Derived]) -> list[Memory]:
        """Write memories, and add them to the index if that is up to date: reading them again costs more."""

        put = self._repeatable(memories, derived)

        def work(connection: sqlite3.Connection) -> tuple[FileState, list[Memory], Sequence[Derived], FileState]:
            before = read_state(connection)
            return before, *put(connection), read_state(connection)

        before, kept, parts, after = self.write(work)
        try:
            given = enumerate(zip(kept, parts, strict=True), before.row + 1)
            with self.index.lock:
                self._follower.add_written(
                    before,
                    after,
                    (index_row(memory, part, seq, original_seq=seq) for seq, (memory, part) in given),
                )
        except Exception:
            log.exception("the index could not take in what was written; it is built again for the next question")
        return kept

    def scrub(self, *, rewrite: bool = False) -> None:
        """Erase removed memories from segments and the write-ahead log and, with `rewrite`, from unused parts of pages,
        where SQLite leaves copies of rows that it moves."""
        with self._file.reading() as connection:
            covered = cache.covering_changes(connection)
        if covered is not None:
            self.write(lambda connection: cache.drop_from(connection, covered))
            self.write_segment(1)
        if rewrite:
            self._writer.between(_rewrite)
        self._unscrubbed = not self._writer.between(self._empty_log)

    def _empty_log(self, connection: sqlite3.Connection) -> bool:
        """Checkpoint and truncate the write-ahead log, once no process reads from it."""
        deadline = time.monotonic() + self._file.timeout
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > deadline:
                log.warning("a long read of %s keeps what was removed in its write-ahead log for now", self.path)
                return False
            time.sleep(0.01)
        return True

    def broken_audit(self) -> list[int]:
        with self._file.reading() as connection:
            found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'audit'").fetchone()
            return list(audit.broken(connection, 0 if found is None else found[0], self.audit_chain))

    def flush(self) -> None:
        """Write pending access counts; drop them for a read-only file."""
        if self.touches and not self._file.read_only:
            self.write(lambda connection: None)

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

    def read_transaction(self, work: Callable[[], Result]) -> Result:
        """Run reads in one snapshot of the file, to which the index is updated."""
        if self._snapshot.connection is not None:
            return work()
        with self._file.snapshot() as connection:
            self._snapshot.connection = connection
            try:
                self.index.read_codes()  # which the first question left in the file
                done = work()
            finally:
                self._snapshot.connection = None
        self._heal()
        return done

    @contextmanager
    def _in_snapshot(self) -> Iterator[sqlite3.Connection]:
        """Borrow a connection whose reads all see one snapshot: that of this thread, if it has one."""
        held = self._snapshot.connection
        if held is not None:
            yield held
            return
        with self._file.snapshot() as connection:
            yield connection

    def filtered_rows(self, where: Filter) -> FilteredRows:
        with self.index.lock:  # so that no other thread updates the index beyond the snapshot
            self.refresh()
            self.check_keys(self.index)
            return self._filtered.take(where)

    def refresh(self) -> None:
        held = self._snapshot.connection
        if held is not None:
            with self.index.lock:
                self._follower.reach(held)
            return
        with self._file.reading() as connection:
            if self._follower.is_at(read_state(connection)):
                return
        with self.index.lock, self._file.snapshot() as connection:
            self._follower.follow(connection, read_state(connection))
        self._heal()

    def _heal(self) -> None:
        """Replace segments that could not be used."""
        if self._follower.distrusted is not None:
            self._try_write_segment(1)

    def write_segment(self, threshold: int = cache.SEGMENT_FROM) -> None:
        """Pack the rows after the last good segment into a new one, if there are at least `threshold`; pack older
        segments again if much has changed in them; prune the change log."""
        if self._file.read_only:
            return
        distrusted, self._follower.distrusted = self._follower.distrusted, None
        if distrusted is not None:
            self.write(lambda connection: cache.drop_from(connection, distrusted))
        with self._file.reading() as connection:
            uncovered = self._unpacked_rows = cache.uncovered(connection)
            behind = cache.changes_behind(connection)
        if uncovered < threshold and behind < cache.CHANGES_FROM:
            return
        self.refresh()
        with self.index.changing(), self._file.reading() as connection:
            seen = self._follower.seen
            spans = cache.outdated(connection, seen.change, max(cache.CHANGES_FROM, self.index.alive // 2))
            packed = [segments.pack(self.index, first, last, seen.change) for first, last in spans]
            span = cache.next_span(connection, seen.row) if uncovered >= threshold else None
            fresh = None if span is None else segments.pack(self.index, *span, seen.change)

        def save(connection: sqlite3.Connection) -> None:
            if read_state(connection).generation == seen.generation:
                for segment in packed:
                    cache.replace(connection, segment)
                if fresh is not None:
                    cache.save(connection, fresh)
                cache.prune_changes(connection)

        self.write(save)
        self._unpacked_rows = 0

    def compact(self) -> None:
        """Write a segment of the last bulk, or every new process would read it row by row."""
        self._try_write_segment(cache.SEGMENT_FROM)

    def _try_write_segment(self, threshold: int) -> None:
        """Best-effort write_segment(); log failures. Not inside a snapshot, which must not see a newer state."""
        if self._snapshot.connection is not None:
            return
        try:
            self.write_segment(threshold)
        except StoreError as error:
            log.warning("no new segment was written: %s", error)
        except Exception:
            log.exception("no new segment was written")

    def read_state(self, connection: Connection) -> tuple[int, int, int]:
        assert isinstance(connection, sqlite3.Connection)
        return read_state(connection)

    def new_generation(self, connection: Connection) -> None:
        (generation,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {generation + 1}")

    def on_rows_rewritten(self, connection: Connection, *, vectors: bool = True) -> None:
        assert isinstance(connection, sqlite3.Connection)
        cache.clear(connection)
        self.new_generation(connection)

    def rebuild(self) -> None:
        """Delete the segments and rebuild the index from the rows."""
        self.write(cache.clear)
        with self.index.lock:
            self._follower.loaded = False
        self.refresh()
        self.write_segment(1)

    def derive_terms(self, on_progress: Progress | None = None, *, all_rows: bool = False) -> int:
        return reembed.reanalyse(self, on_progress)  # writes only the rows that differ

    def describe(self) -> str:
        return f"{self.path}, schema {migrations.HEAD}"

    def check_storage(self) -> tuple[str, bool, str]:
        with self.connection() as connection:
            problems = [text for (text,) in connection.execute("PRAGMA integrity_check(20)")]
            (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
        sound = problems == ["ok"]
        return "file", sound, f"SQLite finds it sound, journal {journal}" if sound else "; ".join(problems)

    def read_raw(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        with self.connection() as connection:
            return work(connection)

    def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        held = self._snapshot.connection
        if held is not None:
            return _read(held, work)
        with self._file.reading() as connection:
            return _read(connection, work)

    def write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run `work` in a transaction, perhaps shared with other threads; durable when this returns."""
        return self._writer.run(work)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Borrow a reading connection: that of this thread's snapshot, if there is one."""
        held = self._snapshot.connection
        if held is not None:
            yield held
            return
        with self._file.reading() as connection:
            yield connection

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            self._file.wait_briefly()  # do not wait for writes of another process
            self.flush()
            if self._encrypted:
                dictionaries.replace(self)
            if self._unscrubbed:
                self.scrub(rewrite=self._encrypted)
        except StoreError as error:
            log.info("not everything was tidied up: %s", error)
        self._writer.close()

    def after_fork_in_child(self) -> None:
        """Start with an empty index: a thread of the parent may have been changing it. The parent writes pending
        counts."""
        self._snapshot = _Snapshot()
        self.index.whole = False
        self.touches.take()


def _read(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], Result]) -> Result:
    """Run `work`, once more with replacement characters if a text is not UTF-8."""
    try:
        return work(connection)
    except sqlite3.OperationalError as error:
        if not is_undecodable(error):
            raise
        with lenient(connection):
            return work(connection)


def _rewrite(connection: sqlite3.Connection) -> None:
    """Rewrite all pages (VACUUM), with a temporary copy on disk: it may be larger than memory."""
    connection.execute("PRAGMA temp_store = FILE")
    try:
        connection.execute("VACUUM")
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")


class _Snapshot(local):
    """The snapshot of this thread, if it has one."""

    connection: sqlite3.Connection | None = None
