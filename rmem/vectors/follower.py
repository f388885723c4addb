"""Synchronise a vector engine with a store. The store holds every vector and lists which rows were added and removed;
it searches itself while the engine is down or behind. No acknowledged write depends on an engine."""

from __future__ import annotations

import json
import logging
from typing import NamedTuple

import numpy as np

from ..errors import RemanenceError, StoreUnreachableError, VectorError
from ..feedback import new_token
from ..filters import Filter
from ..forks import new_lock
from ..index.arrays import products
from ..index.best_scores import top
from ..stores.breaker import CircuitBreaker
from ..stores.capabilities import VectorFeed, VectorState
from .base import FieldFilter, Fields, Vector, VectorIndex

log = logging.getLogger(__name__)

MAX_BEHIND = 4096  # rows that the store compares itself, and that a recall may send to the engine
_BATCH = 1024  # rows read and sent at a time
_SAVE_EVERY = 4096  # rows
_OVERSAMPLING = 4  # for filters that the engine applies only in part
_MAX_HITS = 4096  # of one search
_FAILURES = (StoreUnreachableError, VectorError)  # VectorError: a collection with vectors that are not ours


class SyncPosition(NamedTuple):
    """The last row and change that an engine has. `filling` is a new token whenever the engine is emptied."""

    row: int = 0
    change: int = 0
    generation: str = ""
    filling: str = ""

    @property
    def state(self) -> VectorState:
        return VectorState(self.row, self.change, self.generation)


