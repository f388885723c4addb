"""The storage of the tiers: the archive has every acknowledged memory; a hot tier is a copy of one tier in Redis, which
is searched first and refilled from the archive after it was unreachable, emptied or out of date."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import EmbedderMismatchError, StoreClosedError, StoreError, StoreUnreachableError, VectorError
from ..filters import Filter
from ..forks import Forking, new_lock, watch
from ..index.filtered_rows import FilteredRows
from ..models import TIERS, Memory
from ..stores.base import RecordStore
from ..stores.breaker import CircuitBreaker
from ..stores.capabilities import HotStore
from .forgetting import ForgettingPolicy, clear_agent, prune

log = logging.getLogger(__name__)

Vector = npt.NDArray[np.float32]
Found = TypeVar("Found")
Search = Callable[[RecordStore, Filter], list[Found]]

_BATCH = 500
_TRIES = 3  # of a refill or a search that writes of other processes disturb


@dataclass(slots=True)
class TierHits(Generic[Found]):
    """The hits of each store, sorted as the search sorts, and the tiers for which the archive answered instead."""

    parts: list[list[Found]] = field(default_factory=list)
    missing: tuple[str, ...] = ()


class Fingerprint(NamedTuple):
    """A checksum to compare two stores: the number of memories, and a sum over their steps, times and importances."""

    size: int
    sum: int

    @classmethod
    def of(cls, found_rows: FilteredRows, tier: str | None = None) -> Fingerprint:
        return found_rows.once(("fingerprint", tier), lambda: cls._compute(found_rows, tier))

    @classmethod
    def _compute(cls, found_rows: FilteredRows, tier: str | None) -> Fingerprint:
        steps = found_rows.column("step")
        values = found_rows.column("time").view(np.int64) + 3 * found_rows.column("importance").view(np.int64)
        if tier is not None:
            inside = found_rows.column("tier") == TIERS.index(tier)
            steps, values = steps[inside], values[inside]
        return cls(steps.size, int(((2 * steps + 1) * values).sum()))  # int64 overflow is fine: checksum only


class HotTier:
    """One tier in a store of its own, such as Redis; a copy of what the archive holds of that tier."""

    def __init__(self, tier: str, store: HotStore, archive: RecordStore, breaker: CircuitBreaker) -> None:
        self.tier, self.store, self._archive, self.breaker = tier, store, archive, breaker
        self._lock = new_lock()
        self._logged: set[tuple[str, str]] = set()
        breaker.on_return.append(self._on_recovery)

    def search(self, agent: str, search: Search[Found], where: Filter, wanted: Fingerprint) -> list[Found]:
        """Search this tier, after a refill if it is incomplete. Raise StoreUnreachableError if Redis cannot be reached.
        `wanted` is the fingerprint of the archive's rows of this tier."""

        def work() -> list[Found]:
            with self.store.steady():
                if self._fingerprint(agent) == wanted:
                    return self._search_stable(agent, search, where)
            self._synchronise(agent)
            return self._search_stable(agent, search, where)

        return self._run(work)

    def _search_stable(self, agent: str, search: Search[Found], where: Filter) -> list[Found]:
        """Search; raise StoreUnreachableError if the store was emptied meanwhile."""
        epoch = self._epoch(agent)
        found = search(self.store, where)
        if self._epoch(agent) != epoch:
            raise StoreUnreachableError("it was emptied during the search")
        return found

    def put(self, agent: str, memories: Sequence[Memory]) -> None:
        self._write(agent, lambda: self.store.put(memories))

    def forget(self, agent: str, keys: Sequence[str]) -> None:
        self._write(agent, lambda: self.store.forget_many(keys))

    def touch(self, agent: str, keys: Sequence[str], when: float) -> None:
        self._write(agent, lambda: self.store.touch(keys, when))

    def clear(self, agent: str) -> None:
        """Remove all memories of an agent; StoreUnreachableError if the store cannot be reached."""
        self._run(lambda: self.store.forget_many(_ids(self.store, self.store.filtered_rows(_filter_of(agent)))))

    def _write(self, agent: str, work: Callable[[], object]) -> None:
        """Apply a write of the archive to the hot tier. After a failure, the next search refills the tier first."""
        try:
            self._run(work)
        except StoreUnreachableError as error:
            self.log_failure(agent, "is behind the archive", error)

    def log_failure(self, agent: str, doing: str, error: StoreUnreachableError) -> None:
        """Log a failure as a warning, but once per agent until the tier works again: an agent may store 100 times a
        second."""
        level = logging.DEBUG if (agent, doing) in self._logged else logging.WARNING
        self._logged.add((agent, doing))
        log.log(level, "%s of %s %s: %s", self.tier, agent, doing, error)

    def _on_recovery(self) -> None:
        self._logged.clear()
        log.info("%s is back", self.tier)

    def _run(self, work: Callable[[], Found]) -> Found:
        """Turn every failure of the hot store (full, read-only) into StoreUnreachableError: the archive has it all."""
        self.store.embedder_identity = self._archive.embedder_identity
        with self.breaker:
            try:
                return work()
            except (StoreUnreachableError, StoreClosedError):
                raise
            except (VectorError, EmbedderMismatchError) as error:  # the archive was embedded again with another model
                self.store.clear()
                raise StoreUnreachableError(f"it was cleared and will be refilled: {error}") from error
            except StoreError as error:
                raise StoreUnreachableError(str(error)) from error

    def _synchronise(self, agent: str) -> None:
        """Make the hot store equal to the archive's rows of this tier, after another process died or failed."""
        with self._lock:
            for _ in range(_TRIES):
                if self._fingerprint(agent) == Fingerprint.of(
                    self._archive.filtered_rows(_filter_of(agent)), self.tier
                ):
                    break
                self._refill(agent)

    def _refill(self, agent: str) -> None:
        # Read the hot store first: writes go to the archive first, so what is written meanwhile is no surplus.
        present = set(_ids(self.store, self.store.filtered_rows(_filter_of(agent))))
        expected = _ids(self._archive, self._archive.filtered_rows(_filter_of(agent, self.tier)))
        missing = [key for key in expected if key not in present]
        surplus = list(present.difference(expected))
        if surplus:
            self.store.forget_many(surplus)
        elif not missing:  # same ids, other memories: another archive used this namespace
            missing = expected
        for start in range(0, len(missing), _BATCH):
            found = self._archive.get_many(missing[start : start + _BATCH])
            self.store.put([memory for memory in found if memory is not None and memory.tier == self.tier])
        log.info("%s of %s: %d refilled, %d removed", self.tier, agent, len(missing), len(surplus))

    def _fingerprint(self, agent: str) -> Fingerprint:
        return Fingerprint.of(self.store.filtered_rows(_filter_of(agent)))

    def _epoch(self, agent: str) -> str | None:
        """Return the epoch of the store when the agent's rows were last checked."""
        return self.store.epoch(agent, check=False)


