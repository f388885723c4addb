"""MemorySpace: the memory of one agent, and every way to search it.

Queries with an exact answer (steps, attributes, places, similar states, vectors) go to the tiers, which are searched in
parallel and merged. Questions in words go to the archive, because the weight of a word depends on all tiers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from .. import checks
from ..contents import text_of
from ..errors import InputError, NotFoundError
from ..filters import Filter
from ..models import TIERS, Memory
from ..recall.similar import StateQuestion
from . import records, statistics
from .cache import key_of
from .changes import changed_paths, history_of
from .config import MemoryConfig
from .entries import MemoryEntries, MemoryEntry
from .system import MemorySystem, raise_maintenance_error, raise_retrieval_error, raise_store_error
from .tier_search import Attributes, TierSearch, tiers_of
from .types import MemoryChangeRecord, MemoryStatistics

_CHUNK = 1000
_IGNORED_FIELDS = ("agent_id", "step_number")  # fields of AgentState that the record has anyway


class MemorySpace:
    """`memory_api.get_memory_space("agent-123")`. Methods that name an agent accept this one and refuse others."""

    def __init__(self, agent_id: str, system: MemorySystem) -> None:
        self.agent_id = checks.name("agent_id", agent_id)
        self._system = system
        self._search = TierSearch(self.agent_id, system)

    def __repr__(self) -> str:
        return f"MemorySpace({self.agent_id!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._system.pickled_config(), self.agent_id)

    # Storing

    def store(self, kind: str, data: object, step_number: int, priority: float = 1.0) -> str:
        """Store a state, an action or an interaction; return its id. It is on disk and can be found when this
        returns."""
        with raise_store_error(self.agent_id, (TIERS[0],)):
            checks.one_of("memory_type", kind, records.KINDS)
            memory = records.record(self.agent_id, kind, data, step_number, priority)
            return self._system.store(self.agent_id, [memory])[0].memory_id

    def store_many(self, kind: str, items: Sequence[object], *, first_step: int, priority: float = 1.0) -> list[str]:
        """Store many, one per step from `first_step` on; return their ids. All are checked before any is
        written; they are written in chunks of a thousand."""
        with raise_store_error(self.agent_id, (TIERS[0],)):
            checks.one_of("memory_type", kind, records.KINDS)
            checks.whole("first_step", first_step)
            if isinstance(items, str | bytes | Mapping) or not isinstance(items, Sequence):
                raise checks.refuse("items", "a list of mappings", items)
            drafts = [
                records.record(self.agent_id, kind, item, step, priority) for step, item in enumerate(items, first_step)
            ]
            ids: list[str] = []
            for start in range(0, len(drafts), _CHUNK):
                kept = self._system.store(self.agent_id, drafts[start : start + _CHUNK])
                ids += [memory.memory_id for memory in kept]
            return ids

    # Searching the tiers

    def retrieve_recent_states(
        self, count: int = 5, memory_type: str | None = None, *, memory_tiers: Sequence[str] | None = None
    ) -> MemoryEntries:
        """Return the newest memories, newest first."""
        with raise_retrieval_error(self.agent_id, memory_tiers):
            checks.whole("count", count, low=1)
            where = self._where(memory_type)
            return self._search.ordered("step", where, memory_tiers, newest=True, limit=count)

    def retrieve_by_time_range(
        self,
        start_step: int,
        end_step: int,
        memory_type: str | None = None,
        *,
        agent_id: str | None = None,
        memory_tiers: Sequence[str] | None = None,
    ) -> MemoryEntries:
        """Return all memories from one step to another (both included), by step."""
        with raise_retrieval_error(self.agent_id, memory_tiers):
            self._check_agent(agent_id)
            low, high = checks.whole("start_step", start_step), checks.whole("end_step", end_step)
            where = Filter.of(self._where(memory_type), **_steps(low, high))
            return self._cached("range", where, memory_tiers, lambda: self._search.ordered("step", where, memory_tiers))

    def retrieve_by_time(
        self,
        since: datetime | float | str | None = None,
        until: datetime | float | str | None = None,
        memory_type: str | None = None,
        *,
        memory_tiers: Sequence[str] | None = None,
    ) -> MemoryEntries:
        """Return all memories between two times, by time; also words: since="yesterday"."""
        with raise_retrieval_error(self.agent_id, memory_tiers):
            where = Filter.of(self._where(memory_type), since=since, until=until)
            return self._search.ordered("time", where, memory_tiers)

    def retrieve_by_attributes(
        self,
        attributes: Mapping[str, Any],
        memory_type: str | None = None,
        *,
        agent_id: str | None = None,
        memory_tiers: Sequence[str] | None = None,
    ) -> MemoryEntries:
        """Return all memories whose contents have these values, by step. Dotted paths look inside: {"inventory.wood":
        5}."""
        with raise_retrieval_error(self.agent_id, memory_tiers):
            self._check_agent(agent_id)
            if not attributes:
                raise checks.refuse("attributes", "a mapping with at least one value", attributes)
            wanted = Attributes.of(attributes)
            where = Filter.of(self._where(memory_type), attributes=wanted.indexed)
            return self._cached(
                ("attributes", wanted.lists),
                where,
                memory_tiers,
                lambda: self._search.ordered("step", where, memory_tiers, keep=wanted.keep),
            )

    def retrieve_by_location(
        self,
        position: Sequence[float] | None = None,
        *,
        radius: float | None = None,
        box: Sequence[Sequence[float]] | None = None,
        place: str | None = None,
        k: int | None = None,
        memory_type: str | None = None,
        memory_tiers: Sequence[str] | None = None,
    ) -> MemoryEntries:
        """Return memories within `radius` of a position, inside a `box` of two corners, or of a named `place`.

        With a position they come nearest first, at most `k` of them; without one, by step.
        """
        with raise_retrieval_error(self.agent_id, memory_tiers):
            if position is None and box is None and place is None:
                raise InputError("one of position, box and place must be given", field="position")
            at = _position(position, radius)
            near = at if radius is not None else None
            where = Filter.of(self._where(memory_type), box=box, place=place, near=near, radius=radius)
            limit = None if k is None else checks.whole("k", k, low=1)
            if at is None:
                return self._search.ordered("step", where, memory_tiers, limit=limit)
            return self._search.nearest_places(at, where, memory_tiers, limit)

    def retrieve_by_importance(
        self,
        min_importance: float = 0.0,
        max_importance: float = 1.0,
        memory_type: str | None = None,
        *,
        k: int | None = None,
        memory_tiers: Sequence[str] | None = None,
    ) -> MemoryEntries:
        """Return memories by importance, the most important first."""
        with raise_retrieval_error(self.agent_id, memory_tiers):
            where = Filter.of(self._where(memory_type), min_importance=min_importance, max_importance=max_importance)
            limit = None if k is None else checks.whole("k", k, low=1)
            return self._search.ordered("importance", where, memory_tiers, newest=True, limit=limit)

    def retrieve_similar_states(
        self,
        query_state: Mapping[str, Any],
        k: int = 5,
        memory_type: str | None = None,
        *,
        agent_id: str | None = None,
        memory_tiers: Sequence[str] | None = None,
        where: Filter | Mapping[str, Any] | None = None,
    ) -> MemoryEntries:
        """Return the memories most similar to a state, best first. Numbers are compared as numbers; see
        recall/similar.py."""
        with raise_retrieval_error(self.agent_id, memory_tiers):
            self._check_agent(agent_id)
            checks.whole("k", k, low=1)
            state = records.as_data("query_state", query_state)
            state = {key: value for key, value in state.items() if key not in _IGNORED_FIELDS} or state
            question = StateQuestion.of(state)
            if not len(question):
                raise checks.refuse("query_state", "a mapping with at least one value", query_state)
            inside = self._where(memory_type, where)
            found = self._cached(
                ("similar", state, k),
                inside,
                memory_tiers,
                lambda: self._search.similar(question, k, inside, memory_tiers),
            )
            places = {
                entry["memory_id"]: (rank, entry.score, self.agent_id, entry["metadata"]["memory_type"])
                for rank, entry in enumerate(found, 1)
            }
            return found.set_recall(self._system.brain.new_recall(text_of(state), inside).with_hits(places))

    def search_by_embedding(
        self,
        query_embedding: Sequence[float],
        k: int = 5,
        memory_tiers: Sequence[str] | None = None,
        *,
        memory_type: str | None = None,
    ) -> MemoryEntries:
        """Return the memories whose vectors are nearest to a vector, best first. `embed` computes such vectors."""
        with raise_retrieval_error(self.agent_id, memory_tiers):
            checks.whole("k", k, low=1)
            dimension = self._system.brain.store.filtered_rows(self._where(None)).dimension
            vector = checks.vector("query_embedding", query_embedding, dimension=dimension)
            return self._search.nearest_vectors(vector, self._where(memory_type), memory_tiers, k)

    # Searching by words

    def search_by_content(
        self,
        content_query: str | Mapping[str, Any],
        k: int = 5,
        *,
        memory_type: str | None = None,
        memory_tiers: Sequence[str] | None = None,
    ) -> MemoryEntries:
        """Return the memories that match a text, best first, by words, meaning and time, as `Brain.recall` does."""
        with raise_retrieval_error(self.agent_id, memory_tiers):
            if isinstance(content_query, Mapping):
                content_query = text_of(checks.json_object("content_query", content_query))
            query_text = checks.text("content_query", content_query)
            return self._search_words(query_text, k, self._where(memory_type), memory_tiers)

    def recall(self, question: str, k: int = 5, **filters: Any) -> MemoryEntries:
        """Answer a question such as "what happened yesterday?" or "what did I see in the forest?". `filters` are those
        of `query`.
        """
        return self.query(question, k=k, **filters)

    def query(
        self,
        text: str | None = None,
        *,
        similar_to: Mapping[str, Any] | None = None,
        k: int | None = None,
        memory_type: str | None = None,
        memory_tiers: Sequence[str] | None = None,
        start_step: int | None = None,
        end_step: int | None = None,
        since: datetime | float | str | None = None,
        until: datetime | float | str | None = None,
        min_importance: float | None = None,
        attributes: Mapping[str, Any] | None = None,
        position: Sequence[float] | None = None,
        radius: float | None = None,
        box: Sequence[Sequence[float]] | None = None,
        place: str | None = None,
    ) -> MemoryEntries:
        """Combine all filters: every given one must match. A `text` or a state `similar_to` ranks the rest; else a
        `position` ranks by distance; else memories come by step.

            space.query("berries", position=[10, 20], radius=5, since="yesterday", min_importance=0.5, k=10)
        """
        with raise_retrieval_error(self.agent_id, memory_tiers):
            if text is not None and similar_to is not None:
                raise InputError("text and similar_to cannot both rank the memories: give one", field="similar_to")
            at = _position(position, radius)
            wanted = None if attributes is None else Attributes.of(attributes)
            given: dict[str, Any] = {
                **_steps(start_step, end_step),
                "since": since,
                "until": until,
                "min_importance": min_importance,
                "attributes": None if wanted is None else wanted.indexed,
                "box": box,
                "place": place,
                "near": at if radius is not None else None,
                "radius": radius,
            }
            where = Filter.of(self._where(memory_type), **given)
            if wanted is not None and wanted.lists and (text, similar_to, position) != (None, None, None):
                raise InputError("attributes must not hold lists where memories are ranked", field="attributes")
            if text is not None:
                return self._search_words(checks.text("text", text), 5 if k is None else k, where, memory_tiers)
            if similar_to is not None:
                return self.retrieve_similar_states(
                    similar_to, 5 if k is None else k, memory_tiers=memory_tiers, where=where
                )
            limit = None if k is None else checks.whole("k", k, low=1)
            if at is not None:
                return self._search.nearest_places(at, where, memory_tiers, limit)
            return self._search.ordered(
                "step", where, memory_tiers, limit=limit, keep=None if wanted is None else wanted.keep
            )

    def embed(self, state_or_text: str | Mapping[str, Any]) -> list[float]:
        """Return the vector of a state or a text, for `search_by_embedding`."""
        with raise_retrieval_error(self.agent_id):
            if isinstance(state_or_text, str):
                vector = self._system.brain.vector_of(checks.text("state_or_text", state_or_text))
            else:
                vector = self._system.brain.vector_of("", records.as_data("state_or_text", state_or_text))
            return [] if vector is None else [float(number) for number in vector]

    # One memory

    def get(self, memory_id: str) -> MemoryEntry | None:
        """Return one memory of any tier with its attachments, without moving it."""
        with raise_retrieval_error(self.agent_id):
            memory = self._find(memory_id)
            return None if memory is None else MemoryEntry(memory, attachments=True)

    def focus(self, memory_id: str) -> MemoryEntry:
        """Give attention to a memory: its retrieval count grows, and often enough it moves up a tier."""
        with raise_retrieval_error(self.agent_id):
            memory = self._require(memory_id)
            self._system.tiers.touch(self.agent_id, memory.tier, [memory_id], time.time())
            count = memory.bookkeeping.retrieval_count + 1
            if memory.tier != "stm" and count % self._system.config.promotion_threshold == 0:
                memory = self._move_up(memory, TIERS[TIERS.index(memory.tier) - 1])
            else:
                memory = self._require(memory_id)
            self._system.cache.invalidate(self.agent_id)
            return MemoryEntry(memory)

    def decompress(self, memory_id: str) -> MemoryEntry:
        """Move a memory from long-term to intermediate memory; its contents are exactly what was stored."""
        with raise_maintenance_error(self.agent_id, ("im",)):
            memory = self._require(memory_id)
            if memory.tier == "ltm":
                memory = self._move_up(memory, "im")
                self._system.cache.invalidate(self.agent_id)
            return MemoryEntry(memory)

    def forget(self, memory_id: str) -> bool:
        """Remove a memory permanently; return whether there was one."""
        with raise_store_error(self.agent_id):
            memory = self._system.brain.store.get(checks.memory_id("memory_id", memory_id))
            if memory is not None and memory.agent_id != self.agent_id:
                return False
            gone = self._system.tiers.forget(self.agent_id, [memory_id])
            self._search.forget_deviations()
            self._system.cache.invalidate(self.agent_id)
            return gone > 0

    def set_importance(self, memory_id: str, importance: float) -> bool:
        """Set the importance of a memory, 0 to 1; return whether there is such a memory."""
        with raise_maintenance_error(self.agent_id):
            score = checks.share("importance_score", importance)
            if self._find(memory_id) is None:
                return False

            def edit(memory: Memory) -> Memory:
                memory.bookkeeping.importance_score = score
                return memory

            changed = self._system.tiers.change(self.agent_id, memory_id, edit)
            self._system.cache.invalidate(self.agent_id)
            return changed is not None

    def clear(self, memory_tiers: Sequence[str] | None = None) -> int:
        """Remove all memories of this agent permanently, or those in some tiers; return how many."""
        with raise_maintenance_error(self.agent_id, memory_tiers):
            try:
                return self._system.clear(self.agent_id, tiers_of(memory_tiers))
            finally:
                self.forget_deviations()

    def forget_deviations(self) -> None:
        """Drop the cached deviations of the agent's numbers, after memories were removed."""
        self._search.forget_deviations()

    def _move_up(self, memory: Memory, tier: str) -> Memory:
        vector = self._system.brain.vector_of(memory.text, memory.contents)
        vectors = {} if vector is None else {memory.memory_id: vector}
        self._system.tiers.move(self.agent_id, [memory.memory_id], memory.tier, tier, vectors)
        return self._require(memory.memory_id)

    def _find(self, memory_id: object) -> Memory | None:
        memory = self._system.brain.store.get(checks.memory_id("memory_id", memory_id))
        return memory if memory is not None and memory.agent_id == self.agent_id else None

    def _require(self, memory_id: str) -> Memory:
        memory = self._find(memory_id)
        if memory is None:
            raise NotFoundError(memory_id)
        return memory

    # How a state changed

    def attribute_history(
        self, path: str, start_step: int | None = None, end_step: int | None = None, *, memory_type: str = "state"
    ) -> list[MemoryChangeRecord]:
        """Return the values of one attribute (`"inventory.wood"`, `"position[0]"`) at the steps that have one, and
        whether each differs from the value before."""
        with raise_retrieval_error(self.agent_id):
            checks.name("path", path)
            return history_of(path, self.query(memory_type=memory_type, start_step=start_step, end_step=end_step))

    def changes_between(
        self, first_step: int, second_step: int, *, known: Callable[[Memory], bool] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Return what differs between the states at two steps (the last ones stored at or before them): for each path
        `{"before": …, "after": …}`, without the side that lacks it. Only states that are `known` count."""
        with raise_retrieval_error(self.agent_id):
            before, after = (
                self._state_at(name, step, known)
                for name, step in (("first_step", first_step), ("second_step", second_step))
            )
            return changed_paths(before, after)

    def _state_at(self, name: str, step: int, known: Callable[[Memory], bool] | None) -> dict[str, Any]:
        where = Filter.of(self._where("state"), max_step=checks.whole(name, step))
        found = self._search.ordered("step", where, None, newest=True, limit=1, keep=known)
        if not found:
            raise InputError(f"{name} must be a step with a state at or before it, got {step}", field=name)
        contents: dict[str, Any] = found[0]["contents"]
        return contents

    # Management

    def statistics(self) -> MemoryStatistics:
        with raise_retrieval_error(self.agent_id):
            return statistics.of_agent(self._system, self.agent_id)

    def clear_cache(self) -> None:
        """Clear the cached answers of this agent."""
        self._system.cache.invalidate(self.agent_id)

    def set_cache_ttl(self, ttl: float) -> None:
        """Set how many seconds answers are cached, for all spaces of this API; 0 turns the cache off."""
        with raise_retrieval_error(self.agent_id):
            self._system.cache.set_ttl(ttl)

    # Helpers

    def _check_agent(self, agent_id: str | None) -> None:
        if agent_id is not None and agent_id != self.agent_id:
            raise InputError(
                f"agent_id must be {self.agent_id!r}, whose memory space this is, got {agent_id!r}", field="agent_id"
            )

    def _where(self, memory_type: str | None, more: Filter | Mapping[str, Any] | None = None) -> Filter:
        kind = None if memory_type is None else checks.name("memory_type", memory_type)
        if more is None:
            return Filter(agent=(self.agent_id,), type=None if kind is None else (kind,))
        where = Filter.of(more)
        for agent in where.agent or ():
            self._check_agent(agent)
        return Filter.of(where, agent=None if where.agent else self.agent_id, type=kind)

    def _cached(
        self, what: object, where: Filter, memory_tiers: Sequence[str] | None, compute: Callable[[], MemoryEntries]
    ) -> MemoryEntries:
        key = key_of(what, where.key(), tiers_of(memory_tiers))
        found = self._system.cached(self.agent_id, key, compute)
        if found.missing_tiers:  # do not cache: the tier may answer again soon
            self._system.cache.invalidate(self.agent_id)
        return found

    def _search_words(self, text: str, k: int, where: Filter, memory_tiers: Sequence[str] | None) -> MemoryEntries:
        inside = where if memory_tiers is None else Filter.of(where, tier=tiers_of(memory_tiers))
        hits = self._system.brain.recall(text, k=k, where=inside, touch=False)
        return MemoryEntries(MemoryEntry(hit.memory, hit.score) for hit in hits).set_recall(hits.recall)


def _reopen(config: MemoryConfig, agent_id: str) -> MemorySpace:
    from .recorder import shared_memory

    return shared_memory(config).get_memory_space(agent_id)


def _steps(start: int | None, end: int | None) -> dict[str, Any]:
    """Convert a span of steps to fields of a filter."""
    low = None if start is None else checks.whole("start_step", start)
    high = None if end is None else checks.whole("end_step", end)
    if low is not None and high is not None and low > high:
        raise InputError(f"start_step must not be after end_step: {low} > {high}", field="start_step")
    return {"min_step": low, "max_step": high}


def _position(position: Sequence[float] | None, radius: float | None) -> tuple[float, ...] | None:
    if position is not None:
        return checks.point("position", position)
    if radius is not None:
        raise InputError("radius needs a position", field="radius")
    return None
