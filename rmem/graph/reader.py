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

BATCH = 512  # facts that are read together
_SAME_AS, _VALUES, _ENDS = name_id(SAME_AS), name_id(VALUES), name_id(ENDS)


Sees = Callable[[str | None], bool]
"""Whether somebody may know of memories with this place."""


class FactReader:
    """The facts of a store, or those whose evidence is inside a filter and of a place that `sees` allows."""

    def __init__(self, store: FactTable, where: Filter | None, sees: Sees | None = None) -> None:
        self.store = store
        self._where = where
        self._sees = sees

    def ids_of(self, name: str | None, field: str = "entity") -> list[int]:
        """The ids of a name and of all others that mean the same."""
        if name is None:
            return []
        wanted = {name_id(checks.name(field, name))}
        while True:
            joined = set(wanted)
            for fact in self._allowed(self.store.facts_about(list(wanted), [_SAME_AS])):
                joined.add(fact.object)
            for fact in self._allowed(self.store.facts_about((), [_SAME_AS], list(wanted))):
                joined.add(fact.subject)
            if joined == wanted:
                return sorted(wanted)
            wanted = joined

    def relation_ids(self, relations: Names | None) -> list[int]:
        return [] if relations is None else [relation_id(one) for one in checks.names("relations", relations)]

    def inverse_ids(self, relations: Names | None) -> list[int]:
        """The ids of the relations that say the same from the object's side: "ann owns x" is kept as x's owner."""
        named = [] if relations is None else checks.names("relations", relations)
        return [relation_id(other) for one in named if (other := inverse(one.strip().lower())) is not None]

    def view(self, at: Moment | None, believed: Moment | None, history: bool, likely: bool) -> View:
        moment = time.time() if at is None else checks.moment("at", at, end_of_day=True)
        known = None if believed is None else checks.moment("believed", believed, end_of_day=True)
        return View(self, None if history else moment, known, 0.0 if likely else LIKELY + 1e-9)

    def visible(self, facts: Sequence[StoredFact]) -> list[StoredFact]:
        """The facts whose evidence is inside this graph's filter, and may be known."""
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
        """All visible facts as numbers."""
        sees = self._sees
        if self._where is None:
            return self.store.fact_edges(None if sees is None else lambda _, place: sees(place))
        inside = self._inside()
        return self.store.fact_edges(lambda seq, place: seq in inside and (sees is None or sees(place)))

    def count(self) -> int:
        """How many facts are visible."""
        whole = self._where is None and self._sees is None
        return self.store.fact_count() if whole else int(self.edges().subject.size)

    def resolved(self, pairs: Sequence[tuple[int, int]], believed: float | None = None) -> list[Resolved]:
        """How long the facts of some subjects and relations hold, as far as it was known at a time."""
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
        told = {f"{fact.memory_id}#{fact.number}": key_of(fact) for group in grouped.values() for fact in group}
        ends = {
            told[fact.subject_name]: fact
            for fact in self._allowed(self.store.facts_about((), [_ENDS]))
            if fact.subject_name in told and (believed is None or fact.learned_at <= believed)
        }
        return [
            resolve(group, single=declared.get(relation, any(fact.single for fact in group)), ends=ends)
            for (_, relation), group in grouped.items()
        ]

    def periods(self, facts: Sequence[StoredFact], believed: float | None = None) -> list[Period]:
        """How long facts hold, each seen beside all others of its subject and relation."""
        wanted = {key_of(fact) for fact in facts}
        pairs = dict.fromkeys((fact.subject, fact.relation) for fact in facts if fact.relation_name not in RESERVED)
        found = [
            period
            for group in (self.resolved(list(pairs), believed) if pairs else ())
            for period in group.periods
            if key_of(period.fact) in wanted
        ]
        found += [Period(fact, fact.valid_until, None) for fact in facts if fact.relation_name in RESERVED]
        return sorted(found, key=lambda period: key_of(period.fact))

    def shown(self, periods: Sequence[Period]) -> list[Fact]:
        """Facts as users see them."""
        sealed = [period.fact.memory_id for period in periods if period.fact.tags is None]
        hidden = self.store.encryption is not None and bool(sealed)
        opened = {
            memory.memory_id: memory.tags
            for memory in (self.store.get_many(sealed) if hidden else ())
            if memory is not None
        }
        return [_shown(period, opened) for period in periods]


class View:
    """What is shown of facts: those that hold at a time, as far as they were known at another, and trusted enough."""

    def __init__(self, reader: FactReader, at: float | None, believed: float | None, least: float) -> None:
        self.reader, self._at, self._believed, self._least = reader, at, believed, least

    def of(self, facts: Sequence[StoredFact]) -> list[Period]:
        """Those of some facts that are shown, with the time during which they hold."""
        trusted = [fact for fact in facts if fact.confidence >= self._least and fact.relation_name not in RESERVED]
        periods = self.reader.periods(self.reader.visible(trusted), self._believed)
        if self._at is None:
            return periods
        return [period for period in periods if period.holds_at(self._at) and not period.fact.negated]

    def stream(
        self, subjects: Sequence[int] = (), relations: Sequence[int] = (), objects: Sequence[int] = ()
    ) -> Iterator[Period]:
        """The facts that fit and are shown, read as they are needed."""
        after = None
        while batch := self.reader.store.facts_about(subjects, relations, objects, after=after, limit=BATCH):
            yield from self.of(batch)
            after = key_of(batch[-1])
            if len(batch) < BATCH:
                return


def _shown(period: Period, opened: Mapping[str, Mapping[str, str]]) -> Fact:
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
        tags=json.loads(fact.tags) if fact.tags else opened.get(fact.memory_id, {}),
    )
