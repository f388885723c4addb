"""The facts of the in-memory store: a dictionary of facts, and indexes by subject, relation and object."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..facts.model import FactEdges, FoundFact, StoredFact, flags_of, name_id
from ..facts.relations import relation_id
from ..models import Memory

Key = tuple[int, int]


class MemoryFacts:
    """Facts by (seq, number), and by subject, relation and object."""

    def __init__(self) -> None:
        self._facts: dict[Key, StoredFact] = {}
        self._counts: dict[int, int] = {}
        self._places: dict[str, dict[int, set[Key]]] = {
            name: defaultdict(set) for name in ("subject", "relation", "object")
        }

    def add(self, seq: int, memory: Memory, found: Sequence[FoundFact]) -> None:
        for number, fact in enumerate(found):
            stored = StoredFact(
                seq,
                number,
                name_id(fact.subject),
                relation_id(fact.relation),
                name_id(fact.object),
                flags_of(fact),
                fact.confidence,
                fact.start,
                fact.end,
                memory.timestamp if fact.valid_from is None else fact.valid_from,
                fact.valid_until,
                memory.bookkeeping.creation_time,
                fact.subject,
                fact.relation,
                fact.object,
                memory.memory_id,
                memory.agent_id,
                memory.place,
                json.dumps(memory.tags) if memory.tags else None,
            )
            self._facts[seq, number] = stored
            for name, places in self._places.items():
                places[getattr(stored, name)].add((seq, number))
        if found:
            self._counts[seq] = len(found)

    def remove(self, seq: int) -> None:
        for number in range(self._counts.pop(seq, 0)):
            fact = self._facts.pop((seq, number))
            for name, places in self._places.items():
                held = places[getattr(fact, name)]
                held.discard((seq, number))
                if not held:
                    del places[getattr(fact, name)]

    def of_rows(self, seqs: Iterable[int]) -> list[StoredFact]:
        return [self._facts[seq, at] for seq in sorted(set(seqs)) for at in range(self._counts.get(seq, 0))]

    def about(self, subjects: Sequence[int], relations: Sequence[int], objects: Sequence[int]) -> list[StoredFact]:
        given = {"subject": subjects, "relation": relations, "object": objects}
        sets = [
            set().union(*(self._places[name].get(id_, ()) for id_ in ids)) for name, ids in given.items() if len(ids)
        ]
        return [self._facts[key] for key in sorted(set.intersection(*sets) if sets else self._facts)]

    def names(self, ids: Sequence[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        for id_ in ids:
            about, named = self._places["subject"].get(id_), self._places["object"].get(id_)
            if about:
                found[id_] = self._facts[min(about)].subject_name
            elif named and not self._facts[min(named)].is_value:
                found[id_] = self._facts[min(named)].object_name
        return found

    def edges(self, shown: Callable[[int, str | None], bool] | None) -> FactEdges:
        numbers = [
            (fact.subject, fact.relation, fact.object, fact.flags)
            for fact in self._facts.values()
            if shown is None or shown(fact.seq, fact.place)
        ]
        return FactEdges(*np.array(numbers, np.int64).reshape(-1, 4).T)

    def __len__(self) -> int:
        return len(self._facts)

    def clear(self) -> None:
        self._facts.clear()
        self._counts.clear()
        for places in self._places.values():
            places.clear()


def is_within(fact: StoredFact, first: float, last: float) -> bool:
    return first <= fact.valid_from < last or (fact.valid_until is not None and first <= fact.valid_until < last)


def may_hold(fact: StoredFact, at: float) -> bool:
    return fact.valid_from <= at and (fact.valid_until is None or at < fact.valid_until) and not fact.negated
