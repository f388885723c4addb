"""Search the tiers of one agent: each by its own index, all at the same time, merged by a heap."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import checks
from ..filters import Filter
from ..models import TIERS, Memory
from ..recall.similar import StateQuestion, deviations, similar_rows, similarity
from ..stores.base import Order, RecordStore
from ..stores.vectors import Vector
from .changes import same, values_under
from .entries import MemoryEntries, MemoryEntry
from .system import MemorySystem

Found = tuple[Any, Memory, float | None]  # sort key, memory, score

_GROWTH_LIMIT = 1.02  # recompute deviations when an agent has 2 % more memories


class TierSearch:
    """Searches with an exact answer among the memories of one agent."""

    def __init__(self, agent_id: str, system: MemorySystem) -> None:
        self._agent, self._system = agent_id, system
        self._known: dict[tuple[int, ...], tuple[int, tuple[float, ...]]] = {}

    def search_tiers(
        self,
        search: Callable[[RecordStore, Filter], list[Found]],
        where: Filter,
        memory_tiers: Sequence[str] | None,
        limit: int | None,
    ) -> MemoryEntries:
        """Search the tiers and merge their sorted results with a heap."""
        answer = self._system.tiers.search(self._agent, tiers_of(memory_tiers), search, where)
        merged = heapq.merge(*answer.parts, key=lambda found: found[0])
        entries = (MemoryEntry(memory, score) for _, memory, score in merged)
        if limit is not None:
            entries = (entry for entry, _ in zip(entries, range(limit), strict=False))
        return MemoryEntries(entries, answer.missing)

    def ordered(
        self,
        by: str,
        where: Filter,
        memory_tiers: Sequence[str] | None,
        *,
        newest: bool = False,
        limit: int | None = None,
        keep: Callable[[Memory], bool] | None = None,
    ) -> MemoryEntries:
        order, key = _ORDERS[by, newest]

        def search(store: RecordStore, inside: Filter) -> list[Found]:
            found = store.select(inside, order=order, limit=limit if keep is None else None)
            return [(key(memory), memory, None) for memory in found if keep is None or keep(memory)]

        return self.search_tiers(search, where, memory_tiers, limit)

    def nearest_places(
        self, position: tuple[float, ...], where: Filter, memory_tiers: Sequence[str] | None, limit: int | None
    ) -> MemoryEntries:
        def search(store: RecordStore, inside: Filter) -> list[Found]:
            found_rows = store.filtered_rows(inside)
            at, distances = found_rows.nearest_places(position, limit)
            seqs = found_rows.seq[at].tolist()
            away = dict(zip(seqs, distances.tolist(), strict=True))
            found = store.memories_at(seqs)
            return _sorted([((away[seq], memory.timestamp), memory, away[seq]) for seq, memory in found])

        return self.search_tiers(search, where, memory_tiers, limit)

    def nearest_vectors(
        self, vector: Vector, where: Filter, memory_tiers: Sequence[str] | None, k: int
    ) -> MemoryEntries:
        def search(store: RecordStore, inside: Filter) -> list[Found]:
            if not store.count(inside):
                return []
            store.check_comparable("vectors")
            return [(-score, memory, score) for memory, score in store.nearest(vector, inside, k)]

        return self.search_tiers(search, where, memory_tiers, k)

    def similar(
        self, question: StateQuestion, k: int, where: Filter, memory_tiers: Sequence[str] | None
    ) -> MemoryEntries:
        scales = self._deviations(question)

        def search(store: RecordStore, inside: Filter) -> list[Found]:
            found_rows = store.filtered_rows(inside)
            if question.paths:
                store.check_comparable("numbers")
            at, distances = similar_rows(found_rows, question, scales, k)
            seqs = found_rows.seq[at].tolist()
            away = dict(zip(seqs, distances.tolist(), strict=True))
            return _sorted(
                [
                    ((away[seq], -memory.step_number, -memory.timestamp), memory, similarity(away[seq]))
                    for seq, memory in store.memories_at(seqs)
                ]
            )

        return self.search_tiers(search, where, memory_tiers, k)

    def _deviations(self, question: StateQuestion) -> tuple[float, ...]:
        """Return the deviations of the numbers in a question among all memories of the agent. They change slowly, so
        they are recomputed only when the agent has 2 % more memories."""
        found_rows = self._system.brain.store.filtered_rows(Filter(agent=(self._agent,)))
        known = self._known.get(question.paths)
        if known is not None and known[0] <= found_rows.size <= known[0] * _GROWTH_LIMIT:
            return known[1]
        found = deviations(found_rows, question)
        if len(self._known) > 256:
            self._known.clear()
        self._known[question.paths] = found_rows.size, found
        return found

    def forget_deviations(self) -> None:
        """Drop the cached deviations, which removed memories may have shaped."""
        self._known.clear()


def _sorted(found: list[Found]) -> list[Found]:
    """Sort the results of one tier, ties in the order in which several tiers are merged."""
    return sorted(found, key=lambda hit: hit[0])


def tiers_of(memory_tiers: Sequence[str] | None) -> tuple[str, ...]:
    """Check and return the given tiers; all of them for None."""
    if memory_tiers is None:
        return TIERS
    wanted = checks.names("memory_tiers", memory_tiers)
    for tier in wanted:
        checks.one_of("memory_tiers", tier, TIERS)
    return tuple(dict.fromkeys(wanted))


_ORDERS: dict[tuple[str, bool], tuple[Order, Callable[[Memory], tuple[float, ...]]]] = {
    ("step", False): ("step", lambda memory: (memory.step_number, memory.timestamp)),
    ("step", True): ("last step", lambda memory: (-memory.step_number, -memory.timestamp)),
    ("time", False): ("oldest", lambda memory: (memory.timestamp,)),
    ("importance", True): ("importance", lambda memory: (-memory.importance, -memory.timestamp)),
}
"""Sort orders of the stores, and the key of the same order for merging."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """The wanted attributes, by dotted path. The index handles single values and members of lists; whole lists are
    compared after reading the memories."""

    indexed: dict[str, Any]
    lists: dict[str, list[Any]]

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> Attributes:
        indexed: dict[str, Any] = {}
        lists: dict[str, list[Any]] = {}
        pending = list(checks.json_object("attributes", attributes).items())
        while pending:
            path, value = pending.pop()
            if isinstance(value, Mapping) and value:
                pending += [(f"{path}.{key}", item) for key, item in value.items()]
            elif isinstance(value, list):
                lists[path] = value
                member = next((item for item in value if not isinstance(item, list | Mapping)), None)
                if member is not None:
                    indexed[path] = member
            else:
                indexed[path] = value
        return cls(indexed, lists)

    @property
    def keep(self) -> Callable[[Memory], bool] | None:
        """Return the check for what the index cannot decide; None if there is nothing left to check."""
        return self._has_lists if self.lists else None

    def _has_lists(self, memory: Memory) -> bool:
        return all(
            any(same(held, value) for held in values_under(memory.contents, path)) for path, value in self.lists.items()
        )