class VectorFollower:
    """One engine that follows one store."""

    def __init__(self, store: VectorFeed, index: VectorIndex) -> None:
        self.store, self.index = store, index
        self._breaker = CircuitBreaker(index.name)
        self._lock = new_lock()
        self._position: SyncPosition | None = None
        self._key = f"vectors_mark {index.name}"
        self._unsaved = self._written = 0

    @property
    def position(self) -> SyncPosition:
        """The position of the engine, as far as this process knows."""
        if self._position is None:
            self._position = self._saved()
        return self._position

    def _saved(self) -> SyncPosition:
        """Read the position that all processes share from the store."""
        return SyncPosition(**json.loads(self.store.get_meta(self._key) or "{}"))

    def _refresh(self) -> SyncPosition:
        """Update the position by what other processes have sent meanwhile."""
        saved, own = self._saved(), self.position
        if saved.filling != own.filling:
            self._position = saved
        else:
            self._position = own._replace(row=max(own.row, saved.row), change=max(own.change, saved.change))
        return self._position

    def sync(self, limit: int | None = None) -> bool:
        """Send rows and removals of the store to the engine, about `limit` rows; return whether it is up to date."""
        with self._lock, self._breaker:
            position, now = self._refresh(), self.store.vector_state()
            if now == position.state:
                return True
            restored = now.row < position.row or now.change < position.change  # the store was replaced by an older copy
            if now.generation != position.generation or restored or self.store.removed_after(position.change) is None:
                position = self._reset(now, position)
            sent = 0
            while position.row < now.row and (limit is None or sent < limit):
                position = self._position = self._send(position, now)
                sent += _BATCH
            # After the rows: this list includes those that were removed while they were sent.
            removed = self.store.removed_after(position.change)
            if removed is None:
                return False
            seqs, change = removed
            self.index.delete(seqs)
            self._position = position._replace(change=change)
            self._unsaved += sent + len(seqs)
            if self._unsaved >= _SAVE_EVERY or seqs:
                self._save()
            return position.row >= now.row

    def _reset(self, now: VectorState, position: SyncPosition) -> SyncPosition:
        """Empty the engine: the store has other vectors now, or no longer lists what was removed."""
        if position.filling:
            log.warning("the vectors at %s are filled in anew", self.index.name)
        self._position = SyncPosition(0, now.change, now.generation, new_token())
        self._save()  # first: other processes must not search an engine that is being emptied
        self.index.clear(range(1, max(position.row, now.row) + 1))
        return self._position

    def _send(self, position: SyncPosition, now: VectorState) -> SyncPosition:
        """Send the next batch of rows to the engine; return its new position."""
        batch = [row for row in self.store.vectors_after(position.row, _BATCH) if row.seq <= now.row]
        held = [row for row in batch if row.vector is not None]
        if held:
            self.index.upsert(
                [row.seq for row in held],
                np.stack([row.vector for row in held if row.vector is not None]),
                [Fields(row.agent, row.session or "", row.type, row.actor or "", row.time) for row in held],
            )
        return position._replace(row=batch[-1].seq if batch else now.row)

    def _save(self) -> None:
        self.index.flush()
        self.store.set_meta(self._key, json.dumps(self.position._asdict()))
        self._unsaved = 0

    def catch_up(self) -> bool:
        """Best-effort sync() before a recall; log failures. Return whether the engine can be searched: it lacks at most
        MAX_BEHIND rows, which the store compares itself."""
        try:
            position, now = self._refresh(), self.store.vector_state()
            if (
                now.generation == position.generation
                and now.row - position.row <= MAX_BEHIND
                and now.change == position.change
            ):
                return True
            self.sync(MAX_BEHIND)
            return self.position.generation == now.generation and now.row - self.position.row <= MAX_BEHIND
        except _FAILURES as error:
            log.warning("%s; the store compares vectors itself", error)
            return False

    def on_write(self, count: int) -> None:
        """Count written memories and send them to the engine from time to time; log failures."""
        self._written += count
        if self._written >= _BATCH:
            self._written = 0
            try:
                self.sync()
            except RemanenceError as error:  # the store has acknowledged the write
                log.warning("%s", error)

    def on_removal(self, *, strict: bool) -> None:
        """Remove from the engine what was removed from the store; log failures, or raise them if `strict`."""
        try:
            self.sync()
        except _FAILURES as error:
            if strict:
                raise StoreUnreachableError(
                    f"the memories are erased from the store, but their vectors are still at {self.index.name}: "
                    f"{error}. They are removed with the next recall or forget that reaches it, or by `rmem reindex`"
                ) from error
            log.warning("%s", error)

    def rebuild(self) -> int | None:
        """Empty the engine and fill it from the store; return its number of vectors, None if it cannot count them."""
        with self._lock:
            self._reset(self.store.vector_state(), self.position)
        self.sync()
        with self._lock:
            self._save()
        return self.index.count()

    def nearest(self, vector: Vector, count: int, where: Filter) -> list[int] | None:
        """Return the seqs of the approximately nearest rows, best first; some may be outside the filter or removed.
        None if the engine fails."""
        fields = FieldFilter.of(where)
        wanted = min(_MAX_HITS, count if not where or self.applies(where) else _OVERSAMPLING * count)
        try:
            with self._breaker:
                found = self.index.search(vector, wanted, fields if where else None)
        except _FAILURES as error:
            log.warning("%s; the store compares vectors itself", error)
            return None
        return [seq for seq, _ in found]

    def applies(self, where: Filter) -> bool:
        """Whether the engine applies the whole of a filter."""
        return self.index.filters and FieldFilter.of(where).covers(where)

    def nearest_unsent(self, vector: Vector, count: int) -> list[int]:
        """Return the seqs of the nearest among the rows that the engine lacks, all compared."""
        rows = [row for row in self.store.vectors_after(self.position.row, MAX_BEHIND) if row.vector is not None]
        if not rows:
            return []
        scores = products(np.stack([row.vector for row in rows if row.vector is not None]), vector)
        return [rows[at].seq for at in top(scores, count).tolist()]

    def close(self) -> None:
        """Best-effort sync(), then close the engine."""
        try:
            self.sync()
            with self._lock:
                self._save()
        except RemanenceError as error:
            log.warning("%s", error)
        self.index.close()
