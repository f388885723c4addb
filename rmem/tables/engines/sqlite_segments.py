"""Store the search indexes of tables in the file: segments for each searched column, as for memories. Their vectors
stay in the rows.

Segments are a cache over spans of row numbers; the log of changes says what happened to those rows since, so that
anything missing, outdated or damaged is read from the rows again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...index.segments import BadSegment, Segment
from ...stores.sql import cache
from .base import TableChanges
from .sqlite_changes import Version, floor_of, segment_changes
from .sqlite_storage import Physical

if TYPE_CHECKING:
    from ..search.texts import TextColumn
    from ..search.vectors import VectorColumn

_MOST_STALE = 8  # one in so many rows may have changed before its segment is packed again


def owner_of(physical: Physical, column: str) -> cache.SegmentOwner:
    place = physical.columns[column]
    return cache.SegmentOwner("table_segments", "table_segment_arrays", (("table_id", physical.id), ("place", place)))


def pack(
    connection: sqlite3.Connection,
    owner: cache.SegmentOwner,
    physical: Physical,
    index: TextColumn | VectorColumn,
    known: Version,
    least: int,
) -> list[Segment]:
    """Return what to write: all spans if too many of their rows changed, and the rows after them."""
    chain = cache.chain_of(connection, owner)
    covered, rows = (chain[-1][1], sum(span[2] for span in chain)) if chain else (0, 0)
    since = min((span[3] for span in chain), default=known.change)
    counted = "SELECT count(*) FROM table_changes WHERE table_id = ? AND n > ? AND row <= ?"
    (stale,) = connection.execute(counted, (physical.id, since, covered)).fetchone()
    worn = stale >= max(least, rows // _MOST_STALE) or since < floor_of(connection, physical.id)
    spans = [span[:2] for span in chain] if worn else []
    fresh = cache.next_span(connection, known.row, owner) if known.row - covered >= least else None
    if fresh is not None:
        spans = [span for span in spans if span[1] < fresh[0]] + [fresh]
    return [index.pack(first, last, known.change) for first, last in spans]


def outdated_segments(
    connection: sqlite3.Connection, tables: Iterable[Physical]
) -> Iterator[tuple[Physical, str, Segment, TableChanges]]:
    """Yield the segments with rows that were changed or deleted since, and what became of them."""
    touching = "c.table_id = s.table_id AND c.n > s.changes AND c.row BETWEEN s.first_seq AND s.last_seq"
    stale = connection.execute(
        "SELECT table_id, place, first_seq, last_seq, rows, changes FROM table_segments s "
        f"WHERE EXISTS (SELECT 1 FROM table_changes c WHERE {touching})"
    ).fetchall()
    places = {(physical.id, place): (physical, name) for physical in tables for name, place in physical.columns.items()}
    for table, place, *rest in stale:
        physical, column = places[table, place]
        span = (rest[0], rest[1], rest[2], rest[3])
        try:
            segment = cache.read(connection, span, lambda _: True, owner_of(physical, column))
        except BadSegment:
            continue  # whoever searches next rebuilds it
        yield physical, column, segment, segment_changes(connection, physical, column, span)
