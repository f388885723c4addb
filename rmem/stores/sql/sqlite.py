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
from typing import Literal, NamedTuple, TypeVar

from ... import checks, receipts
from ...crypto.encryption import Encryption
from ...errors import StoreError
from ...filters import Filter
from ...forks import Forking, watch
from ...index import segments
from ...index.filtered_rows import FilteredRows
from ...index.recall_index import IndexRow
from ...index.vocabulary import WordVectors
from ...models import Memory
from .. import migrations
from ..base import Progress, StoreStats
from ..indexed import Derived, derive, index_row
from ..vectors import check_vectors
from . import audit, cache, dictionaries, encrypted_rows, facts, inserts, reembed, rows
from . import keys as data_keys
from .audit_chain import AuditChain
from .connection import Connection
from .encrypted_rows import Seal
from .file import DURABILITY, SqliteFile, is_undecodable, lenient
from .receipts import put_once
from .records import SqlRecords, StoreDialect
from .writer import GroupWriter

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_READ_AHEAD = 8192  # rows read into the index at a time
_BULK = 256  # memories in one write from which on the writer updates its own index

_COUNTERS = "SELECT name, seq FROM sqlite_sequence WHERE name IN ('memories', 'changes')"  # not users' tables

_ONE = rows.MEMORY + rows.DERIVED


def _number(column: str) -> str:
    """Return the placeholder of a column in the statement below."""
    return f"?{_ONE.index(column) + 1}"


_ONE_VALUES = {"id": f"{_number('agent')} || '-' || next.step || '-' || CAST({_number('time')} AS INTEGER)"}
_ONE_VALUES["step"] = "next.step"

