"""Reading facts from a store: names to ids, facts with the time during which they hold, and facts as users see them.
Everything in this folder that answers a question reads through this."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from .. import checks
from ..annotations import Moment, Names
from ..facts.model import LIKELY, FactEdges, StoredFact, name_id
from ..facts.relations import inverse, relation_id
from ..facts.stated import ENDS, ONE, RESERVED, SAME_AS, VALUES
from ..filters import Filter
from ..stores.capabilities import FactTable
from .model import Fact
from .validity import Period, Resolved, key_of, resolve

BATCH = 512  # facts read in one query
_SAME_AS, _VALUES, _ENDS = name_id(SAME_AS), name_id(VALUES), name_id(ENDS)


Sees = Callable[[str | None], bool]
"""Whether the caller may see memories with this place."""


class FactReader:
    """Reads the facts of a store whose memories match the filter `where` and have a place that `sees` allows."""

    def __init__(self, store: FactTable, where: Filter | None, sees: Sees | None = None) -> None:
        self.store = store
        self._where = where
        self._sees = sees

    def ids_of(self, name: str | None, field: str = "entity") -> list[int]:
        """Return the ids of a name and of all its aliases."""
        if name is None:
            return []
        known = {name_id(checks.name(field, name))}
        while True:
            names = set(known)
            for fact in self._allowed(self.store.facts_about(list(known), [_SAME_AS])):
                names.add(fact.object)
            for fact in self._allowed(self.store.facts_about((), [_SAME_AS], list(known))):
                names.add(fact.subject)
            if names == known:
                return sorted(known)
            known = names

    def relation_ids(self, relations: Names | None) -> list[int]:
        return [] if relations is None else [relation_id(one) for one in checks.names("relations", relations)]

    def inverse_ids(self, relations: Names | None) -> list[int]:
        """Return the ids of relations stored from the object's side: "ann owns x" is stored as x's owner."""
        named = [] if relations is None else checks.names("relations", relations)
        return [relation_id(other) for one in named if (other := inverse(one.strip().lower())) is not None]

    def view(self, at: Moment | None, believed: Moment | None, history: bool, likely: bool) -> View:
        moment = time.time() if at is None else checks.moment("at", at, end_of_day=True)
        known_at = None if believed is None else checks.moment("believed", believed, end_of_day=True)
        return View(self, None if history else moment, known_at, 0.0 if likely else LIKELY + 1e-9)

    def visible(self, facts: Sequence[StoredFact]) -> list[StoredFact]:
        """Select the facts whose memories match the filter and may be seen."""
        allowed = self._allowed(facts)
        if self._where is None:
            return allowed
        inside = self._inside()
        return [fact for fact in allowed if fact.seq in inside]

    def _allowed(self, facts: Sequence[StoredFact]) -> list[StoredFact]:
        return list(facts) if self._sees is None else [fact for fact in facts if self._sees(fact.place)]

    def _inside(self) -> set[int]:
        return set(self.store.filtered_rows(self._where or Filter()).seq.tolist())

    def knows_relation(self, relation: int) -> bool:
        """Whether there is a fact with this relation."""
        after = None
        limit = 1 if self._where is None and self._sees is None else BATCH
        while batch := self.store.facts_about((), [relation], after=after, limit=limit):
            if self.visible(batch):
                return True
            after = key_of(batch[-1])
        return False

    def edges(self) -> FactEdges:
        """Return all visible facts as columns of ids."""
        sees = self._sees
        if self._where is None:
            return self.store.fact_edges(None if sees is None else lambda _, place: sees(place))
        inside = self._inside()
        return self.store.fact_edges(lambda seq, place: seq in inside and (sees is None or sees(place)))

    def count(self) -> int:
        """Count the visible facts."""
        whole = self._where is None and self._sees is None
        return self.store.fact_count() if whole else int(self.edges().subject.size)

    def batches(
        self, subjects: Sequence[int] = (), relations: Sequence[int] = (), objects: Sequence[int] = ()
    ) -> Iterator[Sequence[StoredFact]]:
        """Read the facts of some subjects, relations and objects, visible or not, batch by batch."""
        after = None
        while batch := self.store.facts_about(subjects, relations, objects, after=after, limit=BATCH):
            yield batch
            after = key_of(batch[-1])
            if len(batch) < BATCH:
                return

    def resolve_pairs(self, pairs: Sequence[tuple[int, int]], believed: float | None = None) -> list[Resolved]:
        """Compute how long the facts of each (subject, relation) hold, from what was known at the time `believed`."""
        grouped: dict[tuple[int, int], list[StoredFact]] = {pair: [] for pair in pairs}
        relations = sorted({relation for _, relation in pairs})
        for fact in self.visible(self.store.facts_about(sorted({subject for subject, _ in pairs}), relations)):
            group = grouped.get((fact.subject, fact.relation))
            if group is not None and (believed is None or fact.learned_at <= believed):
                group.append(fact)
        declared = {
            fact.subject: fact.object_name == ONE
            for fact in self._allowed(self.store.facts_about(relations, [_VALUES]))
        }
        key_of_id = {f"{fact.memory_id}#{fact.number}": key_of(fact) for group in grouped.values() for fact in group}
        ends = {
            key_of_id[fact.subject_name]: fact
            for fact in self._allowed(self.store.facts_about((), [_ENDS]))
            if fact.subject_name in key_of_id and (believed is None or fact.learned_at <= believed)
        }
        return [
            resolve(group, single=declared.get(relation, any(fact.single for fact in group)), ends=ends)
            for (_, relation), group in grouped.items()
        ]

    def periods(self, facts: Sequence[StoredFact], believed: float | None = None) -> list[Period]:
        """Compute how long facts hold, considering all other facts of the same subject and relation."""
        wanted = {key_of(fact) for fact in facts}
        pairs = dict.fromkeys((fact.subject, fact.relation) for fact in facts if fact.relation_name not in RESERVED)
        found = [
            period
            for group in (self.resolve_pairs(list(pairs), believed) if pairs else ())
            for period in group.periods
            if key_of(period.fact) in wanted
        ]
        found += [Period(fact, fact.valid_until, None) for fact in facts if fact.relation_name in RESERVED]
        return sorted(found, key=lambda period: key_of(period.fact))

    def to_facts(self, periods: Sequence[Period]) -> list[Fact]:
        """Convert periods to the facts that users see; decrypt tags if needed."""
        without_tags = [period.fact.memory_id for period in periods if period.fact.tags is None]
        is_encrypted = self.store.encryption is not None and bool(without_tags)
        tags_of = {
            memory.memory_id: memory.tags
            for memory in (self.store.get_many(without_tags) if is_encrypted else ())
            if memory is not None
        }
        return [_build_fact(period, tags_of) for period in periods]


class View:
    """Selects facts that hold at a time, from what was known at another time, with enough confidence."""

    def __init__(self, reader: FactReader, at: float | None, believed: float | None, least: float) -> None:
        self.reader, self._at, self._believed, self._least = reader, at, believed, least

    def select(self, facts: Sequence[StoredFact]) -> list[Period]:
        """Select from some facts; return them with the time during which they hold."""
        trusted = [fact for fact in facts if fact.confidence >= self._least and fact.relation_name not in RESERVED]
        periods = self.reader.periods(self.reader.visible(trusted), self._believed)
        if self._at is None:
            return periods
        return [period for period in periods if period.holds_at(self._at) and not period.fact.negated]

    def stream(
        self, subjects: Sequence[int] = (), relations: Sequence[int] = (), objects: Sequence[int] = ()
    ) -> Iterator[Period]:
        """Read the selected facts of some subjects, relations and objects, batch by batch."""
        for batch in self.reader.batches(subjects, relations, objects):
            yield from self.select(batch)


def _build_fact(period: Period, tags_of: Mapping[str, Mapping[str, str]]) -> Fact:
    fact, by = period.fact, period.ended_by
    return Fact(
        id=f"{fact.memory_id}#{fact.number}",
        subject=fact.subject_name,
        relation=fact.relation_name,
        object=fact.object_name,
        valid_from=fact.valid_from,
        learned_at=fact.learned_at,
        memory_id=fact.memory_id,
        valid_until=period.until,
        ended_by=None if by is None else f"{by.memory_id}#{by.number}",
        confidence=fact.confidence,
        is_value=fact.is_value,
        negated=fact.negated,
        dated=fact.is_dated,
        start=fact.start,
        end=fact.end,
        agent=fact.agent,
        tags=json.loads(fact.tags) if fact.tags else tags_of.get(fact.memory_id, {}),
    )
