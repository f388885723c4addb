"""The search indexes of a workspace: one for each column that a statement searches, built when it is first asked for
and kept up with the table, whoever writes to it.

An index declared with `USING deeplake_index` is one of these; a column without one is searched just the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import RLock
from typing import Protocol

import numpy as np

from ..catalog import Column, Kind, Table
from ..engines.base import Changes, Rows
from .texts import TextColumn
from .vectors import VectorColumn, VectorsColumn

BUDGET = 4 << 30
"""Bytes that the indexes of a workspace may take before those that were not used for longest are dropped."""

ColumnIndex = TextColumn | VectorColumn | VectorsColumn
_KINDS: dict[Kind, type[ColumnIndex]] = {
    Kind.TEXT: TextColumn,
    Kind.VECTOR: VectorColumn,
    Kind.VECTORS: VectorsColumn,
}


class Followed(Protocol):
    """What an index reads of an engine."""

    def changes(self, table: str, columns: Sequence[str], since: int) -> Changes: ...


class _Follower:
    """An index and the version of the table that it knows."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.start_again()

    def start_again(self) -> None:
        self.index = _KINDS[self.column.type.kind]()
        self.version = 0


class SearchIndexes:
    """Safe to use from many threads. What it hands out is as it was when it was asked for."""

    def __init__(self, engine: Followed, *, budget: int = BUDGET) -> None:
        self._engine, self._budget = engine, budget
        self._lock = RLock()
        self._locks: dict[str, RLock] = {}
        self._followers: dict[tuple[str, str], _Follower] = {}  # the last is the one used last

    def follow(self, table: Table, names: Iterable[str]) -> dict[str, ColumnIndex]:
        """The indexes of some columns of a table, brought up to its present state."""
        with self._lock:
            lock = self._locks.setdefault(table.name, RLock())
        with lock:
            followers = [self._follower(table, name) for name in sorted(set(names))]
            for version in sorted({one.version for one in followers}):
                self._catch_up(table, [one for one in followers if one.version == version])
            found = {one.column.name: one.index for one in followers}
        self._drop_unused(followers)
        return found

    def _follower(self, table: Table, name: str) -> _Follower:
        column = table.column(name)
        assert column is not None
        key = table.name, name
        with self._lock:
            known = self._followers.pop(key, None)
            if known is None or known.column != column:
                known = _Follower(column)
            self._followers[key] = known
            return known

    def _catch_up(self, table: Table, followers: Sequence[_Follower]) -> None:
        """Take what happened since the version that these have in common."""
        names = [one.column.name for one in followers]
        found = self._engine.changes(table.name, names, followers[0].version)
        if found.whole:
            for one in followers:
                one.start_again()
        if found.gone.size or found.rows.size:
            _, last = np.unique(found.rows[::-1], return_index=True)  # a row told twice counts as told last
            told = np.sort(found.rows.size - 1 - last)
            rows: Rows = found.rows[told]
            for at, one in enumerate(followers):
                try:
                    one.index.change(found.gone, rows, [found.values[place][at] for place in told.tolist()])
                except BaseException:
                    one.start_again()
                    raise
        for one in followers:
            one.version = found.version

    def _drop_unused(self, needed: Sequence[_Follower]) -> None:
        with self._lock:
            sizes = {key: one.index.nbytes for key, one in self._followers.items()}
            total = sum(sizes.values())
            for key, size in sizes.items():
                if total <= self._budget:
                    break
                if self._followers[key] not in needed:
                    del self._followers[key]
                    total -= size

    def forget(self, table: str) -> None:
        """Drop the indexes of a table."""
        with self._lock:
            self._followers = {key: one for key, one in self._followers.items() if key[0] != table}
