"""Recall indexes over rows in PostgreSQL, held in memory and following the rows by `seq` and by the change log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...feedback import FEEDBACK_ADDED, FEEDBACK_REMOVED
from ...index.recall_index import RecallIndex
from . import rows
from .postgres_link import Connection
from .rows import KIND

_READ_AHEAD = 4096  # rows at a time


class State(NamedTuple):
    """How far a tenant has come: its last row, its last change, and how often it was re-embedded; how many rows it has
    and how long they are together."""

    row: int
    change: int
    generation: int
    rows: int
    length: int

    def is_after(self, other: State) -> bool:
        return (self.generation, self.change, self.row) > (other.generation, other.change, other.row)


def state(connection: Connection) -> State:
    found = connection.execute("SELECT seq, change, generation, rows, length FROM heads").fetchone()
    return State(0, 0, 0, 0, 0) if found is None else State(*found)


class Look(NamedTuple):
    """How far a tenant has come, and what is noted of its vectors and terms."""

    state: State
    meta: dict[str, str]

    @property
    def dimension(self) -> int | None:
        """How many numbers the vectors have."""
        found = self.meta.get("dimension")
        return None if found is None else int(found)

    def after(self, added: int) -> Look:
        """Return how things stand when rows were added, if they replaced none."""
        return self._replace(state=self.state._replace(row=self.state.row + added, rows=self.state.rows + added))


LOOKED_AT = (*KIND, FEEDBACK_ADDED, FEEDBACK_REMOVED)
_LOOK = (
    "SELECT h.seq, h.change, h.generation, h.rows, h.length, n.key, n.value FROM heads h "
    f"LEFT JOIN notes n ON n.key IN {LOOKED_AT}"
)


def look(connection: Connection) -> Look:
    found = connection.execute(_LOOK).fetchall()
    if not found:
        return Look(State(0, 0, 0, 0, 0), {})
    return Look(State(*found[0][:5]), {key: value for *_, key, value in found if key is not None})


def dimension_of(connection: Connection) -> int | None:
    """Return how many numbers the vectors of a tenant have."""
    found = connection.execute("SELECT value FROM notes WHERE key = 'dimension'").fetchone()
    return None if found is None else int(found[0])


def _first_change(connection: Connection, now: State) -> int:
    """Return the oldest entry that the change log still has; the next one if it has none."""
    found = connection.execute("SELECT min(n) FROM changes").fetchone()
    return now.change + 1 if found is None or found[0] is None else int(found[0])


class Follower:
    """An index of all rows of a tenant, or of those of some agents."""

    def __init__(self, index: RecallIndex, agents: Sequence[str] | None = None) -> None:
        self.index = index
        self._agents = None if agents is None else list(agents)
        self.seen: State | None = None

    def is_behind(self, now: State) -> bool:
        return self.seen is None or not self.index.whole or self.seen[:3] != now[:3]

    def is_ahead(self, now: State) -> bool:
        """Whether another thread, which began later, has taken in more than there is to see now."""
        return self.seen is not None and self.index.whole and self.seen.is_after(now)

    def follow(self, connection: Connection, seen: Look) -> None:
        """Take in the rows and changes up to a look; start anew if the rows were re-embedded, if a change of the index
        was interrupted, or if most of its rows are dead."""
        now = seen.state
        if self.is_ahead(now):
            return
        anew = (
            self.seen is None
            or now.generation != self.seen.generation
            or self.index.crowded
            or not self.index.whole
            or (now.change > self.seen.change and self.seen.change + 1 < _first_change(connection, now))
        )
        with self.index.changing(anew=anew):
            self._take_in(connection, seen, anew)

    def _take_in(self, connection: Connection, seen: Look, anew: bool) -> None:
        now = seen.state
        if anew or self.seen is None:
            self.index.clear()
            self.seen = now._replace(row=0)
        last = self.seen.row
        while last < now.row:
            batch = self._next(connection, last, now.row)
            self.index.extend([rows.to_index_row(row, seen.dimension) for row in batch])
            last = batch[-1][0] if len(batch) == _READ_AHEAD else now.row
        if now.change > self.seen.change:
            self._change(connection, self.seen.change, seen.dimension)
        self.seen = now

    def _change(self, connection: Connection, last: int, dimension: int | None) -> None:
        """Take in what became of rows since a change."""
        since = (last,)
        moved = connection.execute("SELECT seq, tier FROM changes WHERE n > ? AND tier IS NOT NULL ORDER BY n", since)
        if found := moved.fetchall():
            self.index.move(found, rows.moved_vectors(connection, found, dimension))
        for (seq,) in connection.execute("SELECT seq FROM changes WHERE n > ? AND tier IS NULL ORDER BY n", since):
            self.index.kill(seq)

    def _next(self, connection: Connection, last: int, end: int) -> list[tuple[Any, ...]]:
        if self._agents is None:
            return connection.execute(rows.READ_INDEX, (last, end, _READ_AHEAD)).fetchall()
        sql = rows.READ_INDEX.replace("WHERE", "WHERE agent = ANY(?) AND")
        return connection.execute(sql, (self._agents, last, end, _READ_AHEAD)).fetchall()
