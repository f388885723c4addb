"""The storage of the tiers. The archive has every memory from the moment it is acknowledged. A hot tier is a second
copy of one tier in a store that many machines share; it is searched first, and refilled from the archive whenever it
was unreachable, emptied or out of date."""

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
_TRIES = 3  # of what others may disturb: to make a tier whole, or to search tiers among which memories move


@dataclass(slots=True)
class Answer(Generic[Found]):
    """What each store found, sorted as the search sorts, and the tiers for which the archive had to answer."""

    parts: list[list[Found]] = field(default_factory=list)
    missing: tuple[str, ...] = ()


class Fingerprint(NamedTuple):
    """A checksum by which two stores are compared: the number of memories, and a sum over their steps, times and
    importances."""

    size: int
    sum: int

    @classmethod
    def of(cls, found_rows: FilteredRows, tier: str | None = None) -> Fingerprint:
        """The fingerprint of filtered rows, or of those in a tier."""
        return found_rows.once(("fingerprint", tier), lambda: cls._of(found_rows, tier))

    @classmethod
    def _of(cls, found_rows: FilteredRows, tier: str | None) -> Fingerprint:
        steps = found_rows.column("step")
        facts = found_rows.column("time").view(np.int64) + 3 * found_rows.column("importance").view(np.int64)
        if tier is not None:
            inside = found_rows.column("tier") == TIERS.index(tier)
            steps, facts = steps[inside], facts[inside]
        return cls(steps.size, int(((2 * steps + 1) * facts).sum()))  # int64 overflow is fine: checksum only


class HotTier:
    """One tier in a store of its own."""

    def __init__(self, tier: str, store: HotStore, archive: RecordStore, breaker: CircuitBreaker) -> None:
        self.tier, self.store, self._archive, self.breaker = tier, store, archive, breaker
        self._lock = new_lock()
        self._noted: set[tuple[str, str]] = set()
        breaker.on_return.append(self._returned)

    def ask(self, agent: str, search: Search[Found], where: Filter, wanted: Fingerprint) -> list[Found]:
        """Search this tier, after a refill if it is incomplete. Raise StoreUnreachableError if Redis cannot be reached.
        `wanted` is the fingerprint of the archive's rows of this tier."""

        def work() -> list[Found]:
            with self.store.steady():
                if self._fingerprint(agent) == wanted:
                    return self._search(agent, search, where)
            self._make_whole(agent)
            return self._search(agent, search, where)

        return self._use(work)

    def _search(self, agent: str, search: Search[Found], where: Filter) -> list[Found]:
        epoch = self._epoch(agent)
        found = search(self.store, where)
        if self._epoch(agent) != epoch:
            raise StoreUnreachableError("it was emptied while it was searched")
        return found

    def put(self, agent: str, memories: Sequence[Memory]) -> None:
        self._try(agent, lambda: self.store.put(memories))

    def forget(self, agent: str, keys: Sequence[str]) -> None:
        self._try(agent, lambda: self.store.forget_many(keys))

    def touch(self, agent: str, keys: Sequence[str], when: float) -> None:
        self._try(agent, lambda: self.store.touch(keys, when))

    def clear(self, agent: str) -> None:
        """Remove all that the store holds of an agent; StoreUnreachableError if it cannot be reached."""
        self._use(lambda: self.store.forget_many(_ids(self.store, self.store.filtered_rows(_of(agent)))))

    def _try(self, agent: str, work: Callable[[], object]) -> None:
        """Write to the hot tier what the archive has. If that fails, the agent is refilled before its next answer."""
        try:
            self._use(work)
        except StoreUnreachableError as error:
            self.note_absence(agent, "is behind the archive", error)

    def note_absence(self, agent: str, doing: str, error: StoreUnreachableError) -> None:
        """Log a failure of an agent once until the tier works again: it may store a hundred times a second."""
        level = logging.DEBUG if (agent, doing) in self._noted else logging.WARNING
        self._noted.add((agent, doing))
        log.log(level, "%s of %s %s: %s", self.tier, agent, doing, error)

    def _returned(self) -> None:
        self._noted.clear()
        log.info("%s is back", self.tier)

    def _use(self, work: Callable[[], Found]) -> Found:
        """Turn every failure of the hot store (full, read-only) into StoreUnreachableError: the archive has it all."""
        self.store.embedder_identity = self._archive.embedder_identity
        with self.breaker:
            try:
                return work()
            except (StoreUnreachableError, StoreClosedError):
                raise
            except (VectorError, EmbedderMismatchError) as error:  # the archive was embedded anew
                self.store.clear()
                raise StoreUnreachableError(f"it is filled anew: {error}") from error
            except StoreError as error:
                raise StoreUnreachableError(str(error)) from error

    def _make_whole(self, agent: str) -> None:
        """Make the hot store equal to the archive's rows of this tier, after another process died or failed."""
        with self._lock:
            for _ in range(_TRIES):
                if self._fingerprint(agent) == Fingerprint.of(self._archive.filtered_rows(_of(agent)), self.tier):
                    break
                self._refill(agent)

    def _refill(self, agent: str) -> None:
        # In this order, so that what is written meanwhile is not taken for surplus: the archive had it before.
        held = set(_ids(self.store, self.store.filtered_rows(_of(agent))))
        wanted = _ids(self._archive, self._archive.filtered_rows(_of(agent, self.tier)))
        lacking = [key for key in wanted if key not in held]
        surplus = list(held.difference(wanted))
        if surplus:
            self.store.forget_many(surplus)
        elif not lacking:  # other memories have the same ids: another archive has used this namespace
            lacking = wanted
        for start in range(0, len(lacking), _BATCH):
            found = self._archive.get_many(lacking[start : start + _BATCH])
            self.store.put([memory for memory in found if memory is not None and memory.tier == self.tier])
        log.info("%s of %s: %d refilled, %d removed", self.tier, agent, len(lacking), len(surplus))

    def _fingerprint(self, agent: str) -> Fingerprint:
        return Fingerprint.of(self.store.filtered_rows(_of(agent)))

    def _epoch(self, agent: str) -> str | None:
        """The epoch of the store when the agent's rows were last checked."""
        return self.store.epoch(agent, look=False)


