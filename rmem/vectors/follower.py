"""Keep a vector engine in step with a store. The store is the truth: it holds every vector, says which rows came and
went, and answers by itself when the engine is down or behind. Nothing that was acknowledged depends on an engine."""

from __future__ import annotations

import json
import logging
from typing import NamedTuple

import numpy as np

from ..errors import RemanenceError, StoreUnreachableError, VectorError
from ..feedback import new_token
from ..filters import Filter
from ..forks import new_lock
from ..index.bits import top
from ..stores.breaker import CircuitBreaker
from ..stores.capabilities import VectorFeed, VectorState
from .base import FieldFilter, Fields, Vector, VectorIndex

log = logging.getLogger(__name__)

BEHIND = 4096  # rows that the store compares itself, and that a recall may bring to the engine
_BATCH = 1024  # rows read and sent at a time
_SAVED = 4096  # rows after which it is noted how far the engine has come
_FURTHER = 4  # times as many hits where the engine does not know the whole filter
_MOST = 4096  # hits asked for at once
_FAILED = (StoreUnreachableError, VectorError)  # VectorError: a collection that holds others than ours


class Mark(NamedTuple):
    """How far an engine has come, and which filling of it this is: another one after it was emptied."""

    row: int = 0
    change: int = 0
    generation: str = ""
    filling: str = ""

    @property
    def state(self) -> VectorState:
        return VectorState(self.row, self.change, self.generation)


class VectorFollower:
    """One engine beside one store."""

    def __init__(self, store: VectorFeed, index: VectorIndex) -> None:
        self.store, self.index = store, index
        self._breaker = CircuitBreaker(index.name)
        self._lock = new_lock()
        self._mark: Mark | None = None
        self._key = f"vectors_mark {index.name}"
        self._unsaved = self._written = 0

    @property
    def mark(self) -> Mark:
        """How far the engine has come."""
        if self._mark is None:
            self._mark = self._noted()
        return self._mark

    def _noted(self) -> Mark:
        """How far it has come as the store notes it, for every process and for the next one."""
        return Mark(**json.loads(self.store.get_meta(self._key) or "{}"))

    def _adopt(self) -> Mark:
        """Take over what other processes have done meanwhile."""
        noted, mine = self._noted(), self.mark
        if noted.filling != mine.filling:
            self._mark = noted
        else:
            self._mark = mine._replace(row=max(mine.row, noted.row), change=max(mine.change, noted.change))
        return self._mark

    def follow(self, most: int | None = None) -> bool:
        """Bring the engine up to the store, by at most so many rows; whether it is there."""
        with self._lock, self._breaker:
            mark, now = self._adopt(), self.store.vector_state()
            if now == mark.state:
                return True
            went_back = (
                now.row < mark.row or now.change < mark.change
            )  # an older copy of the store was put in its place
            if now.generation != mark.generation or went_back or self.store.removed_after(mark.change) is None:
                mark = self._anew(now, mark)
            sent = 0
            while mark.row < now.row and (most is None or sent < most):
                mark = self._mark = self._send(mark, now)
                sent += _BATCH
            # After the rows: one that went while it was on its way is in this list.
            removed = self.store.removed_after(mark.change)
            if removed is None:
                return False
            gone, change = removed
            self.index.delete(gone)
            self._mark = mark._replace(change=change)
            self._unsaved += sent + len(gone)
            if self._unsaved >= _SAVED or gone:
                self._save()
            return mark.row >= now.row

    def _anew(self, now: VectorState, mark: Mark) -> Mark:
        """Empty the engine: the store has other vectors now, or it is unknown what went."""
        if mark.filling:
            log.warning("the vectors at %s are filled in anew", self.index.name)
        self._mark = Mark(0, now.change, now.generation, new_token())
        self._save()  # first: other processes must not take an engine for full that is being emptied
        self.index.clear(range(1, max(mark.row, now.row) + 1))
        return self._mark

    def _send(self, mark: Mark, now: VectorState) -> Mark:
        """The next rows to the engine; how far it has come then."""
        batch = [row for row in self.store.vectors_after(mark.row, _BATCH) if row.seq <= now.row]
        held = [row for row in batch if row.vector is not None]
        if held:
            self.index.upsert(
                [row.seq for row in held],
                np.stack([row.vector for row in held if row.vector is not None]),
                [Fields(row.agent, row.session or "", row.type, row.actor or "", row.time) for row in held],
            )
        return mark._replace(row=batch[-1].seq if batch else now.row)

    def _save(self) -> None:
        self.index.flush()
        self.store.set_meta(self._key, json.dumps(self.mark._asdict()))
        self._unsaved = 0

    def catch_up(self) -> bool:
        """Best-effort follow() before a recall; log failures. Whether the engine may be asked: it then lacks so few
        rows that the store compares those itself."""
        try:
            mark, now = self._adopt(), self.store.vector_state()
            if now.generation == mark.generation and now.row - mark.row <= BEHIND and now.change == mark.change:
                return True
            self.follow(BEHIND)
            return self.mark.generation == now.generation and now.row - self.mark.row <= BEHIND
        except _FAILED as error:
            log.warning("%s; the store compares vectors itself", error)
            return False

    def wrote(self, number: int) -> None:
        """Called after writes: from time to time, bring them to the engine. A failure is logged and concerns nobody."""
        self._written += number
        if self._written >= _BATCH:
            self._written = 0
            try:
                self.follow()
            except RemanenceError as error:  # the write is acknowledged, whatever happens here
                log.warning("%s", error)

    def forgotten(self, *, strict: bool) -> None:
        """Remove from the engine what the store has forgotten. With `strict`, raise if that cannot be done now."""
        try:
            self.follow()
        except _FAILED as error:
            if strict:
                raise StoreUnreachableError(
                    f"the memories are erased from the store, but their vectors are still at {self.index.name}: "
                    f"{error}. They are removed with the next recall or forget that reaches it, or by `rmem reindex`"
                ) from error
            log.warning("%s", error)

    def rebuild(self) -> int | None:
        """Empty the engine and fill it again from the store; how many vectors it has then, as far as it can tell."""
        with self._lock:
            self._anew(self.store.vector_state(), self.mark)
        self.follow()
        with self._lock:
            self._save()
        return self.index.count()

    def nearest(self, vector: Vector, count: int, where: Filter) -> list[int] | None:
        """The seqs of about the nearest rows, best first, some of them outside of the filter or gone; None if the
        engine cannot be asked."""
        fields = FieldFilter.of(where)
        wanted = min(_MOST, count if not where or self.knows(where) else _FURTHER * count)
        try:
            with self._breaker:
                found = self.index.search(vector, wanted, fields if where else None)
        except _FAILED as error:
            log.warning("%s; the store compares vectors itself", error)
            return None
        return [seq for seq, _ in found]

    def knows(self, where: Filter) -> bool:
        """Whether the engine regards all of a filter."""
        return self.index.filters and FieldFilter.of(where).covers(where)

    def newest(self, vector: Vector, count: int) -> list[int]:
        """The seqs of the nearest among the rows that the engine does not have yet, compared one by one."""
        rows = [row for row in self.store.vectors_after(self.mark.row, BEHIND) if row.vector is not None]
        if not rows:
            return []
        scores = np.stack([row.vector for row in rows if row.vector is not None]) @ vector
        return [rows[at].seq for at in top(scores, count).tolist()]

    def close(self) -> None:
        """Bring the engine up to the store, if it can be reached, and let it go."""
        try:
            self.follow()
            with self._lock:
                self._save()
        except RemanenceError as error:
            log.warning("%s", error)
        self.index.close()
