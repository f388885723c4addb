"""Reading facts from a store: names to ids, facts with the time during which they hold, and facts as users see them.
Everything in this folder that answers a question reads through this."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from .. import checks
from ..annotations import Moment, Names
from ..facts.model import LIKELY, FactEdges, StoredFact, name_id
from ..facts.relations import inverse, relation_id
from ..facts.stated import ENDS, ONE, RESERVED, SAME_AS, VALUES
from ..filters import Filter
from ..stores.capabilities import FactTable
from .model import Fact
from .validity import Key, Period, Resolved, key_of, resolve

BATCH = 512  # facts read in the first query of a long answer
_MAX_BATCH = 32 * BATCH
_HUB = 2000  # facts of one subject and relation; of more, only those are read that a question needs
_GROUPS = 400  # pairs of subject and relation resolved in one batch
_SAME_AS, _VALUES, _ENDS = name_id(SAME_AS), name_id(VALUES), name_id(ENDS)


Sees = Callable[[str | None], bool]
"""Whether the caller may see memories with this place."""


Pair = tuple[int, int]
"""Subject and relation."""


class FactReader:
    """Reads the facts of a store whose memories match the filter `where` and have a place that `sees` allows. Made for
    one answer: what it has read once, it does not read again."""

    def __init__(self, store: FactTable, where: Filter | None, sees: Sees | None = None) -> None:
        self.store = store
        self._where = where
        self._sees = sees
        self._hubs: dict[Pair, bool] = {}  # large groups, and whether a newer value ends an older one in them
        self._whole: dict[Pair, list[StoredFact]] = {}
        self._resolved: dict[tuple[Pair, float | None], Resolved] = {}  # of whole groups
        self._declared: dict[int, bool] = {}
        self._read_declarations: set[int] = set()

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
        return allowed if self._where is None else [fact for fact in allowed if fact.seq in self._inside]

    def _allowed(self, facts: Sequence[StoredFact]) -> list[StoredFact]:
        return list(facts) if self._sees is None else [fact for fact in facts if self._sees(fact.place)]

    @cached_property
    def _inside(self) -> set[int]:
        """Rows of the memories that match the filter."""
        return set(self.store.filtered_rows(self._where or Filter()).seq.tolist())

    def knows_relation(self, relation: int) -> bool:
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
        inside = self._inside
        return self.store.fact_edges(lambda seq, place: seq in inside and (sees is None or sees(place)))

    def count(self) -> int:
        whole = self._where is None and self._sees is None
        return self.store.fact_count() if whole else int(self.edges().subject.size)

    def batches(
        self,
        subjects: Sequence[int] = (),
        relations: Sequence[int] = (),
        objects: Sequence[int] = (),
        within: tuple[float, float] | None = None,
        size: int = BATCH,
    ) -> Iterator[Sequence[StoredFact]]:
        """Read the facts of some subjects, relations and objects that state a start or an end within a span of time,
        visible or not, batch by batch; `size` is that of the first."""
        after = None
        while batch := self.store.facts_about(subjects, relations, objects, within=within, after=after, limit=size):
            yield batch
            after = key_of(batch[-1])
            if len(batch) < size:
                return
            size = next_size(size)

    def ended(self, facts: Sequence[StoredFact]) -> list[StoredFact]:
        """Return the facts that statements among the given ones end."""
        ids = {fact.subject_name for fact in self._allowed(facts) if fact.relation == _ENDS}
        found = self.store.facts_of(sorted({id_.rpartition("#")[0] for id_ in ids}))
        return [fact for fact in found if _id_of(fact) in ids]

    def resolve_conflicts(self, entity: str | None) -> Iterator[Resolved]:
        """Resolve every subject and relation whose facts may contradict each other; of all, or of those in whose facts
        an entity occurs."""
        declared = self._declarations({fact.subject for fact in self.store.facts_about((), [_VALUES])})
        single = [relation for relation, has_one in declared.items() if has_one]
        many = [relation for relation, has_one in declared.items() if not has_one]
        found = self.store.possible_conflicts(single, [*many, _SAME_AS, _VALUES, _ENDS], self.ids_of(entity))
        about: dict[Pair, set[int] | None] = {}
        for subject, relation, value in found:
            values = about.setdefault((subject, relation), set())
            if value is None:
                about[subject, relation] = None
            elif values is not None:
                values.add(value)
        pairs = list(about)
        for start in range(0, len(pairs), _GROUPS):
            yield from self._resolve(self._read_about({pair: about[pair] for pair in pairs[start : start + _GROUPS]}))

    def resolve_around(self, facts: Sequence[StoredFact], believed: float | None = None) -> list[Resolved]:
        """Compute how long some facts hold, from what was known at the time `believed`: together with the facts of the
        same subject and relation, or of very many such facts with those of the same object, unless a newer value ends
        an older one."""
        about: dict[Pair, set[int]] = {}
        for fact in facts:
            about.setdefault((fact.subject, fact.relation), set()).add(fact.object)
        return self._resolve(self._read_about(about), believed)

    def _read_about(
        self, about: Mapping[Pair, set[int]] | Mapping[Pair, set[int] | None]
    ) -> dict[Pair, list[StoredFact]]:
        """Read the facts that decide how long those of some subjects and relations with some objects hold (None: with
        any)."""
        groups = self._read_groups([pair for pair in about if pair not in self._hubs])
        for pair, objects in about.items():
            if pair in self._hubs:
                groups[pair] = self._read_whole(pair) if objects is None else self._read_hub(pair, objects)
        return groups

    def _read_groups(self, pairs: Sequence[Pair]) -> dict[Pair, list[StoredFact]]:
        """Read all facts of each subject and relation; leave out, and remember in `_hubs`, those with very many."""
        if not pairs:
            return {}
        limit = max(_HUB, 8 * len(pairs))
        relations = sorted({relation for _, relation in pairs})
        found = self.store.facts_about(sorted({subject for subject, _ in pairs}), relations, limit=limit + 1)
        if len(found) <= limit:
            groups: dict[Pair, list[StoredFact]] = {pair: [] for pair in pairs}
            for fact in found:
                group = groups.get((fact.subject, fact.relation))
                if group is not None:
                    group.append(fact)
            return groups
        if len(pairs) > 1:
            middle = len(pairs) // 2
            return self._read_groups(pairs[:middle]) | self._read_groups(pairs[middle:])
        declared = self._declarations(relations).get(relations[0])
        self._hubs[pairs[0]] = any(fact.single for fact in found) if declared is None else declared
        return {}

    def _read_hub(self, pair: Pair, objects: set[int]) -> list[StoredFact]:
        """Read the facts of a large group that decide how long those with some objects hold."""
        subject, relation = pair
        if not self._hubs[pair] and pair not in self._whole:
            limit = max(_HUB, 8 * len(objects))
            found = self.store.facts_about((), [relation], sorted(objects), limit=limit + 1)
            if len(found) <= limit:
                return [fact for fact in found if fact.subject == subject]
        return self._read_whole(pair)

    def _read_whole(self, pair: Pair) -> list[StoredFact]:
        if pair not in self._whole:
            self._whole[pair] = self.store.facts_about([pair[0]], [pair[1]])
        return self._whole[pair]

    def _resolve(self, groups: Mapping[Pair, list[StoredFact]], believed: float | None = None) -> list[Resolved]:
        declared = self._declarations({relation for _, relation in groups})
        resolved = []
        for pair, group in groups.items():
            is_whole = group is self._whole.get(pair)
            if is_whole and (pair, believed) in self._resolved:
                resolved.append(self._resolved[pair, believed])
                continue
            known = [fact for fact in self.visible(group) if believed is None or fact.learned_at <= believed]
            single = declared.get(pair[1], self._hubs.get(pair, False) or any(fact.single for fact in known))
            resolved.append(resolve(known, single=single, ends=self._ends_of(known, believed)))
            if is_whole:
                self._resolved[pair, believed] = resolved[-1]
        return resolved

    def _declarations(self, relations: Collection[int]) -> dict[int, bool]:
        """Return which of some relations are declared to have one value at a time (True) or many (False)."""
        unread = [relation for relation in relations if relation not in self._read_declarations]
        if unread:
            self._read_declarations.update(unread)
            for fact in self._allowed(self.store.facts_about(sorted(unread), [_VALUES])):
                self._declared[fact.subject] = fact.object_name == ONE
        return self._declared

    def _ends_of(self, facts: Sequence[StoredFact], believed: float | None) -> dict[Key, StoredFact]:
        """Map facts to the statement that ended them."""
        if not self._ends:
            return {}
        ids = ((key_of(fact), _id_of(fact)) for fact in facts)
        return {
            key: end
            for key, id_ in ids
            if (end := self._ends.get(id_)) is not None and (believed is None or end.learned_at <= believed)
        }

    @cached_property
    def _ends(self) -> dict[str, StoredFact]:
        """Statements that a fact ended, by the id of that fact."""
        return {fact.subject_name: fact for fact in self._allowed(self.store.facts_about((), [_ENDS]))}

    def periods(self, facts: Sequence[StoredFact], believed: float | None = None) -> list[Period]:
        """Compute how long facts hold, considering all other facts of the same subject and relation."""
        wanted = {key_of(fact) for fact in facts}
        found = [
            period
            for group in self.resolve_around([fact for fact in facts if fact.relation_name not in RESERVED], believed)
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

    def select_groups(self, facts: Sequence[StoredFact]) -> list[Period]:
        """Select from visible facts and from those of the same subject and relation whose time they may change."""
        own = [fact for fact in facts if fact.relation_name not in RESERVED]
        groups = self.reader.resolve_around(own, self._believed)
        return [period for group in groups for period in group.periods if period.fact.confidence >= self._least]

    def stream(
        self,
        subjects: Sequence[int] = (),
        relations: Sequence[int] = (),
        objects: Sequence[int] = (),
        after: Key | None = None,
    ) -> Iterator[Period]:
        """Read the selected facts of some subjects, relations and objects, batch by batch, after one. Where hardly any
        fact of a batch is selected, let the store leave out what cannot be: it must read each fact for that, not its
        indexes."""
        size = BATCH
        conditions: dict[str, Any] = {}
        while batch := self.reader.store.facts_about(
            subjects, relations, objects, after=after, limit=size, **conditions
        ):
            selected = self.select(batch)
            yield from selected
            if len(batch) < size:
                return
            after, size = key_of(batch[-1]), next_size(size)
            if len(selected) < len(batch) / 8:
                conditions = {"may_hold_at": self._at, "least": self._least}


def next_size(size: int) -> int:
    """Return the size of the batch after one of `size`: a store may have to put all facts in order for each batch."""
    return max(size, min(4 * size, _MAX_BATCH))


def _id_of(fact: StoredFact) -> str:
    return f"{fact.memory_id}#{fact.number}"


def _build_fact(period: Period, tags_of: Mapping[str, Mapping[str, str]]) -> Fact:
    fact, by = period.fact, period.ended_by
    return Fact(
        id=_id_of(fact),
        subject=fact.subject_name,
        relation=fact.relation_name,
        object=fact.object_name,
        valid_from=fact.valid_from,
        learned_at=fact.learned_at,
        memory_id=fact.memory_id,
        valid_until=period.until,
        ended_by=None if by is None else _id_of(by),
        confidence=fact.confidence,
        is_value=fact.is_value,
        negated=fact.negated,
        dated=fact.is_dated,
        start=fact.start,
        end=fact.end,
        agent=fact.agent,
        tags=json.loads(fact.tags) if fact.tags else tags_of.get(fact.memory_id, {}),
    )