def _ids(store: RecordStore, found_rows: FilteredRows) -> list[str]:
    return store.ids_at(found_rows.seq.tolist())


@lru_cache(maxsize=256)
def _of(agent: str, *tier: str) -> Filter:
    """The filter for all of an agent, or for one tier of it. Cached, because every question needs one."""
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

    def follow(self, memories: Sequence[Memory]) -> None:
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
        """Put memories of an agent from one tier into another; how many there were. They are in the new tier before
        they leave the old one."""
        moved = self.archive.move(keys, target, vectors)
        if target in self.hot:
            found = self.archive.get_many(keys)
            self.hot[target].put(agent, [one for one in found if one is not None and one.tier == target])
        if source in self.hot:
            self.hot[source].forget(agent, keys)
        return moved

    def touch(self, agent: str, tier: str, keys: Sequence[str], when: float) -> None:
        """Count an access of memories of an agent in a tier."""
        self.archive.touch(keys, when)
        if tier in self.hot:
            self.hot[tier].touch(agent, keys, when)

    def forget(self, agent: str, keys: Sequence[str]) -> int:
        gone = self.archive.forget_many(keys)
        for tier in self.hot.values():
            tier.forget(agent, keys)
        return gone

    def change(self, agent: str, key: str, edit: Callable[[Memory], Memory]) -> Memory | None:
        """Replace a memory of an agent by what `edit` makes of it; None if there is none."""
        changed = self.archive.change(key, edit)
        if changed is not None and changed.tier in self.hot:
            self.hot[changed.tier].put(agent, [changed])
        return changed

    def clear(self, agent: str, tiers: Sequence[str] = TIERS) -> int:
        """Remove what an agent has in some tiers, wherever they live; how many memories there were."""
        gone = clear_agent(self.archive, agent, tiers)
        missed: dict[str, StoreUnreachableError] = {}
        for tier in [tier for tier in tiers if tier in self.hot]:
            try:
                self.hot[tier].clear(agent)
            except StoreUnreachableError as error:
                missed[tier] = error
        if missed:
            told = "; ".join(f"{tier}: {error}" for tier, error in missed.items())
            raise StoreUnreachableError(
                f"the archive holds nothing of it any more, but a tier that cannot be reached may ({told}); call again "
                "when it can be reached"
            )
        return len(gone)

    def prune(self, policy: ForgettingPolicy | Mapping[str, Any], *, dry_run: bool = False) -> list[tuple[str, float]]:
        """Remove what a policy chooses, or set it aside: (id, retention), the most faded first."""
        gone = prune(self.archive, policy, dry_run=dry_run)
        for tier in self.hot.values() if gone and not dry_run else ():
            tier.forget("pruned agents", [key for key, _ in gone])
        return gone

    def ask(self, agent: str, tiers: Sequence[str], search: Search[Found], where: Filter) -> Answer[Found]:
        """Search some tiers at the same time: each hot one, and in one go those that are in the archive alone. `where`
        names everything but the tier. A memory that moves between them meanwhile is returned exactly
        once."""
        if not any(tier in self.hot for tier in tiers):
            return Answer([self._search_archive(tiers, search, where)])
        for _ in range(_TRIES):
            found_rows = self.archive.filtered_rows(_of(agent))
            fingerprints, before = {tier: Fingerprint.of(found_rows, tier) for tier in self.hot}, moves(found_rows)
            answer = self._search(agent, tiers, search, where, fingerprints)
            if moves(self.archive.filtered_rows(_of(agent))) == before:
                return answer
        return Answer([self._search_archive(tiers, search, where)], answer.missing)

    def _search(
        self, agent: str, tiers: Sequence[str], search: Search[Found], where: Filter, wanted: Mapping[str, Fingerprint]
    ) -> Answer[Found]:
        missing: list[str] = []

        def hot(tier: str) -> list[Found]:
            inside = Filter.of(where, tier=(tier,))
            try:
                return self.hot[tier].ask(agent, search, inside, wanted[tier])
            except StoreUnreachableError as error:
                missing.append(tier)
                self.hot[tier].note_absence(agent, "is answered by the archive", error)
                return self._search_archive((tier,), search, where)

        # In this thread the archive and the fullest of the hot tiers: another one has to be woken up, often on a
        # processor that has slept, where the same work takes longer.
        *others, mine = sorted((tier for tier in tiers if tier in self.hot), key=lambda tier: wanted[tier].size)
        waiting = {tier: self._start(hot, tier) for tier in others}
        cold = [tier for tier in tiers if tier not in self.hot]
        parts = [self._search_archive(cold, search, where)] if cold else []
        found = {mine: hot(mine)} | {tier: future.result() for tier, future in waiting.items()}
        parts += [found[tier] for tier in TIERS if tier in found]  # in which order equals are merged
        return Answer(parts, tuple(sorted(missing)))

    def _search_archive(self, tiers: Sequence[str], search: Search[Found], where: Filter) -> list[Found]:
        inside = where if len(tiers) == len(TIERS) else Filter.of(where, tier=tuple(tiers))
        return self.archive.read_transaction(lambda: search(self.archive, inside))

    def _start(self, work: Callable[[str], list[Found]], tier: str) -> Future[list[Found]]:
        try:
            return self._threads.submit(work, tier)
        except RuntimeError as error:
            raise StoreClosedError("this memory is closed; open it again to use it") from error

    def close(self) -> None:
        self._threads.shutdown()
        for tier in self.hot.values():
            tier.store.close()
        self.archive.close()


def moves(found_rows: FilteredRows) -> tuple[object, ...]:
    """Return a value that changes when a memory of an agent moves to another tier; new memories do not change it."""
    return *found_rows.moves, found_rows.once(
        "moves", lambda: int(found_rows.column("tier").astype(np.int64) @ found_rows.seq)
    )
