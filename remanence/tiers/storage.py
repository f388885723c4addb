"""Where the tiers live. The archive has every memory from the moment it is acknowledged, each in its tier. A hot tier
is a second copy of one tier in a store that many machines share; it is asked first, and made whole again from the
archive whenever it turns out to be unreachable, emptied or behind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import StoreUnreachableError
from ..filters import Filter
from ..models import TIERS, Memory
from ..stores.base import RecordStore
from ..stores.breaker import CircuitBreaker

log = logging.getLogger(__name__)

Vector = npt.NDArray[np.float32]
Found = TypeVar("Found")
Search = Callable[[RecordStore, Filter], list[Found]]

_BATCH = 500


class HotStore(Protocol):
    """What a hot tier needs beside the contract of a RecordStore."""

    def epoch(self, agent: str, *, look: bool = True) -> str | None:
        """A token that is another one after the store was emptied; None while the agent has nothing there. Without
        `look` it is that of the last time that the agent's rows were looked at."""


@dataclass(slots=True)
class Answer(Generic[Found]):
    """What each store found, sorted as the search sorts, and the tiers for which the archive had to answer."""

    parts: list[list[Found]] = field(default_factory=list)
    missing: tuple[str, ...] = ()


class HotTier:
    """One tier in a store of its own."""

    def __init__(self, tier: str, store: RecordStore, archive: RecordStore, breaker: CircuitBreaker) -> None:
        self.tier, self.store, self._archive, self.breaker = tier, store, archive, breaker
        self._whole: dict[str, str | None] = {}  # agent → the epoch in which all of it was seen to be there
        self._lock = Lock()

    def ask(self, agent: str, search: Search[Found], where: Filter) -> list[Found]:
        """The answer of this tier, whole; StoreUnreachableError if it cannot be had."""
        with self.breaker:
            self._make_whole(agent)
            return search(self.store, where)

    def put(self, agent: str, memories: Sequence[Memory]) -> None:
        self._try(agent, lambda: self.store.put(memories))

    def forget(self, agent: str, keys: Sequence[str]) -> None:
        self._try(agent, lambda: self.store.forget_many(keys))

    def _try(self, agent: str, work: Callable[[], object]) -> None:
        """Follow the archive. Where that fails the agent is made whole before its next answer."""
        try:
            with self.breaker:
                work()
        except StoreUnreachableError as error:
            self._whole.pop(agent, None)
            log.warning("%s of %s is behind the archive: %s", self.tier, agent, error)

    def _make_whole(self, agent: str) -> None:
        where, everything = _of(agent, self.tier), _of(agent)
        held_here = self.store.count(everything)
        seen = agent in self._whole and self._whole[agent] == self._epoch(agent)
        # Another process may have died between the archive and us.
        if seen and self._archive.count(where) == held_here:
            return
        with self._lock:
            wanted = {memory.memory_id: memory for memory in self._archive.select(where)}
            held = {memory.memory_id for memory in self.store.select(everything)}
            lacking = [memory for key, memory in wanted.items() if key not in held]
            surplus = [key for key in held if key not in wanted]
            if surplus:
                self.store.forget_many(surplus)
            for start in range(0, len(lacking), _BATCH):
                self.store.put(lacking[start : start + _BATCH])
            if lacking or surplus:
                log.info("%s of %s: %d refilled, %d removed", self.tier, agent, len(lacking), len(surplus))
            self._whole[agent] = self._epoch(agent)

    def _epoch(self, agent: str) -> str | None:
        """In which history of the store the agent's rows were looked at last."""
        epoch: str | None = self.store.epoch(agent, look=False)  # type: ignore[attr-defined]
        return epoch


@lru_cache(maxsize=256)
def _of(agent: str, *tier: str) -> Filter:
    """All of an agent, or what it has in a tier. Every question needs them, and to make one takes a while."""
    return Filter(agent=(agent,), tier=tier or None)


class TieredStore:
    """The archive and the hot tiers in front of it."""

    def __init__(self, archive: RecordStore, hot: Mapping[str, HotTier] | None = None) -> None:
        self.archive = archive
        self.hot = dict(hot or {})
        self._threads = ThreadPoolExecutor(max_workers=len(TIERS), thread_name_prefix="remanence-tier")

    def follow(self, memories: Sequence[Memory]) -> None:
        """Memories that the archive has just taken in."""
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
        """Put memories of an agent from one tier into another. The new tier has them before the old one lets go."""
        moved = self.archive.move(keys, target, vectors)
        if target in self.hot:
            self.hot[target].put(agent, [memory for memory in self.archive.get_many(keys) if memory is not None])
        if source in self.hot:
            self.hot[source].forget(agent, keys)
        return moved

    def forget(self, agent: str, keys: Sequence[str]) -> int:
        gone = self.archive.forget_many(keys)
        for tier in self.hot.values():
            tier.forget(agent, keys)
        return gone

    def ask(self, agent: str, tiers: Sequence[str], search: Search[Found], where: Filter) -> Answer[Found]:
        """Search some tiers at the same time: each hot one, and in one go those that are in the archive alone. `where`
        names everything but the tier."""
        missing: list[str] = []

        def hot(tier: str) -> list[Found]:
            inside = Filter.of(where, tier=(tier,))
            try:
                return self.hot[tier].ask(agent, search, inside)
            except StoreUnreachableError as error:
                missing.append(tier)
                log.warning("%s of %s is answered by the archive: %s", tier, agent, error)
                return search(self.archive, inside)

        waiting = [self._threads.submit(hot, tier) for tier in tiers if tier in self.hot]
        cold = tuple(tier for tier in tiers if tier not in self.hot)
        parts = []
        if cold:  # in this thread: to wake another one takes longer than most searches
            inside = where if len(cold) == len(TIERS) else Filter.of(where, tier=cold)
            parts.append(search(self.archive, inside))
        parts += [found.result() for found in waiting]
        return Answer(parts, tuple(sorted(missing)))

    def close(self) -> None:
        self._threads.shutdown()
        for tier in self.hot.values():
            tier.store.close()
        self.archive.close()
