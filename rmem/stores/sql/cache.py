"""The segments of recall and search indexes that are cached in an SQLite file: which rows they cover, loading valid
ones and writing new ones.

Segments follow one another without gaps from the first row on. A deleted, truncated or damaged segment, or one of
another version, breaks that chain: its rows and all later ones count as not covered."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...index import segments
from ...index.recall_index import RecallIndex
from ...index.segments import CODES, WORD_CODES, Segment

log = logging.getLogger(__name__)

SEGMENT_FROM = 2048  # rows after the last segment that make a new one
SEGMENT_BULK = 16_384  # the same during bulk writes
CHANGES_FROM = 8192  # changes since the oldest segment after which all are packed again
UNREAD_FROM = 65_536  # rows of an index from which on the codes of its vectors are read when they are needed
CHANGES_KEPT = 4096  # entries of the change log that are kept for other processes


Span = tuple[int, int, int, int]
"""first_seq, last_seq, rows, changes."""


class SegmentOwner(NamedTuple):
    """The owner of segments: the tables that hold them, and the columns that select them."""

    segments: str
    arrays: str
    key: tuple[tuple[str, int | str], ...] = ()

    @property
    def own(self) -> str:
        """The SQL condition that selects them. Keys are our own numbers and names, which need no quoting."""
        return " AND ".join([f"{name} = {value!r}" for name, value in self.key] or ["true"])

    @property
    def values(self) -> tuple[int | str, ...]:
        return tuple(value for _, value in self.key)


MEMORIES = SegmentOwner("segments", "segment_arrays")


def chain_of(connection: sqlite3.Connection, owner: SegmentOwner = MEMORIES) -> list[Span]:
    """Return the segments that follow one another from the first row."""
    chain: list[Span] = []
    spans = f"SELECT first_seq, last_seq, rows, changes FROM {owner.segments} WHERE {owner.own} ORDER BY first_seq"
    for span in connection.execute(spans):
        if span[0] != (chain[-1][1] + 1 if chain else 1):
            break
        chain.append(span)
    return chain


def uncovered(connection: sqlite3.Connection) -> int:
    """Count the sequence numbers of memories after the last segment."""
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'memories'").fetchone()
    chain = chain_of(connection)
    return (found[0] if found else 0) - (chain[-1][1] if chain else 0)


def changes_behind(connection: sqlite3.Connection) -> int:
    """Count the entries of the change log that may be deleted."""
    (last,) = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone() or (0,)
    (first,) = connection.execute("SELECT min(n) FROM changes").fetchone()
    return 0 if first is None else max(0, last - first + 1 - CHANGES_KEPT)


class Loaded(NamedTuple):
    """The row and the change up to which segments filled an index, and the first unusable segment."""

    row: int
    changes: int | None  # None if there are no rows
    distrusted: int | None  # first_seq of the first segment that cannot be used
    left: Mapping[str, Sequence[Span]] = {}  # arrays that were left in the file, and their segments


def load(connection: sqlite3.Connection, index: RecallIndex, dimension: int | None) -> Loaded:
    """Fill an empty index of memories from their segments. The codes of many vectors, of memories and of words, stay in
    the file until they are needed, unless some have no sign bits: these are computed from the codes."""
    chain = chain_of(connection)
    rows = sum(span[2] for span in chain)
    left = {name for name in (CODES, WORD_CODES) if rows >= UNREAD_FROM and _all_have_signs(connection, chain, name)}

    def is_wanted(name: str) -> bool:
        return name not in left and not (name.startswith("words.") and index.vocabulary.is_full)

    def absorb(segment: Segment) -> None:
        found = segments.dimension_of(segment)
        if found is not None and dimension is not None and found != dimension:
            raise segments.BadSegment(f"its vectors have {found} numbers, those of the store {dimension}")
        for name, vectors in ((CODES, index.vectors), (WORD_CODES, index.vocabulary.vectors)):
            centre = segment.arrays.get(name.replace("codes", "centre"))
            known = None if vectors is None else vectors.centre
            if name in left and centre is not None and known is not None and not np.array_equal(centre, known):
                span = segment.first_seq, segment.last_seq, segment.rows, segment.changes
                segment.arrays[name] = read_array(connection, span, name)
        segments.absorb(index, segment)

    index.reserve(rows + segments.SPARE_ROWS)
    loaded = load_chain(connection, absorb, wanted=is_wanted)
    return loaded._replace(left={name: [span for span in chain if span[1] <= loaded.row] for name in left})


def _all_have_signs(connection: sqlite3.Connection, chain: Sequence[Span], name: str) -> bool:
    """Whether all segments have the sign bits of some codes."""
    signs = name.replace("codes", "signs")
    found = connection.execute("SELECT first_seq FROM segment_arrays WHERE name = ?", (signs,)).fetchall()
    return {first_seq for first_seq, *_ in chain} <= {first_seq for (first_seq,) in found}


def load_chain(
    connection: sqlite3.Connection,
    absorb: Callable[[Segment], None],
    sound: Callable[[Segment], bool] | None = None,
    owner: SegmentOwner = MEMORIES,
    wanted: Callable[[str], bool] | None = None,
) -> Loaded:
    """Pass the segments to `absorb` one after the other, up to the first unusable one."""
    chain = chain_of(connection, owner)
    known: list[int] = []
    row = 0
    for span in chain:
        try:
            absorb(read(connection, span, sound, owner, wanted))
        except segments.BadSegment as error:
            log.warning("segment %d-%d is rebuilt from the rows: %s", span[0], span[1], error)
            return Loaded(row, min(known, default=None), span[0])
        known.append(span[3])
        row = span[1]
    (count,) = connection.execute(f"SELECT count(*) FROM {owner.segments} WHERE {owner.own}").fetchone()
    return Loaded(row, min(known, default=None), row + 1 if count > len(chain) else None)


def read(
    connection: sqlite3.Connection,
    span: Span,
    sound: Callable[[Segment], bool] | None = None,
    owner: SegmentOwner = MEMORIES,
    wanted: Callable[[str], bool] | None = None,
) -> Segment:
    """Read and check one segment, or only those of its arrays whose names are `wanted`; BadSegment if it is
    unusable."""
    own = f"{owner.own} AND first_seq = ?"
    (head,) = connection.execute(f"SELECT head FROM {owner.segments} WHERE {own}", span[:1]).fetchone()
    stored = connection.execute(f"SELECT name, rowid FROM {owner.arrays} WHERE {own}", span[:1]).fetchall()
    arrays = {name: _blob(connection, owner, rowid) for name, rowid in stored if wanted is None or wanted(name)}
    return segments.read(*span, head, arrays, sound, wanted)


def read_array(connection: sqlite3.Connection, span: Span, name: str) -> npt.NDArray[Any]:
    """Read one array of one segment of memories; BadSegment if it is unusable."""
    return read(connection, span, lambda _: True, wanted=name.__eq__).arrays[name]


def _blob(connection: sqlite3.Connection, owner: SegmentOwner, rowid: int) -> bytes:
    """Read one array by incremental I/O: a SELECT would copy it twice."""
    with connection.blobopen(owner.arrays, "data", rowid, readonly=True) as blob:
        return blob.read()


def next_span(connection: sqlite3.Connection, last: int, owner: SegmentOwner = MEMORIES) -> tuple[int, int] | None:
    """Return the rows from the last segment up to `last`, with as many of the newest segments as it is time to merge
    in."""
    chain = chain_of(connection, owner)
    covered = chain[-1][1] if chain else 0
    if last <= covered:
        return None
    taken = segments.count_to_absorb([span[2] for span in chain], last - covered)
    return chain[-taken][0] if taken else covered + 1, last


def outdated(
    connection: sqlite3.Connection, changes: int, most: int, owner: SegmentOwner = MEMORIES
) -> list[tuple[int, int]]:
    """Return the spans of all segments, if more than `most` changes came since they were packed."""
    chain = chain_of(connection, owner)
    behind = changes - min((span[3] for span in chain), default=changes)
    return [span[:2] for span in chain] if behind > most else []


def save(connection: sqlite3.Connection, segment: Segment, owner: SegmentOwner = MEMORIES) -> None:
    """Replace the segments that a segment covers. Do nothing if another process has written a newer one."""
    chain = chain_of(connection, owner)
    starts = {span[0] for span in chain} | {chain[-1][1] + 1 if chain else 1}
    if segment.first_seq not in starts or (chain and chain[-1][1] >= segment.last_seq):
        return
    drop_from(connection, segment.first_seq, owner)
    _insert(connection, segment, owner)


def replace(connection: sqlite3.Connection, segment: Segment, owner: SegmentOwner = MEMORIES) -> None:
    """Replace an older segment of the same span; do nothing if there is none."""
    found = connection.execute(
        f"DELETE FROM {owner.segments} WHERE {owner.own} AND first_seq = ? AND last_seq = ? AND changes <= ?",
        (segment.first_seq, segment.last_seq, segment.changes),
    )
    if found.rowcount:
        _insert(connection, segment, owner)


def prune_changes(connection: sqlite3.Connection) -> None:
    """Delete entries of the change log that all segments include, except the newest: other processes update their
    indexes by them, or rebuild these if they missed some."""
    (last,) = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone() or (0,)
    known = min((span[3] for span in chain_of(connection)), default=last)
    connection.execute("DELETE FROM changes WHERE n <= ?", (known - CHANGES_KEPT,))


def _insert(connection: sqlite3.Connection, segment: Segment, owner: SegmentOwner) -> None:
    own = owner.values
    connection.execute(
        f"INSERT INTO {owner.segments} VALUES ({', '.join('?' * (len(own) + 5))})",
        (*own, segment.first_seq, segment.last_seq, segment.rows, segment.changes, segments.header(segment)),
    )
    connection.executemany(
        f"INSERT INTO {owner.arrays} VALUES ({', '.join('?' * (len(own) + 3))})",
        [(*own, segment.first_seq, name, np.ascontiguousarray(array).data) for name, array in segment.arrays.items()],
    )


def covering_changes(connection: sqlite3.Connection) -> int | None:
    """Return the first segment that holds a row which has gone since it was packed; None if none does."""
    found = connection.execute(
        "SELECT min(s.first_seq) FROM segments s JOIN changes c "
        "ON c.n > s.changes AND c.tier IS NULL AND c.seq BETWEEN s.first_seq AND s.last_seq"
    ).fetchone()
    return None if found is None else found[0]


def drop_from(connection: sqlite3.Connection, first_seq: int, owner: SegmentOwner = MEMORIES) -> None:
    """Delete the segments from a row on."""
    for table in (owner.arrays, owner.segments):
        connection.execute(f"DELETE FROM {table} WHERE {owner.own} AND first_seq >= ?", (first_seq,))


def clear(connection: sqlite3.Connection) -> None:
    drop_from(connection, 0)
