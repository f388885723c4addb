"""The search indexes of a workspace: one per searched column, loaded from its segments or built at first use, and kept
up to date with the table, whoever writes to it. Engines with segments store them from time to time.

An index declared with `USING deeplake_index` is one of these; a column without one is searched in the same way."""

from __future__ import annotations

import logging
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from ...errors import StatementTimeoutError
from ...forks import new_lock
from ...index.arrays import first_of_each
from ..catalog import Column, Kind, Table
from ..engines.base import Engine, RowNumbers, SegmentStore, TableChanges
from ..sql.define import SEARCH
from .allowance import SHARED, Allowance
from .texts import TextColumn
from .vectors import VectorColumn, VectorsColumn

log = logging.getLogger(__name__)

ColumnIndex = TextColumn | VectorColumn | VectorsColumn
Key = tuple[str, str]
"""The names of a table and a column."""

SAVE_FROM = 2048  # rows missing or outdated in the segments of an index that are worth writing them
SAVE_BULK = 16_384  # rows inserted by this process after which the indexes of their table are brought up to date


class _ColumnFollower:
    """An index and the table version that it has read."""

    def __init__(self, table: str, column: Column, engine: Engine, indexes: SearchIndexes) -> None:
        self.table, self.column = table, column
        self._indexes = weakref.ref(indexes)
        self._segments = engine if isinstance(engine, SegmentStore) else None
        self.start_again()

    def start_again(self) -> None:
        self.index = _new_index(self.table, self.column, self._segments)
        self.version = 0
        self.behind = 0  # rows that its segments may lack
        self.unread = False  # whether there are texts that are not indexed yet

    def load(self) -> None:
        """Load the segments, if there are any."""
        if self._segments is not None and not isinstance(self.index, VectorsColumn):
            try:
                self.version = self._segments.load_segments(self.table, self.column.name, self.index)
            except StatementTimeoutError:
                self.start_again()
                raise
            except Exception:
                log.warning("the index of %s.%s is built anew", self.table, self.column.name, exc_info=True)
                self.start_again()

    def take(self, found: TableChanges, rows: RowNumbers, values: list[Any]) -> None:
        try:
            self.index.change(found.gone, rows, values)
        except BaseException:
            self.start_again()
            raise
        self.behind += rows.size + found.gone.size
        self.unread = isinstance(self.index, TextColumn)

    def read(self) -> None:
        """Index what is not indexed yet."""
        assert isinstance(self.index, TextColumn)
        try:
            self.index.read()
            self.unread = False
        except StatementTimeoutError:
            raise  # the next statement goes on from here
        except BaseException:
            self.start_again()
            raise

    def save(self, least: int) -> None:
        """Store new segments, best effort."""
        self.behind = 0
        if self._segments is None or isinstance(self.index, VectorsColumn):
            return
        try:
            self._segments.save_segments(self.table, self.column.name, self.index, self.version, least)
        except StatementTimeoutError:
            log.info("no time was left to keep the index of %s.%s", self.table, self.column.name)
        except Exception:
            log.warning("the index of %s.%s was not kept", self.table, self.column.name, exc_info=True)

    @property
    def nbytes(self) -> int:
        return self.index.nbytes

    def drop(self) -> None:
        """Leave the workspace, to be built again when it is needed."""
        indexes = self._indexes()
        if indexes is not None:
            indexes.drop((self.table, self.column.name), self)


def _new_index(table: str, column: Column, segments: SegmentStore | None) -> ColumnIndex:
    if column.type.kind is Kind.TEXT:
        return TextColumn()
    if column.type.kind is Kind.VECTORS:
        return VectorsColumn()
    return VectorColumn(None if segments is None else partial(segments.read_vectors, table, column.name))