# Append a row if its id is unused, the vector metadata is unchanged and nothing is encrypted. A negative step stands
# for the agent's next one, and the id follows from it. One statement needs no transaction around it.
_INSERT_ONE = (
    f"INSERT INTO memories (seq, born, {', '.join(_ONE)}) "
    f"SELECT next.seq, next.seq, {', '.join(_ONE_VALUES.get(column) or _number(column) for column in _ONE)} "
    "FROM (SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'memories'), 0) + 1 AS seq, "
    f"iif({_number('step')} < 0, ifnull(({inserts.LAST_STEP.replace('?', _number('agent'))}) + 1, 0), "
    f"{_number('step')}) AS step) AS next "
    "WHERE typeof(next.step) = 'integer' AND "
    + " AND ".join(
        f"(SELECT value FROM notes WHERE key = '{key}') IS ?{number}"
        for number, key in enumerate(rows.KIND, len(_ONE) + 1)
    )
    + " AND NOT EXISTS (SELECT 1 FROM keys) ON CONFLICT (id) DO NOTHING RETURNING seq, id, step"
)


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
        self._seen = _FileState(0, 0, 0)
        self._loaded = False
        self._distrusted: int | None = None
        self._unpacked_rows: int | None = None  # rows and changes after the last segment; None before the first write
        watch(self)

    # Writing

    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        if not memories:
            return []
        memories = [memory.copied() for memory in memories]
        check_vectors(memories)
        derived = [derive(memory, with_facts=True) for memory in memories]
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

        def insert(connection: sqlite3.Connection) -> tuple[int, str, int] | None:
            inserted: tuple[int, str, int] | None = next(iter(connection.execute(_INSERT_ONE, values).fetchall()), None)
            if derived.facts and inserted is not None:
                found = facts.to_rows(inserted[0], memory, derived.facts, self.vault, None)
                connection.executemany(facts.INSERT, found)
            return inserted

        inserted = self._writer.run(insert, single=not (self.touches or derived.facts))
        if inserted is None:
            return False
        _, memory.memory_id, memory.step_number = inserted
        return True

    def _put_many(self, memories: Sequence[Memory], derived: Sequence[Derived]) -> list[Memory]:
        """Write memories, and add them to the index if that is up to date: reading them again costs more."""

        put = self._repeatable(memories, derived)

        def work(connection: sqlite3.Connection) -> tuple[_FileState, list[Memory], Sequence[Derived], _FileState]:
            before = _state(connection)
            return before, *put(connection), _state(connection)

        before, kept, parts, after = self.write(work)
        try:
            with self.index.lock:
                if not self._loaded and before.row == 0:  # the file was empty
                    self._loaded, self._seen = True, before
                if self._loaded and self.index.whole and self._seen == before and after.change == before.change:
                    given = enumerate(zip(kept, parts, strict=True), before.row + 1)
                    with self.index.changing():
                        self.index.extend(
                            [index_row(memory, part, seq, original_seq=seq) for seq, (memory, part) in given]
                        )
                        self.use_keys(self.index)
                        self._seen = after
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
                done = work()
            finally:
                self._snapshot.connection = None
        self._heal()
        return done

    def filtered_rows(self, where: Filter) -> FilteredRows:
        with self.index.lock:  # so that no other thread updates the index beyond the snapshot
            self.refresh()
            self.check_keys(self.index)
            return self._filtered.take(where)

    def refresh(self) -> None:
        held = self._snapshot.connection
        if held is not None:
            with self.index.lock:
                self._reach(held)
            return
        with self._file.reading() as connection:
            if self._is_at(_state(connection)):
                return
        with self.index.lock, self._file.snapshot() as connection:
            self._follow(connection)
        self._heal()

    def _heal(self) -> None:
        """Replace segments that could not be used."""
        if self._distrusted is not None:
            self._try_write_segment(1)

    def _is_at(self, state: _FileState) -> bool:
        """Whether the index is at this state of the file."""
        return self._loaded and self.index.whole and self._seen == state

    def _reach(self, snapshot: sqlite3.Connection) -> None:
        """Bring the index and a snapshot to the same state; to a newer snapshot if another thread has updated the
        index."""
        now = _state(snapshot)
        if self._is_at(now):
            return
        if self._loaded and self.index.whole and self._seen.is_after(now):
            snapshot.execute("ROLLBACK")
            snapshot.execute("BEGIN")
        self._follow(snapshot)

    def _follow(self, connection: sqlite3.Connection) -> None:
        """Read new rows and changes into the index; rebuild it if that is not possible."""
        now = _state(connection)
        self.vault.follow(data_keys.read(connection))
        known = connection.execute("SELECT value FROM notes WHERE key = 'dimension'").fetchone()
        dimension = None if known is None else int(known[0])
        anew = (
            not self._loaded
            or not self.index.whole
            or now.generation != self._seen.generation
            or self._seen.change + 1 < _first_change(connection, now)
        )
        with self.index.changing(anew=anew):
            seen = self._load(connection, now, dimension) if anew else self._seen
            self.use_keys(self.index)
            last = seen.row
            while last < now.row:
                batch, last = self._read_rows(connection, last, now.row, dimension)
                self.index.extend(batch)
            since = (seen.change,)
            moved = connection.execute(
                "SELECT seq, tier FROM changes WHERE n > ? AND tier IS NOT NULL ORDER BY n", since
            ).fetchall()
            if moved:
                self.index.move(moved, rows.moved_vectors(connection, moved, dimension))
            for (seq,) in connection.execute("SELECT seq FROM changes WHERE n > ? AND tier IS NULL ORDER BY n", since):
                self.index.kill(seq)
            if self.index.is_mostly_dead:
                self.index.adopt(segments.compact_copy(self.index))
            self._seen, self._loaded = now, True

    def _load(self, connection: sqlite3.Connection, now: _FileState, dimension: int | None) -> _FileState:
        """Fill the index from the segments; return the state of the file that it then has. Segments are only a cache:
        if they are unusable, the rows are read."""
        self.index.clear()
        try:
            loaded = cache.load(connection, self.index, dimension)
        except Exception as error:
            if not connection.in_transaction or (isinstance(error, sqlite3.Error) and not _is_damage(error)):
                raise  # the rest would be read from another snapshot
            log.warning("the segments are rebuilt from the rows: %s", error, exc_info=True)
            self.index.clear()
            loaded = cache.Loaded(0, None, 1)
        self._distrusted = loaded.distrusted
        return _FileState(loaded.row, now.change if loaded.changes is None else loaded.changes, now.generation)

    def _read_rows(
        self, connection: sqlite3.Connection, last: int, end: int, dimension: int | None
    ) -> tuple[list[IndexRow], int]:
        """Read the next rows for the index; return them and the number of the last one. Damaged derived columns are
        derived again; unreadable rows are skipped."""
        bounds = (last, end, _READ_AHEAD)
        try:
            batch = connection.execute(rows.READ_INDEX, bounds).fetchall()
        except sqlite3.OperationalError as error:
            if not is_undecodable(error):
                raise
            with lenient(connection):
                batch = connection.execute(rows.READ_INDEX, bounds).fetchall()
        found: list[IndexRow] = []
        for row in batch:
            try:
                found.append(rows.to_index_row(row, dimension))
            except (StoreError, ValueError, TypeError) as error:
                log.warning("row %s is derived again: %s", row[0], error)
                again = self._derive_again(connection, row[0], dimension)
                found += [] if again is None else [again]
        return found, batch[-1][0] if len(batch) == _READ_AHEAD else end

    def _derive_again(self, connection: sqlite3.Connection, seq: int, dimension: int | None) -> IndexRow | None:
        with lenient(connection):
            row = connection.execute(f"{rows.READ} WHERE m.seq = ?", (seq,)).fetchone()
            (original_seq,) = connection.execute("SELECT born FROM memories WHERE seq = ?", (seq,)).fetchone()
        memory = rows.readable(row, self.codec)
        if memory is None or not isinstance(original_seq, int):
            return None
        seal, derived = rows.seal_of(row), derive(memory)
        if seal is not None:
            derived = encrypted_rows.blind(derived, seal, self.vault)
        return index_row(memory, derived, seq, original_seq, dimension)

    def write_segment(self, threshold: int = cache.SEGMENT_FROM) -> None:
        """Pack the rows after the last good segment into a new one, if there are at least `threshold`; pack older
        segments again if much has changed in them; prune the change log."""
        if self._file.read_only:
            return
        distrusted, self._distrusted = self._distrusted, None
        if distrusted is not None:
            self.write(lambda connection: cache.drop_from(connection, distrusted))
        with self._file.reading() as connection:
            uncovered = self._unpacked_rows = cache.uncovered(connection)
            behind = cache.changes_behind(connection)
        if uncovered < threshold and behind < cache.CHANGES_FROM:
            return
        self.refresh()
        with self.index.changing(), self._file.reading() as connection:
            seen = self._seen
            spans = cache.outdated(connection, seen.change, max(cache.CHANGES_FROM, self.index.alive // 2))
            packed = [segments.pack(self.index, first, last, seen.change) for first, last in spans]
            span = cache.next_span(connection, seen.row) if uncovered >= threshold else None
            fresh = None if span is None else segments.pack(self.index, *span, seen.change)

        def save(connection: sqlite3.Connection) -> None:
            if _state(connection).generation == seen.generation:
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
        return _state(connection)

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
            self._loaded = False
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
        with self.connection() as connection:
            try:
                return work(connection)
            except sqlite3.OperationalError as error:
                if not is_undecodable(error):
                    raise
                with lenient(connection):
                    return work(connection)

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
            self._file.hurry()  # do not wait for writes of another process
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


class _FileState(NamedTuple):
    """The state of a file: its last row, its last change, and how often it was re-embedded."""

    row: int
    change: int
    generation: int

    def is_after(self, other: _FileState) -> bool:
        return (self.generation, self.row, self.change) > (other.generation, other.row, other.change)


def _first_change(connection: sqlite3.Connection, now: _FileState) -> int:
    """Return the oldest entry of the change log; the next number if it is empty."""
    (first,) = connection.execute("SELECT min(n) FROM changes").fetchone()
    return now.change + 1 if first is None else int(first)


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite could not read a part of the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)


def _state(connection: sqlite3.Connection) -> _FileState:
    counters = dict(connection.execute(_COUNTERS).fetchall())
    (generation,) = connection.execute("PRAGMA user_version").fetchone()
    return _FileState(counters.get("memories", 0), counters.get("changes", 0), generation)
