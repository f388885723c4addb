"""Keep a vector engine in step with a store. The store is the truth: it holds every vector, says which rows came and
went, and answers by itself when the engine is down or behind. Nothing that was acknowledged depends on an engine."""

from __future__ import annotations

import json
import logging

import numpy as np

from ..errors import RemanenceError, StoreUnreachableError, VectorError
from ..filters import Filter
from ..forks import new_lock
from ..index.bits import top
from ..stores.breaker import CircuitBreaker
from ..stores.capabilities import VectorFeed, VectorState
from .base import FieldFilter, Fields, Vector, VectorIndex

log = logging.getLogger(__name__)

MARK = "vectors_mark"
BEHIND = 4096  # rows that the store compares itself, and that a recall may bring to the engine
_BATCH = 1024  # rows read and sent at a time
_SAVED = 4096  # rows after which it is noted how far the engine has come
_FURTHER = 4  # times as many hits where the engine does not know the whole filter
_MOST = 4096  # hits asked for at once
_NOTHING = VectorState(0, 0, "")
_FAILED = (StoreUnreachableError, VectorError)  # VectorError: a collection that holds others than ours


class VectorFollower:
    """One engine beside one store."""

    def __init__(self, store: VectorFeed, index: VectorIndex) -> None:
        self.store, self.index = store, index
        self._breaker = CircuitBreaker(index.name)
        self._lock = new_lock()
        self._mark: VectorState | None = None
        self._unsaved = self._written = 0

    @property
    def mark(self) -> VectorState:
        """How far the engine has come."""
        if self._mark is None:
            noted = json.loads(self.store.get_meta(MARK) or "{}")
            held = noted.get("index") == self.index.name
            self._mark = VectorState(noted["row"], noted["change"], noted["generation"]) if held else _NOTHING
        return self._mark

    def follow(self, most: int | None = None) -> bool:
        """Bring the engine up to the store, by at most so many rows; whether it is there."""
        with self._lock, self._breaker:
            now, mark = self.store.vector_state(), self.mark
            if now == mark:
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
            self.index.delete([seq for seq in gone if seq <= mark.row])
            self._mark = mark._replace(change=change)
            self._unsaved += sent + len(gone)
            if self._unsaved >= _SAVED or gone:
                self._save()
            return mark.row >= now.row

    def _anew(self, now: VectorState, mark: VectorState) -> VectorState:
        """Empty the engine: the store has other vectors now, or it is unknown what went."""
        if mark != _NOTHING:
            log.warning("the vectors at %s are filled in anew", self.index.name)
        self.index.clear(range(1, max(mark.row, now.row) + 1))
        self._mark = VectorState(0, now.change, now.generation)
        self._save()
        return self._mark

    def _send(self, mark: VectorState, now: VectorState) -> VectorState:
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
        noted = self.mark._asdict() | {"index": self.index.name}
        self.store.set_meta(MARK, json.dumps(noted))
        self._unsaved = 0

    def catch_up(self) -> bool:
        """Best-effort follow() before a recall; log failures. Whether the engine may be asked: it then lacks so few
        rows that the store compares those itself."""
        try:
            now, mark = self.store.vector_state(), self.mark
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