class SearchIndexes:
    """Thread-safe. What it returns is a snapshot."""

    def __init__(self, engine: Engine, *, allowance: Allowance = SHARED) -> None:
        self._engine, self._allowance = engine, allowance
        self._lock = new_lock()
        self._following: dict[str, Lock] = {}
        self._followers: dict[Key, _ColumnFollower] = {}
        self._inserted: Counter[str] = Counter()
        weakref.finalize(self, allowance.release, self._followers.values())

    def after_insert(self, table: Table, rows: int) -> None:
        """Update declared indexes from time to time after inserts, so that the first search of each process need
        not."""
        declared = [name for index in table.indexes if index.method == SEARCH for name in index.columns]
        self._inserted[table.name] += rows
        if declared and self._inserted[table.name] >= SAVE_BULK and isinstance(self._engine, SegmentStore):
            self._inserted[table.name] = 0
            self.follow(table, declared)

    def follow(self, table: Table, names: Iterable[str], *, save_from: int = SAVE_FROM) -> dict[str, ColumnIndex]:
        """Return the indexes of some columns of a table, brought up to date."""
        with self._lock:
            following = self._following.get(table.name) or self._following.setdefault(table.name, new_lock())
        with following:
            followers = {(table.name, name): self._follower(table, name) for name in sorted(set(names))}
            for follower in followers.values():
                if follower.version == 0:
                    follower.load()
            for version in sorted({follower.version for follower in followers.values()}):
                self._catch_up(table, [follower for follower in followers.values() if follower.version == version])
            for follower in followers.values():
                if follower.unread:
                    follower.read()
                if follower.behind >= save_from:
                    follower.save(save_from)
            found = {name: follower.index for (_, name), follower in followers.items()}
        self._allowance.use(list(followers.values()))
        return found

    def _follower(self, table: Table, name: str) -> _ColumnFollower:
        column = table.column(name)
        assert column is not None
        with self._lock:
            known = self._followers.get((table.name, name))
            if known is None or known.column != column:
                known = self._followers[table.name, name] = _ColumnFollower(table.name, column, self._engine, self)
            return known

    def _catch_up(self, table: Table, followers: Sequence[_ColumnFollower]) -> None:
        """Read what changed since the version that these followers share."""
        names = [follower.column.name for follower in followers]
        more = True
        while more:
            found = self._engine.changes(table.name, names, followers[0].version)
            more = found.more
            if found.whole:
                for follower in followers:
                    follower.start_again()
            if found.gone.size or found.rows.size:
                latest = _latest_places(found.rows)
                rows: RowNumbers = found.rows[latest]
                for at, follower in enumerate(followers):
                    follower.take(found, rows, [found.values[place][at] for place in latest.tolist()])
            for follower in followers:
                follower.version = found.version

    def scrub(self) -> None:
        """Remove from segments the rows that this workspace changed or deleted."""
        if not isinstance(self._engine, SegmentStore):
            return
        for table, name, segment, found in self._engine.outdated_segments():
            column = table.column(name)
            assert column is not None
            index = _new_index(table.name, column, self._engine)
            assert not isinstance(index, VectorsColumn)
            index.absorb(segment)
            if index.drop_changed(found.gone, found.rows, [value for (value,) in found.values]):
                fresh = index.pack(segment.first_seq, segment.last_seq, segment.changes)
                self._engine.replace_segment(table.name, name, fresh)

    def keep_only(self, tables: Collection[str]) -> None:
        """Drop the indexes of tables that no longer exist."""
        with self._lock:
            gone = [key for key in self._followers if key[0] not in tables]
            dropped = [self._followers.pop(key) for key in gone]
        if dropped:
            self._allowance.release(dropped)

    def drop(self, key: Key, follower: _ColumnFollower) -> None:
        """Drop an index, unless another has replaced it."""
        with self._lock:
            if self._followers.get(key) is follower:
                del self._followers[key]


def _latest_places(rows: RowNumbers) -> RowNumbers:
    """Return the positions of rows, the last one for a repeated row."""
    if (rows[1:] > rows[:-1]).all():
        return np.arange(rows.size)
    return np.sort(rows.size - 1 - first_of_each(rows[::-1]))
