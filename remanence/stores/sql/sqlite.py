"""The embedded store: one SQLite file. The rows are the truth; the recall index is derived from them, held in
memory, cached in the file as segments, and follows other processes' writes by `seq` and by the change log."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ... import checks
from ...crypto.encryption import Encryption
from ...crypto.vault import Vault, WrappedKey
from ...errors import StoreError
from ...filters import Filter
from ...index.analyser import VERSION as ANALYSER
from ...index.vocabulary import WordVectors
from ...judgements import Judgement
from ...models import TIERS, Embeddings, Memory
from .. import packing
from ..base import SetAside, Size, StoreStats, Trace, Vector
from ..indexed import Derived, IndexedStore, derive, index_row
from ..packing import Codec
from . import audit, cache, inserts, removal, rows, sealing
from . import judgements as judged
from . import keys as data_keys
from .audit import AuditEntry
from .file import DURABILITY, SqliteFile
from .writer import GroupWriter

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_MOVE = f"UPDATE memories SET tier = ?, level = ?, {', '.join(f'{name} = ?' for name in rows.BODY)} WHERE seq = ?"
_FETCH = 500  # ids or seqs in one statement
_READ_AHEAD = 8192  # rows read into the index at a time
_BULK = 256  # memories written together from which on a writer looks after its own index


class SqliteRecordStore(IndexedStore):
    """`SqliteRecordStore("memories.db")`. `durability="normal"` skips the fsync of each commit: a power cut may
    then lose the newest memories, a crash of the process still loses none. `encryption` encrypts what is written from
    now on; None takes the master key of the environment, if there is one, and False none."""

    def __init__(
        self,
        path: str | Path,
        *,
        durability: str = "full",
        busy_timeout: float = 30.0,
        word_vectors: WordVectors | None = None,
        encryption: Encryption | Literal[False] | None = None,
    ) -> None:
        super().__init__(word_vectors)
        self.encryption = Encryption.of(encryption)
        checks.one_of("durability", durability, list(DURABILITY))
        self.path = Path(path)
        self._file = SqliteFile(self.path, durability, checks.number("busy_timeout", busy_timeout, low=0))
        self._writer = GroupWriter(self._file)
        self.vault = Vault(self.encryption, self._wrapped_keys)
        self.codec = Codec(self._dictionaries, self.vault)
        self._train_from = packing.TRAIN_FROM
        self._unscrubbed = False
        self._seen = _State(0, 0, 0)
        self._loaded = False
        self._distrusted: int | None = None
        self._unsettled = 0  # rows behind the last segment, as far as we know
        self._touched: dict[str, tuple[float, int]] = {}
        self._touch_lock = Lock()

    # Writing

    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        if not memories:
            return []
        memories = [memory.copied() for memory in memories]
        self.check_vectors(memories)
        derived = [derive(memory) for memory in memories]
        if len(memories) < _BULK:
            kept = self.write(lambda connection: self._insert(connection, memories, derived))[0]
        else:
            kept = self._put_many(memories, derived)
        threshold = cache.SETTLE_FROM if len(memories) < _BULK else cache.SETTLE_BULK
        self._unsettled += len(memories)
        if self._unsettled >= threshold or self._unsettled == len(memories):
            self._settle_if_possible(threshold)
        return kept

    def _put_many(self, memories: Sequence[Memory], derived: Sequence[Derived]) -> list[Memory]:
        """Write memories, and hand them to an index that is up to date: reading them back costs more."""

        def work(connection: sqlite3.Connection) -> tuple[_State, list[Memory], Sequence[Derived], _State]:
            before = _state(connection)
            return before, *self._insert(connection, memories, derived), _state(connection)

        before, kept, parts, after = self.write(work)
        with self.index.lock:
            if not self._loaded and before.row == 0:  # the file was empty, as the index is
                self._loaded, self._seen = True, before
            if self._loaded and self._seen == before and after.change == before.change:
                given = enumerate(zip(kept, parts, strict=True), before.row + 1)
                self.index.extend([index_row(memory, part, seq, born=seq) for seq, (memory, part) in given])
                self._use_keys()
                self._seen = after
        return kept

    def _insert(
        self, connection: sqlite3.Connection, memories: Sequence[Memory], derived: Sequence[Derived]
    ) -> tuple[list[Memory], Sequence[Derived]]:
        """Write memories; as they were kept, with what the index gets of them."""
        self._write_touched(connection)
        seal = data_keys.seal_for_writing(connection, self.vault)
        if seal is not None:
            derived = [sealing.disguised(parts, seal, self.vault) for parts in derived]
        if self.encryption is not None and self.encryption.hides_vectors:
            for memory in memories:
                memory.embeddings = Embeddings()
        self._check_kind(connection, memories)
        given = [memory.memory_id for memory in memories if memory.memory_id]
        if given and len(memories) > 1 and (len(set(given)) < len(given) or inserts.held(connection, given)):
            # One that replaces another may lower its agent's highest step for those behind it.
            for memory, parts in zip(memories, derived, strict=True):
                last = _state(connection).row
                self._unscrubbed |= inserts.append(connection, [memory], [parts], self.codec, seal, last)
        else:
            last = _state(connection).row
            self._unscrubbed |= inserts.append(connection, memories, derived, self.codec, seal, last)
        return list(memories), derived

    def _check_kind(self, connection: sqlite3.Connection, memories: Sequence[Memory]) -> None:
        """Refuse vectors that are not of the store's kind; note the kind of the first ones."""
        known = dict(connection.execute("SELECT key, value FROM notes").fetchall())
        fresh = {} if "analyser" in known else {"analyser": str(ANALYSER)}
        given = next((m.embeddings.full_vector for m in memories if m.embeddings.full_vector is not None), None)
        if given is not None:
            if self.owner is not None:
                self.owner.check(known.get("embedder"))
                fresh |= {"embedder": self.owner.name}
                fresh |= {"embedder_spec": self.owner.spec} if self.owner.spec is not None else {}
            if "dimension" in known:
                checks.vector("vector", given, dimension=int(known["dimension"]))
            fresh |= {"dimension": str(given.size)}
        new = [(key, value) for key, value in fresh.items() if key not in known]
        if new:
            connection.executemany("INSERT INTO notes VALUES (?, ?)", new)

    def change(self, memory_id: str, edit: Callable[[Memory], Memory]) -> Memory | None:
        def work(connection: sqlite3.Connection) -> Memory | None:
            row = connection.execute(f"{rows.READ} WHERE m.id = ?", (memory_id,)).fetchone()
            if row is None:
                return None
            memory = edit(rows.to_memory(row, self.codec))
            memory.memory_id = memory_id
            self.check_vectors([memory])
            return self._insert(connection, [memory], [derive(memory)])[0][0]

        return self.write(work)

    def move(self, keys: Sequence[str], tier: str, vectors: Mapping[str, Vector] | None = None) -> int:
        checks.one_of("tier", tier, TIERS)
        given = vectors or {}
        if packing.LEVELS[tier]:
            self._train_if_due()

        def work(connection: sqlite3.Connection) -> int:
            moved = 0
            for start in range(0, len(keys), _FETCH):
                part = keys[start : start + _FETCH]
                sql = f"{rows.READ} WHERE m.id IN ({', '.join('?' * len(part))})"
                placed: list[tuple[Any, ...]] = []
                for row in connection.execute(sql, part):
                    memory, seal = rows.to_memory(row, self.codec), rows.seal_of(row)
                    bare = seal is not None and packing.short_vector(memory) is None  # and is to stay so
                    memory = packing.placed(memory, tier, None if bare else given.get(memory.memory_id))
                    body = rows.body_values(memory, self.codec, seal)
                    placed.append((tier, memory.metadata.compression_level, *body, row[0]))
                connection.executemany(_MOVE, placed)
                connection.executemany(
                    "INSERT INTO changes (seq, tier) VALUES (?, ?)", [(values[-1], tier) for values in placed]
                )
                moved += len(placed)
            return moved

        return self.write(work) if keys else 0

    def _train_if_due(self) -> None:
        """Learn what the newest memories have in common, for the codec, once there are enough of them to tell."""
        if self.index.size < self._train_from or self.codec.has_dictionary:
            return
        self._train_from = 4 * self.index.size  # if they have too little in common, later ones may have more
        with self._file.reading() as connection:
            newest = connection.execute(  # a dictionary repeats what it was trained on, so nothing encrypted
                f"{rows.READ} WHERE m.key_version IS NULL ORDER BY m.seq DESC LIMIT ?", (packing.SAMPLES,)
            ).fetchall()
        if len(newest) < min(packing.TRAIN_FROM, packing.SAMPLES):
            return
        found = packing.train([(m.text, m.contents) for m in (rows.to_memory(row, self.codec) for row in newest)])
        if found is not None:
            self.write(lambda connection: connection.execute("INSERT INTO dictionaries (data) VALUES (?)", (found,)))
            self.codec.forget_writer()

    def _dictionaries(self) -> list[bytes]:
        with self._file.reading() as connection:
            return [data for (data,) in connection.execute("SELECT data FROM dictionaries ORDER BY id")]

    def _wrapped_keys(self) -> list[WrappedKey]:
        with self._file.reading() as connection:
            return data_keys.read(connection)

    def forget_many(self, keys: Sequence[str]) -> int:
        return len(self.erase(keys, who="store", reason="forget")) if keys else 0

    def erase(self, keys: Sequence[str], *, who: str, reason: str, named: bool = True) -> list[str]:
        def work(connection: sqlite3.Connection) -> list[str]:
            gone = removal.remove(connection, keys)
            trashed = removal.empty(connection, None, keys)
            removal.noted(connection, who, "forget", [*gone, *trashed], reason, named=named)
            return [*gone, *trashed]

        found = self.write(work)
        self._unscrubbed |= bool(found)
        return found

    def set_aside(self, keys: Sequence[str], *, until: float, who: str, reason: str) -> list[str]:
        def work(connection: sqlite3.Connection) -> list[str]:
            gone = removal.set_aside(connection, self.codec, keys, time.time(), until)
            removal.noted(connection, who, "set aside", gone, reason)
            return gone

        found = self.write(work)
        self._unscrubbed |= bool(found)
        return found

    def put_back(self, keys: Sequence[str], *, who: str) -> list[Memory]:
        def work(connection: sqlite3.Connection) -> list[Memory]:
            memories = removal.take_back(connection, self.codec, keys)
            removal.noted(connection, who, "restore", [memory.memory_id for memory in memories], "restore")
            return self._insert(connection, memories, [derive(memory) for memory in memories])[0] if memories else []

        return self.write(work)

    def aside(self) -> list[SetAside]:
        with self._file.reading() as connection:
            return removal.in_trash(connection, self.codec)

    def empty_trash(self, now: float, *, who: str) -> list[str]:
        def work(connection: sqlite3.Connection) -> list[str]:
            gone = removal.empty(connection, now)
            removal.noted(connection, who, "forget", gone, "grace period over")
            return gone

        return self.write(work)

    def traces(self) -> Iterator[Trace]:
        self.flush()
        with self._file.reading() as connection:
            yield from removal.traces(connection, self.codec)

    def scrub(self) -> None:
        """Make sure that what was removed is nowhere in the file: not in a segment's words, not in the log of pages."""
        with self._file.reading() as connection:
            covered = cache.covering_changes(connection)
        if covered is not None:
            self.write(lambda connection: cache.drop_from(connection, covered))
            self.settle(1)
        self._writer.between(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
        self._unscrubbed = False

    def audit(
        self,
        *,
        memory: str | None = None,
        since: float | None = None,
        limit: int | None = None,
        before: int | None = None,
    ) -> list[AuditEntry]:
        """The newest entries of the audit log (of those before a number), newest first."""
        with self._file.reading() as connection:
            return audit.entries(connection, memory=memory, since=since, limit=limit, before=before)

    def broken_audit(self) -> list[int]:
        """The numbers of entries of the audit log that are not as they were written."""
        with self._file.reading() as connection:
            found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'audit'").fetchone()
            return list(audit.broken(connection, 0 if found is None else found[0]))

    def touch(self, keys: Sequence[str], when: float) -> None:
        with self._touch_lock:
            for key in keys:
                last, count = self._touched.get(key, (when, 0))
                self._touched[key] = (max(last, when), count + 1)
            full = len(self._touched) >= 65_536
        if full:
            self.flush()

    def flush(self) -> None:
        """Write the access counts that wait; a read-only file keeps none."""
        if self._touched and not self._file.read_only:
            self.write(self._write_touched)

    def _write_touched(self, connection: sqlite3.Connection) -> None:
        with self._touch_lock:
            touched, self._touched = self._touched, {}
        if not touched:
            return
        connection.executemany(
            "INSERT INTO access (born, last, count) SELECT born, ?, ? FROM memories WHERE id = ? "
            "ON CONFLICT (born) DO UPDATE SET last = max(last, excluded.last), count = count + excluded.count",
            [(last, count, key) for key, (last, count) in touched.items()],
        )

    def note(self, key: str, value: str | None = None) -> str | None:
        if value is not None:
            text = value

            def work(connection: sqlite3.Connection) -> None:
                connection.execute(
                    "INSERT INTO notes VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    (key, text),
                )

            self.write(work)
            return value
        with self._file.reading() as connection:
            found = connection.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def judge(self, judgements: Sequence[Judgement]) -> None:
        self.write(lambda connection: judged.write(connection, judgements))

    def forget_judgements(self, judgements: Sequence[Judgement]) -> None:
        if judgements:
            self.write(lambda connection: judged.remove(connection, judgements))

    # Reading

    def judgements(self, since: float | None = None) -> list[Judgement]:
        with self._file.reading() as connection:
            return judged.read(connection, since)

    def get_many(self, keys: Sequence[str]) -> list[Memory | None]:
        found: dict[str, Memory] = {}
        with self._file.reading() as connection:
            for start in range(0, len(keys), _FETCH):
                part = list(keys[start : start + _FETCH])
                sql = f"{rows.READ} WHERE m.id IN ({', '.join('?' * len(part))})"
                for row in connection.execute(sql, part):
                    found[row[1]] = self._counted(rows.to_memory(row, self.codec))
        return [found.get(key) for key in keys]

    def memories_at(self, seqs: Sequence[int]) -> list[tuple[int, Memory]]:
        found: dict[int, Memory] = {}
        with self._file.reading() as connection:
            for start in range(0, len(seqs), _FETCH):
                part = seqs[start : start + _FETCH]
                sql = f"{rows.READ} WHERE m.seq IN ({', '.join('?' * len(part))})"  # sqlite3 keeps it prepared
                for row in connection.execute(sql, part):
                    memory = rows.readable(row, self.codec)
                    if memory is not None:
                        found[row[0]] = self._counted(memory)
        return [(seq, found[seq]) for seq in seqs if seq in found]

    def ids_at(self, seqs: Sequence[int]) -> list[str]:
        found: list[str] = []
        with self._file.reading() as connection:
            for start in range(0, len(seqs), _FETCH):
                part = seqs[start : start + _FETCH]
                sql = f"SELECT id FROM memories WHERE seq IN ({', '.join('?' * len(part))}) ORDER BY seq"
                found += [memory_id for (memory_id,) in connection.execute(sql, part)]
        return found

    def recalls_at(self, seqs: Sequence[int]) -> dict[int, int]:
        self.flush()
        found: dict[int, int] = {}
        with self._file.reading() as connection:
            for start in range(0, len(seqs), _FETCH):
                part = seqs[start : start + _FETCH]
                sql = (
                    "SELECT m.seq, a.count FROM memories m JOIN access a ON a.born = m.born "
                    f"WHERE m.seq IN ({', '.join('?' * len(part))})"
                )
                found.update(connection.execute(sql, part))
        return found

    def _counted(self, memory: Memory) -> Memory:
        """With the accesses that are not written yet."""
        waiting = self._touched.get(memory.memory_id)
        if waiting is not None:
            memory.metadata.last_access_time = max(memory.metadata.last_access_time, waiting[0])
            memory.metadata.retrieval_count += waiting[1]
        return memory

    def vectors_at(self, seqs: npt.NDArray[np.int64], dimension: int) -> npt.NDArray[np.float32]:
        matrix = np.zeros((seqs.size, dimension), np.float32)
        at = {seq: position for position, seq in enumerate(seqs.tolist())}
        with self._file.reading() as connection:
            for start in range(0, seqs.size, _FETCH):
                part = ", ".join(map(str, seqs[start : start + _FETCH].tolist()))
                for seq, stored, level in connection.execute(
                    f"SELECT seq, vector, level FROM memories WHERE seq IN ({part})"
                ):
                    vector = rows.vector_of(stored, level, dimension)
                    if vector is not None and vector.size == dimension:
                        matrix[at[seq]] = vector
        return matrix

    def texts_at(self, seqs: npt.NDArray[np.int64]) -> list[str]:
        found: dict[int, str] = {}
        with self._file.reading() as connection:
            for start in range(0, seqs.size, _FETCH):
                part = ", ".join(map(str, seqs[start : start + _FETCH].tolist()))
                for row in connection.execute(f"{rows.READ_TEXT} WHERE seq IN ({part})"):
                    found[row[0]] = rows.text_of(row, self.codec)
        return [found.get(seq, "") for seq in seqs.tolist()]

    def sizes(self, where: Filter) -> dict[str, Size]:
        found: dict[str, Size] = {}
        seqs = self.survey(where).seq
        with self._file.reading() as connection:
            for start in range(0, seqs.size, _FETCH):
                part = ", ".join(map(str, seqs[start : start + _FETCH].tolist()))
                for tier, packed, unpacked in connection.execute(
                    f"SELECT tier, sum(length(packed)), sum(unpacked) FROM memories WHERE seq IN ({part}) "
                    "AND packed IS NOT NULL GROUP BY tier"
                ):
                    known = found.get(tier, Size(0, 0))
                    found[tier] = Size(known.packed + packed, known.unpacked + unpacked)
        return found

    def unreadable(self) -> int:
        encrypted = self._index_stats().encrypted
        return encrypted if self.index.hides_sealed else 0

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
        self._use_keys()
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

    def _use_keys(self) -> None:
        """Let the index find encrypted memories, or leave them out where they cannot be read."""
        self.index.hides_sealed = not self.vault.opens
        self.index.see_through(self.vault.disguises())

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

    def rebuild(self) -> None:
        """Throw the segments away and derive the index from the rows again."""
        self.write(cache.clear)
        with self.index.lock:
            self._loaded = False
        self.refresh()
        self.settle(1)

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
