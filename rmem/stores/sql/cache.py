"""Segments in the file: which spans of rows they cover, loading those that can be trusted, adding new ones.

Segments follow one another without gaps from the first row on. Whatever breaks that chain (one deleted,
truncated, damaged or of another version) and everything behind the break counts as not covered."""

from __future__ import annotations

import logging
import sqlite3
from typing import NamedTuple

import numpy as np

from ...index import segments
from ...index.recall_index import RecallIndex
from ...index.segments import Segment

log = logging.getLogger(__name__)

SETTLE_FROM = 2048  # rows behind the last segment that are worth a new one
SETTLE_BULK = 16_384  # the same while rows come in thousands
CHANGES_FROM = 8192  # changes behind the oldest segment that are worth packing all of them again
CHANGES_KEPT = 4096  # entries of the change log that stay although no segment needs them


def _chain(connection: sqlite3.Connection) -> list[tuple[int, int, int, int]]:
    """(first_seq, last_seq, rows, changes) of the segments that follow one another from the first row."""
    chain: list[tuple[int, int, int, int]] = []
    for span in connection.execute("SELECT first_seq, last_seq, rows, changes FROM segments ORDER BY first_seq"):
        if span[0] != (chain[-1][1] + 1 if chain else 1):
            break
        chain.append(span)
    return chain


def uncovered(connection: sqlite3.Connection) -> int:
    """How many sequence numbers lie behind the last segment."""
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'memories'").fetchone()
    chain = _chain(connection)
    return (found[0] if found else 0) - (chain[-1][1] if chain else 0)


def changes_behind(connection: sqlite3.Connection) -> int:
    """How many changes the change log holds that are older than need be."""
    (last,) = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone() or (0,)
    (first,) = connection.execute("SELECT min(n) FROM changes").fetchone()
    return 0 if first is None else max(0, last - first + 1 - CHANGES_KEPT)


class Loaded(NamedTuple):
    """How far the segments brought an index, and where trust ended."""

    row: int  # up to this one
    changes: int | None  # right up to this change; None if it holds no rows
    distrusted: int | None  # first_seq of the first segment that cannot be used


def load(connection: sqlite3.Connection, index: RecallIndex, dimension: int | None) -> Loaded:
    """Fill an empty index from the segments. Whatever is wrong with one, its rows and those behind it are read
    instead."""
    chain = _chain(connection)
    index.reserve(sum(span[2] for span in chain) + 1024)
    known: list[int] = []
    row = 0
    for first_seq, last_seq, rows, changes in chain:
        try:
            segment = read(connection, first_seq, last_seq, rows, changes, dimension)
        except segments.BadSegment as error:
            log.warning("segment %d-%d is rebuilt from the rows: %s", first_seq, last_seq, error)
            return Loaded(row, min(known, default=None), first_seq)
        segments.absorb(index, segment)
        known.append(changes)
        row = last_seq
    (count,) = connection.execute("SELECT count(*) FROM segments").fetchone()
    return Loaded(row, min(known, default=None), row + 1 if count > len(chain) else None)


def read(
    connection: sqlite3.Connection, first_seq: int, last_seq: int, rows: int, changes: int, dimension: int | None
) -> Segment:
    """One segment, checked; BadSegment if it cannot be trusted."""
    (head,) = connection.execute("SELECT head FROM segments WHERE first_seq = ?", (first_seq,)).fetchone()
    stored = connection.execute("SELECT name, rowid FROM segment_arrays WHERE first_seq = ?", (first_seq,)).fetchall()
    arrays = {name: _blob(connection, rowid) for name, rowid in stored}
    segment = segments.read(first_seq, last_seq, rows, changes, head, arrays)
    codes = segment.arrays.get("vectors.codes")
    if codes is not None and dimension is not None and codes.shape[1] != dimension:
        raise segments.BadSegment(f"its vectors have {codes.shape[1]} numbers, those of the store {dimension}")
    return segment


def _blob(connection: sqlite3.Connection, rowid: int) -> bytes:
    """One array. SELECT would bring it together in SQLite first and copy it then."""
    with connection.blobopen("segment_arrays", "data", rowid, readonly=True) as blob:
        return blob.read()


def next_segment(connection: sqlite3.Connection, index: RecallIndex, last: int, changes: int) -> Segment | None:
    """The rows from the last segment up to `last`, with as many of the newest segments as it is time to merge in."""
    chain = _chain(connection)
    covered = chain[-1][1] if chain else 0
    if last <= covered:
        return None
    taken = segments.swallowed([span[2] for span in chain], last - covered)
    first = chain[-taken][0] if taken else covered + 1
    return segments.pack(index, first, last, changes)


def outdated(connection: sqlite3.Connection, index: RecallIndex, changes: int) -> list[tuple[int, int]]:
    """The spans of all segments, if so much has changed since they were packed that it is time to pack them again."""
    chain = _chain(connection)
    behind = changes - min((span[3] for span in chain), default=changes)
    return [span[:2] for span in chain] if behind > max(CHANGES_FROM, index.alive // 2) else []


def save(connection: sqlite3.Connection, segment: Segment) -> None:
    """Put a segment in the place of those that it covers. One that another process has overtaken is dropped."""
    chain = _chain(connection)
    starts = {span[0] for span in chain} | {chain[-1][1] + 1 if chain else 1}
    if segment.first_seq not in starts or (chain and chain[-1][1] >= segment.last_seq):
        return
    drop_from(connection, segment.first_seq)
    _insert(connection, segment)


def replace(connection: sqlite3.Connection, segment: Segment) -> None:
    """Put a segment in the place of one with the same span that knows less; nothing if there is none any more."""
    found = connection.execute(
        "DELETE FROM segments WHERE first_seq = ? AND last_seq = ? AND changes <= ?",
        (segment.first_seq, segment.last_seq, segment.changes),
    )
    if found.rowcount:
        _insert(connection, segment)


def prune_changes(connection: sqlite3.Connection) -> None:
    """Delete the entries of the change log that every segment knows, but for the newest: processes that have the file
    open follow by them, and read their index anew if they come too late."""
    (last,) = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone() or (0,)
    known = min((span[3] for span in _chain(connection)), default=last)
    connection.execute("DELETE FROM changes WHERE n <= ?", (known - CHANGES_KEPT,))


def _insert(connection: sqlite3.Connection, segment: Segment) -> None:
    connection.execute(
        "INSERT INTO segments VALUES (?, ?, ?, ?, ?)",
        (segment.first_seq, segment.last_seq, segment.rows, segment.changes, segments.header(segment)),
    )
    connection.executemany(
        "INSERT INTO segment_arrays VALUES (?, ?, ?)",
        [(segment.first_seq, name, np.ascontiguousarray(array).data) for name, array in segment.arrays.items()],
    )


def covering_changes(connection: sqlite3.Connection) -> int | None:
    """The first segment that holds a row which has gone since it was packed; None if none does."""
    found = connection.execute(
        "SELECT min(s.first_seq) FROM segments s JOIN changes c "
        "ON c.n > s.changes AND c.tier IS NULL AND c.seq BETWEEN s.first_seq AND s.last_seq"
    ).fetchone()
    return None if found is None else found[0]


def drop_from(connection: sqlite3.Connection, first_seq: int) -> None:
    """Remove the segments from a row on."""
    connection.execute("DELETE FROM segment_arrays WHERE first_seq >= ?", (first_seq,))
    connection.execute("DELETE FROM segments WHERE first_seq >= ?", (first_seq,))


def clear(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM segment_arrays")
    connection.execute("DELETE FROM segments")