def _ids(store: RecordStore, found_rows: FilteredRows) -> list[str]:
    return store.ids_at(found_rows.seq.tolist())


@lru_cache(maxsize=256)
def _filter_of(agent: str, *tier: str) -> Filter:
    """Build the filter for an agent, or for one of its tiers. Cached, because every search needs one."""
    return Filter(agent=(agent,), tier=tier or None)


class TieredStore(Forking):
    """The archive and the hot tiers in front of it."""

    def __init__(self, archive: RecordStore, hot: Mapping[str, HotTier] | None = None) -> None:
        self.archive = archive
        self.hot = dict(hot or {})
        self.after_fork_in_child()
        watch(self)

    def after_fork_in_child(self) -> None:
        """Make new threads after a fork: the parent's do not exist here."""
        self._threads = ThreadPoolExecutor(max_workers=len(TIERS), thread_name_prefix="rmem-tier")

    def copy_to_hot(self, memories: Sequence[Memory]) -> None:
        """Copy memories that the archive has just stored to their hot tiers."""
        if not self.hot:
            return
        groups: dict[tuple[str, str], list[Memory]] = {}
        for memory in memories:
            if memory.tier in self.hot:
                groups.setdefault((memory.tier, memory.agent_id), []).append(memory)
        for (tier, agent), group in groups.items():
            self.hot[tier].put(agent, group)

    def move(
        self, agent: str, keys: Sequence[str], source: str, target: str, vectors: Mapping[str, Vector] | None = None
    ) -> int:
        """Move memories of an agent from one tier to another; return how many. They are in the new tier before they
        leave the old one."""
        moved = self.archive.move(keys, target, vectors)
        if target in self.hot:
            found = self.archive.get_many(keys)
            self.hot[target].put(agent, [memory for memory in found if memory is not None and memory.tier == target])
        if source in self.hot:
            self.hot[source].forget(agent, keys)
        return moved

    def touch(self, agent: str, tier: str, keys: Sequence[str], when: float) -> None:
        """Record an access to memories of an agent in a tier."""
        self.archive.touch(keys, when)
        if tier in self.hot:
            self.hot[tier].touch(agent, keys, when)

    def forget(self, agent: str, keys: Sequence[str]) -> int:
        removed = self.archive.forget_many(keys)
        for tier in self.hot.values():
            tier.forget(agent, keys)
        return removed

    def change(self, agent: str, key: str, edit: Callable[[Memory], Memory]) -> Memory | None:
        """Replace a memory of an agent by what `edit` returns; None if there is none."""
        changed = self.archive.change(key, edit)
        if changed is not None and changed.tier in self.hot:
            self.hot[changed.tier].put(agent, [changed])
        return changed

    def clear(self, agent: str, tiers: Sequence[str] = TIERS) -> int:
        """Remove the memories of an agent in some tiers, from the archive and the hot tiers; return how many."""
        removed = clear_agent(self.archive, agent, tiers)
        failures: dict[str, StoreUnreachableError] = {}
        for tier in [tier for tier in tiers if tier in self.hot]:
            try:
                self.hot[tier].clear(agent)
            except StoreUnreachableError as error:
                failures[tier] = error
        if failures:
            reasons = "; ".join(f"{tier}: {error}" for tier, error in failures.items())
            raise StoreUnreachableError(
                f"removed from the archive, but a tier that cannot be reached may hold copies ({reasons}); call again "
                "when it can be reached"
            )
        return len(removed)

    def prune(self, policy: ForgettingPolicy | Mapping[str, Any], *, dry_run: bool = False) -> list[tuple[str, float]]:
        """Remove or set aside what a policy chooses; return (id, retention), the most faded first."""
        pruned = prune(self.archive, policy, dry_run=dry_run)
        for tier in self.hot.values() if pruned and not dry_run else ():
            tier.forget("pruned agents", [key for key, _ in pruned])
        return pruned

    def search(self, agent: str, tiers: Sequence[str], search: Search[Found], where: Filter) -> TierHits[Found]:
        """Search tiers in parallel: each hot tier in its own store, all others in the archive at once. `where` must not
        name a tier. A memory that moves between tiers meanwhile is returned exactly once."""
        if not any(tier in self.hot for tier in tiers):
            return TierHits([self._search_archive(tiers, search, where)])
        for _ in range(_TRIES):
            found_rows = self.archive.filtered_rows(_filter_of(agent))
            fingerprints, before = (
                {tier: Fingerprint.of(found_rows, tier) for tier in self.hot},
                tier_version(found_rows),
            )
            answer = self._search_tiers(agent, tiers, search, where, fingerprints)
            if tier_version(self.archive.filtered_rows(_filter_of(agent))) == before:
                return answer
        return TierHits([self._search_archive(tiers, search, where)], answer.missing)

    def _search_tiers(
        self, agent: str, tiers: Sequence[str], search: Search[Found], where: Filter, wanted: Mapping[str, Fingerprint]
    ) -> TierHits[Found]:
        missing: list[str] = []

        def search_hot(tier: str) -> list[Found]:
            inside = Filter.of(where, tier=(tier,))
            try:
                return self.hot[tier].search(agent, search, inside, wanted[tier])
            except StoreUnreachableError as error:
                missing.append(tier)
                self.hot[tier].log_failure(agent, "is answered by the archive", error)
                return self._search_archive((tier,), search, where)

        # Search the archive and the largest hot tier in this thread: starting another one costs time, often on a
        # sleeping core.
        *others, largest = sorted((tier for tier in tiers if tier in self.hot), key=lambda tier: wanted[tier].size)
        futures = {tier: self._submit(search_hot, tier) for tier in others}
        archived = [tier for tier in tiers if tier not in self.hot]
        parts = [self._search_archive(archived, search, where)] if archived else []
        found = {largest: search_hot(largest)} | {tier: future.result() for tier, future in futures.items()}
        parts += [
            found[tier] for tier in TIERS if tier in found
        ]  # a fixed order, so that ties merge the same way every time
        return TierHits(parts, tuple(sorted(missing)))

    def _search_archive(self, tiers: Sequence[str], search: Search[Found], where: Filter) -> list[Found]:
        inside = where if len(tiers) == len(TIERS) else Filter.of(where, tier=tuple(tiers))
        return self.archive.read_transaction(lambda: search(self.archive, inside))

    def _submit(self, work: Callable[[str], list[Found]], tier: str) -> Future[list[Found]]:
        try:
            return self._threads.submit(work, tier)
        except RuntimeError as error:
            raise StoreClosedError("this memory is closed; open it again to use it") from error

    def close(self) -> None:
        self._threads.shutdown()
        for tier in self.hot.values():
            tier.store.close()
        self.archive.close()


def tier_version(found_rows: FilteredRows) -> tuple[object, ...]:
    """Return a value that changes when a memory of an agent moves to another tier; new memories do not change it."""
    return *found_rows.moves, found_rows.once(
        "moves", lambda: int(found_rows.column("tier").astype(np.int64) @ found_rows.seq)
    )
