"""The recall index over the rows of a SQLite file: loaded from the segments, then updated by `seq` and by the change
log."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...crypto.vault import Vault
from ...errors import StoreError
from ...index import bits, segments
from ...index.recall_index import IndexRow, RecallIndex
from ...index.unread_codes import UnreadCodes
from ..indexed import derive, index_row
from ..packing import Codec
from . import cache, encrypted_rows, rows
from . import keys as data_keys
from .file import is_undecodable, lenient

log = logging.getLogger(__name__)

_READ_AHEAD = 8192  # rows at a time
_COUNTERS = "SELECT name, seq FROM sqlite_sequence WHERE name IN ('memories', 'changes')"  # not users' tables


class FileState(NamedTuple):
    """The state of a file: its last row, its last change, and how often it was re-embedded."""

    row: int
    change: int
    generation: int

    def is_after(self, other: FileState) -> bool:
        return (self.generation, self.row, self.change) > (other.generation, other.row, other.change)


def read_state(connection: sqlite3.Connection) -> FileState:
    counters = dict(connection.execute(_COUNTERS).fetchall())
    (generation,) = connection.execute("PRAGMA user_version").fetchone()
    return FileState(counters.get("memories", 0), counters.get("changes", 0), generation)


class FileFollower:
    """Brings an index to the state of a file. Callers hold the index's lock."""

    def __init__(
        self,
        index: RecallIndex,
        vault: Vault,
        codec: Codec,
        use_keys: Callable[[RecallIndex], None],
        snapshot: Callable[[], AbstractContextManager[sqlite3.Connection]],
        vectors_at: Callable[[npt.NDArray[np.int64], int], bits.Matrix],
    ) -> None:
        self.index = index
        self.seen = FileState(0, 0, 0)
        self.loaded = False
        self.distrusted: int | None = None  # the first row of segments that could not be used
        self._vault = vault
        self._codec = codec
        self._use_keys = use_keys
        self._snapshot, self._vectors_at = snapshot, vectors_at

    def is_at(self, state: FileState) -> bool:
        """Whether the index is at this state of the file."""
        return self.loaded and self.index.whole and self.seen == state

    def reach(self, snapshot: sqlite3.Connection) -> None:
        """Bring the index and a snapshot to the same state; to a newer snapshot if another thread has updated the
        index."""
        now = read_state(snapshot)
        if self.is_at(now):
            return
        if self.loaded and self.index.whole and self.seen.is_after(now):
            snapshot.execute("ROLLBACK")
            snapshot.execute("BEGIN")
            now = read_state(snapshot)
        self.follow(snapshot, now)

    def follow(self, connection: sqlite3.Connection, now: FileState) -> None:
        """Read the rows and changes of a snapshot, which has the state `now`, into the index; rebuild it if that is not
        possible."""
        self._vault.follow(data_keys.read(connection))
        known = connection.execute("SELECT value FROM notes WHERE key = 'dimension'").fetchone()
        dimension = None if known is None else int(known[0])
        anew = (
            not self.loaded
            or not self.index.whole
            or now.generation != self.seen.generation
            or (now.change != self.seen.change and self.seen.change + 1 < _first_change(connection, now))
        )
        with self.index.changing(anew=anew):
            seen = self._load(connection, now, dimension) if anew else self.seen
            self._use_keys(self.index)
            last = seen.row
            while last < now.row:
                batch, last = self._read_rows(connection, last, now.row, dimension)
                self.index.extend(batch)
            if now.change != seen.change:
                self._follow_changes(connection, seen.change, dimension)
            if self.index.is_mostly_dead:
                self.index.adopt(segments.compact_copy(self.index))
            self.seen, self.loaded = now, True

    def _follow_changes(self, connection: sqlite3.Connection, since: int, dimension: int | None) -> None:
        moved = connection.execute(
            "SELECT seq, tier FROM changes WHERE n > ? AND tier IS NOT NULL ORDER BY n", (since,)
        ).fetchall()
        if moved:
            self.index.move(moved, rows.moved_vectors(connection, moved, dimension))
        for (seq,) in connection.execute("SELECT seq FROM changes WHERE n > ? AND tier IS NULL ORDER BY n", (since,)):
            self.index.kill(seq)

    def add_written(self, before: FileState, after: FileState, added: Iterable[IndexRow]) -> None:
        """Add the rows that a write of this process appended between two states, if the index was at the first."""
        if not self.loaded and before.row == 0:  # the file was empty
            self.loaded, self.seen = True, before
        if self.is_at(before) and after.change == before.change:
            with self.index.changing():
                self.index.extend(list(added))
                self._use_keys(self.index)
                self.seen = after

    def _load(self, connection: sqlite3.Connection, now: FileState, dimension: int | None) -> FileState:
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
        self.distrusted = loaded.distrusted
        self._attach_codes(loaded.left)
        return FileState(loaded.row, now.change if loaded.changes is None else loaded.changes, now.generation)

    def _attach_codes(self, left: Mapping[str, Sequence[cache.Span]]) -> None:
        """Let the index read the codes that were left in the file: those of some rows from their vectors, and those of
        some words by embedding them."""
        columns, vectors, vocabulary = self.index.columns, self.index.vectors, self.index.vocabulary
        if vectors is not None and segments.CODES in left:
            dimension, parts = vectors.dimension, [(span, slice(None)) for span in left[segments.CODES]]
            vectors.unread = self._unread_codes(
                vectors, segments.CODES, parts, lambda rows: self._vectors_at(columns["seq"][rows], dimension)
            )
        if vocabulary.vectors is not None and segments.WORD_CODES in left:
            chosen = list(zip(left[segments.WORD_CODES], vocabulary.from_segments, strict=False))
            vocabulary.vectors.unread = self._unread_codes(
                vocabulary.vectors, segments.WORD_CODES, chosen, vocabulary.embed
            )

    def _unread_codes(
        self,
        vectors: bits.VectorColumns,
        name: str,
        parts: Sequence[tuple[cache.Span, Any]],
        read_vectors: Callable[[bits.RowNumbers], bits.Matrix],
    ) -> UnreadCodes:
        """Return how to read the codes of all rows from some rows of the segments, or from the vectors if others have
        replaced these segments."""
        size = vectors.size

        def read_all() -> Iterator[npt.NDArray[np.int8]]:
            done = 0
            with self._snapshot() as connection:
                known = set(cache.chain_of(connection))
                for span, rows in parts if all(span in known for span, _ in parts) else ():
                    try:
                        codes = cache.read_array(connection, span, name)[rows]
                    except segments.BadSegment as error:
                        log.warning("segment %d-%d is rebuilt from the rows: %s", span[0], span[1], error)
                        self.distrusted = span[0]
                        break
                    yield codes
                    done += len(codes)
                for start in range(done, size, _READ_AHEAD):
                    yield bits.encode(read_vectors(np.arange(start, min(size, start + _READ_AHEAD))))[0]

        return UnreadCodes(size, vectors.dimension, read_vectors, read_all, self.index.lock)

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
        memory = rows.readable(row, self._codec)
        if memory is None or not isinstance(original_seq, int):
            return None
        seal, derived = rows.seal_of(row), derive(memory)
        if seal is not None:
            derived = encrypted_rows.blind(derived, seal, self._vault)
        return index_row(memory, derived, seq, original_seq, dimension)


def _first_change(connection: sqlite3.Connection, now: FileState) -> int:
    """Return the oldest entry of the change log; the next number if it is empty."""
    (first,) = connection.execute("SELECT min(n) FROM changes").fetchone()
    return now.change + 1 if first is None else int(first)


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite could not read a part of the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)
