"""The search indexes of a workspace: one for each column that a statement searches, built when it is first asked for
and kept up with the table, whoever writes to it.

An index declared with `USING deeplake_index` is one of these; a column without one is searched just the same."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Sequence
from threading import Lock
from typing import Protocol

import numpy as np

from ...errors import StatementTimeoutError
from ...forks import new_lock
from ..catalog import Column, Kind, Table
from ..engines.base import Changes, Rows
from .allowance import SHARED, Allowance
from .texts import TextColumn
from .vectors import VectorColumn, VectorsColumn

ColumnIndex = TextColumn | VectorColumn | VectorsColumn
Key = tuple[str, str]
"""The names of a table and a column."""

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

    @property
    def nbytes(self) -> int:
        return self.index.nbytes


class SearchIndexes:
    """Safe to use from many threads. What it hands out is as it was when it was asked for."""

    def __init__(self, engine: Followed, *, allowance: Allowance = SHARED) -> None:
        self._engine, self._allowance = engine, allowance
        self._lock = new_lock()
        self._following: dict[str, Lock] = {}
        self._followers: dict[Key, _Follower] = {}
        weakref.finalize(self, _release, allowance, self._followers)

    def follow(self, table: Table, names: Iterable[str]) -> dict[str, ColumnIndex]:
        """The indexes of some columns of a table, brought up to its present state."""
        with self._lock:
            following = self._following.setdefault(table.name, new_lock())
        with following:
            followers = {(table.name, name): self._follower(table, name) for name in sorted(set(names))}
            for version in sorted({one.version for one in followers.values()}):
                self._catch_up(table, [one for one in followers.values() if one.version == version])
            for one in followers.values():
                self._read(one)
            found = {name: one.index for (_, name), one in followers.items()}
        self._allowance.use({one: _Dropping(self, key, one) for key, one in followers.items()})
        return found

    def _follower(self, table: Table, name: str) -> _Follower:
        column = table.column(name)
        assert column is not None
        with self._lock:
            known = self._followers.get((table.name, name))
            if known is None or known.column != column:
                known = self._followers[table.name, name] = _Follower(column)
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

    @staticmethod
    def _read(follower: _Follower) -> None:
        """Index what is not indexed yet."""
        if isinstance(follower.index, TextColumn):
            try:
                follower.index.read()
            except StatementTimeoutError:
                raise  # the next statement goes on from here
            except BaseException:
                follower.start_again()
                raise

    def keep_only(self, tables: Collection[str]) -> None:
        """Drop the indexes of tables that are no more."""
        with self._lock:
            gone = [key for key in self._followers if key[0] not in tables]
            dropped = [self._followers.pop(key) for key in gone]
        if dropped:
            self._allowance.release(dropped)

    def drop(self, key: Key, follower: _Follower) -> None:
        """Let an index go, unless there is another in its place."""
        with self._lock:
            if self._followers.get(key) is follower:
                del self._followers[key]


class _Dropping:
    """Lets an index go; does not keep its workspace."""

    def __init__(self, indexes: SearchIndexes, key: Key, follower: _Follower) -> None:
        self._indexes, self._key, self._follower = weakref.ref(indexes), key, follower

    def __call__(self) -> None:
        indexes = self._indexes()
        if indexes is not None:
            indexes.drop(self._key, self._follower)


def _release(allowance: Allowance, followers: dict[Key, _Follower]) -> None:
    allowance.release(followers.values())
