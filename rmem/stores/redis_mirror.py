"""One process's view of the rows in Redis: the recall index over them, the agent of each row, and how far each agent's
changes have been read. Row numbers (`seq`) are local to the process, in the order in which rows arrived. Callers hold
the lock of the index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..errors import StoreCorruptError
from ..index.recall_index import IndexRow, RecallIndex
from .indexed import index_row
from .redis_rows import Row

_MANY_PENDING = 256


class Seen(NamedTuple):
    """Up to which change of which history an agent's rows and removals are known."""

    epoch: bytes = b""
    rows: int = 0
    gone: int = 0


NOTHING = Seen()


class News(NamedTuple):
    """What follows on what was seen; `anew` if it takes the place of it."""

    seen: Seen
    anew: bool
    gone: Sequence[str]
    rows: Sequence[Row]


class Mirror:
    def __init__(self, index: RecallIndex) -> None:
        self._index = index
        self._last = 0
        self._names: dict[int, tuple[str, str]] = {}  # seq → agent, id
        self.reset()

    def reset(self) -> None:
        """Forget all rows. FilteredRowsCache that were just taken still find theirs by name."""
        with self._index.changing(anew=True):
            self._index.clear()
            self._old_names, self._names = self._names, {}
            self._seen: dict[str, Seen] = {}
            self._seqs: dict[str, dict[str, int]] = {}  # agent → id → seq
            self._pending: list[IndexRow] = []  # written by this process, on their way into the index

    def seen(self, agent: str) -> Seen:
        return self._seen.get(agent, NOTHING)

    def covers(self, agent: str, needed: Seen) -> bool:
        """Whether an agent is here at least up to what is needed."""
        seen = self.seen(agent)
        return self._index.whole and (
            needed == NOTHING or (seen.epoch == needed.epoch and seen.rows >= needed.rows and seen.gone >= needed.gone)
        )

    def agents(self) -> list[str]:
        return list(self._seen)

    def name(self, seq: int) -> tuple[str, str] | None:
        """The agent and the id of a row that is still there."""
        return self._names.get(seq) or self._old_names.get(seq)

    @property
    def outworn(self) -> bool:
        """Whether it is time to start anew: a change was interrupted, or most rows are dead."""
        return not self._index.whole or self._index.crowded

    def take(self, agent: str, asked: Seen, news: News, dimension: int | None) -> bool:
        """Follow Redis by one answer; False if `asked` is no longer what was seen, so that it is out of date."""
        if self.seen(agent) != asked:
            return False
        with self._index.changing():
            self.index_pending()
            if news.anew:
                self.drop(agent)
            self._kill(agent, news.gone)
            self._kill(agent, [row.memory.memory_id for row in news.rows])
            try:
                self._index.extend([self._number(row, dimension) for row in news.rows])
            except StoreCorruptError:  # the others here may be those of another embedder, from before all were removed
                self.reset()
                raise
            if news.seen.epoch:
                self._seen[agent] = news.seen
        return True

    def wrote(self, agent: str, epoch: bytes, before: int, rows: Sequence[Row], dimension: int | None) -> None:
        """Rows that this process has written at the clock `before`; left to be read if others wrote in between."""
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

    def removed(self, agent: str, epoch: bytes, before: int, ids: Sequence[str]) -> None:
        """The same for removals."""
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
        """Forget the rows of an agent."""
        with self._index.changing():
            self.index_pending()
            self._kill(agent, list(self._seqs.get(agent, ())))
            self._seen.pop(agent, None)
            self._seqs.pop(agent, None)
            if not self._index.alive:
                self._index.clear()  # its vectors may have had another dimension than those to come

    def _follows(self, agent: str, epoch: bytes, before: int) -> bool:
        seen = self.seen(agent)
        return seen == (epoch, before, before) or (seen == NOTHING and before == 0)

    def _advance(self, agent: str, epoch: bytes, clock: int) -> None:
        self._seen[agent] = Seen(epoch, clock, clock)

    def _number(self, row: Row, dimension: int | None) -> IndexRow:
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
