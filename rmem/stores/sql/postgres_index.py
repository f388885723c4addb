"""Recall indexes in memory over the rows of a tenant in PostgreSQL, updated by `seq` and by the change log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...feedback import FEEDBACK_ADDED, FEEDBACK_REMOVED
from ...index.recall_index import RecallIndex
from . import rows
from .postgres_link import PostgresConnection
from .rows import KIND

_READ_AHEAD = 4096  # rows at a time


class TenantState(NamedTuple):
    """The state of a tenant: its last row, its last change, how often it was re-embedded, its number of rows and their
    total length."""

    row: int
    change: int
    generation: int
    rows: int
    length: int

    def is_after(self, other: TenantState) -> bool:
        return (self.generation, self.change, self.row) > (other.generation, other.change, other.row)


def state(connection: PostgresConnection) -> TenantState:
    found = connection.execute("SELECT seq, change, generation, rows, length FROM heads").fetchone()
    return TenantState(0, 0, 0, 0, 0) if found is None else TenantState(*found)


class TenantSnapshot(NamedTuple):
    """The state of a tenant with the metadata of its vectors and terms."""

    state: TenantState
    meta: dict[str, str]

    @property
    def dimension(self) -> int | None:
        """The dimension of the vectors."""
        found = self.meta.get("dimension")
        return None if found is None else int(found)

    def after(self, added: int) -> TenantSnapshot:
        """Return the snapshot after rows were added that replaced none."""
        return self._replace(state=self.state._replace(row=self.state.row + added, rows=self.state.rows + added))


SNAPSHOT_KEYS = (*KIND, FEEDBACK_ADDED, FEEDBACK_REMOVED)
_READ_SNAPSHOT = (
    "SELECT h.seq, h.change, h.generation, h.rows, h.length, n.key, n.value FROM heads h "
    f"LEFT JOIN notes n ON n.key IN {SNAPSHOT_KEYS}"
)


def read_snapshot(connection: PostgresConnection) -> TenantSnapshot:
    found = connection.execute(_READ_SNAPSHOT).fetchall()
    if not found:
        return TenantSnapshot(TenantState(0, 0, 0, 0, 0), {})
    return TenantSnapshot(TenantState(*found[0][:5]), {key: value for *_, key, value in found if key is not None})


def dimension_of(connection: PostgresConnection) -> int | None:
    """Return the dimension of the vectors of a tenant."""
    found = connection.execute("SELECT value FROM notes WHERE key = 'dimension'").fetchone()
    return None if found is None else int(found[0])


def _first_change(connection: PostgresConnection, now: TenantState) -> int:
    """Return the oldest entry of the change log; the next number if it is empty."""
    found = connection.execute("SELECT min(n) FROM changes").fetchone()
    return now.change + 1 if found is None or found[0] is None else int(found[0])


class TenantFollower:
    """An index of all rows of a tenant, or of those of some agents."""

    def __init__(self, index: RecallIndex, agents: Sequence[str] | None = None) -> None:
        self.index = index
        self._agents = None if agents is None else list(agents)
        self.seen: TenantState | None = None

    def is_behind(self, now: TenantState) -> bool:
        return self.seen is None or not self.index.whole or self.seen[:3] != now[:3]

    def is_ahead(self, now: TenantState) -> bool:
        """Whether the index is newer than this state, because of another thread."""
        return self.seen is not None and self.index.whole and self.seen.is_after(now)

    def follow(self, connection: PostgresConnection, snapshot: TenantSnapshot) -> None:
        """Read the rows and changes up to a snapshot; rebuild if the rows were re-embedded, if a change of the index
        was interrupted, or if most of its rows are dead."""
        now = snapshot.state
        if self.is_ahead(now):
            return
        anew = (
            self.seen is None
            or now.generation != self.seen.generation
            or self.index.is_mostly_dead
            or not self.index.whole
            or (now.change > self.seen.change and self.seen.change + 1 < _first_change(connection, now))
        )
        with self.index.changing(anew=anew):
            self._read_changes(connection, snapshot, anew)

    def _read_changes(self, connection: PostgresConnection, snapshot: TenantSnapshot, anew: bool) -> None:
        now = snapshot.state
        if anew or self.seen is None:
            self.index.clear()
            self.seen = now._replace(row=0)
        last = self.seen.row
        while last < now.row:
            batch = self._next(connection, last, now.row)
            self.index.extend([rows.to_index_row(row, snapshot.dimension) for row in batch])
            last = batch[-1][0] if len(batch) == _READ_AHEAD else now.row
        if now.change > self.seen.change:
            self._change(connection, self.seen.change, snapshot.dimension)
        self.seen = now

    def _change(self, connection: PostgresConnection, last: int, dimension: int | None) -> None:
        """Apply the change log after an entry."""
        since = (last,)
        moved = connection.execute("SELECT seq, tier FROM changes WHERE n > ? AND tier IS NOT NULL ORDER BY n", since)
        if found := moved.fetchall():
            self.index.move(found, rows.moved_vectors(connection, found, dimension))
        for (seq,) in connection.execute("SELECT seq FROM changes WHERE n > ? AND tier IS NULL ORDER BY n", since):
            self.index.kill(seq)

    def _next(self, connection: PostgresConnection, last: int, end: int) -> list[tuple[Any, ...]]:
        if self._agents is None:
            return connection.execute(rows.READ_INDEX, (last, end, _READ_AHEAD)).fetchall()
        sql = rows.READ_INDEX.replace("WHERE", "WHERE agent = ANY(?) AND")
        return connection.execute(sql, (self._agents, last, end, _READ_AHEAD)).fetchall()
