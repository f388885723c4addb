"""The recall index of one process over the rows in Redis, with the agent and id of each row and the position up to
which each agent was read. Row numbers (`seq`) are local to the process. Callers hold the lock of the index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..errors import StoreCorruptError
from ..index.recall_index import IndexRow, RecallIndex
from .indexed import index_row
from .redis_rows import RedisRow

_MANY_PENDING = 256


class ReadPosition(NamedTuple):
    """The position up to which an agent's rows and removals were read, in the history `epoch`."""

    epoch: bytes = b""
    rows: int = 0
    gone: int = 0


START = ReadPosition()


class Update(NamedTuple):
    """Rows and removals after a position; with `anew`, they replace all earlier rows."""

    seen: ReadPosition
    anew: bool
    gone: Sequence[str]
    rows: Sequence[RedisRow]


class Mirror:
    """The rows of one namespace, as far as this process has read them."""

    def __init__(self, index: RecallIndex) -> None:
        self._index = index
        self._last = 0
        self._names: dict[int, tuple[str, str]] = {}  # seq → agent, id
        self.reset()

    def reset(self) -> None:
        """Remove all rows. Rows that were just returned can still be found by `name`."""
        with self._index.changing(anew=True):
            self._index.clear()
            self._old_names, self._names = self._names, {}
            self._seen: dict[str, ReadPosition] = {}
            self._seqs: dict[str, dict[str, int]] = {}  # agent → id → seq
            self._pending: list[IndexRow] = []  # written by this process, not yet in the index

    def seen(self, agent: str) -> ReadPosition:
        return self._seen.get(agent, START)

    def covers(self, agent: str, needed: ReadPosition) -> bool:
        """Whether an agent was read at least up to a position."""
        seen = self.seen(agent)
        return self._index.whole and (
            needed == START or (seen.epoch == needed.epoch and seen.rows >= needed.rows and seen.gone >= needed.gone)
        )

    def agents(self) -> list[str]:
        return list(self._seen)

    def name(self, seq: int) -> tuple[str, str] | None:
        """Return the agent and the id of a row; None if it was removed."""
        return self._names.get(seq) or self._old_names.get(seq)

    @property
    def needs_reset(self) -> bool:
        """Whether the index must be built again: a change was interrupted, or most rows are dead."""
        return not self._index.whole or self._index.is_mostly_dead

    def apply(self, agent: str, position: ReadPosition, update: Update, dimension: int | None) -> bool:
        """Apply an update that was read from `position` on; return False if the index has moved on meanwhile."""
        if self.seen(agent) != position:
            return False
        with self._index.changing():
            self.index_pending()
            if update.anew:
                self.drop(agent)
            self._kill(agent, update.gone)
            self._kill(agent, [row.memory.memory_id for row in update.rows])
            try:
                self._index.extend([self._number(row, dimension) for row in update.rows])
            except StoreCorruptError:  # the other rows may be of another embedder, from before all were removed
                self.reset()
                raise
            if update.seen.epoch:
                self._seen[agent] = update.seen
        return True

    def add_written(
        self, agent: str, epoch: bytes, before: int, rows: Sequence[RedisRow], dimension: int | None
    ) -> None:
        """Add rows that this process has written at the clock `before`; do nothing if others wrote in between."""
        if not self._follows(agent, epoch, before):
            return
        with self._index.changing():
            for row in rows:
                if row.memory.memory_id in self._seqs.get(agent, ()):
                    self.index_pending()
                    self._kill(agent, [row.memory.memory_id])
                self._pending.append(self._number(row, dimension))
            self._advance(agent, epoch, before + len(rows))
            if len(self._pending) >= _MANY_PENDING:
                self.index_pending()

    def add_removed(self, agent: str, epoch: bytes, before: int, ids: Sequence[str]) -> None:
        """Apply removals by this process at the clock `before`; do nothing if others wrote in between."""
        if self._follows(agent, epoch, before):
            with self._index.changing():
                self.index_pending()
                self._kill(agent, ids)
                self._advance(agent, epoch, before + len(ids))

    def index_pending(self) -> None:
        """Add the pending rows to the index."""
        if self._pending:
            with self._index.changing():
                waiting, self._pending = self._pending, []
                self._index.extend(waiting)

    def drop(self, agent: str) -> None:
        """Remove the rows of an agent."""
        with self._index.changing():
            self.index_pending()
            self._kill(agent, list(self._seqs.get(agent, ())))
            self._seen.pop(agent, None)
            self._seqs.pop(agent, None)
            if not self._index.alive:
                self._index.clear()  # new vectors may have another dimension

    def _follows(self, agent: str, epoch: bytes, before: int) -> bool:
        seen = self.seen(agent)
        return seen == (epoch, before, before) or (seen == START and before == 0)

    def _advance(self, agent: str, epoch: bytes, clock: int) -> None:
        self._seen[agent] = ReadPosition(epoch, clock, clock)

    def _number(self, row: RedisRow, dimension: int | None) -> IndexRow:
        self._last += 1
        memory = row.memory
        self._seqs.setdefault(memory.agent_id, {})[memory.memory_id] = self._last
        self._names[self._last] = memory.agent_id, memory.memory_id
        return index_row(memory, row.derived, self._last, row.original_seq, dimension)

    def _kill(self, agent: str, ids: Iterable[str]) -> None:
        seqs = self._seqs.get(agent, {})
        for memory_id in ids:
            seq = seqs.pop(memory_id, None)
            if seq is not None:
                del self._names[seq]
                self._index.kill(seq)
