"""The questions that `brain.graph` answers: what is known, what was true at a time and what was believed at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from .. import checks
from ..annotations import Moment, Names
from ..errors import InputError, NotFoundError
from ..facts.model import VALUE, StoredFact, name_id, name_key
from ..facts.stated import RESERVED
from . import paths, patterns, whole
from .model import Change, Contradiction, Fact, FactExplanation, Neighbour, Path
from .reader import BATCH, FactReader
from .validity import Key, Period, key_of

if TYPE_CHECKING:
    import networkx

    from ..brain import Brain
    from ..stores.capabilities import FactTable

Direction = Literal["out", "in", "both"]
DIRECTIONS: tuple[Direction, ...] = ("out", "in", "both")
_PAGE = 100
_MAX_DEPTH = 64  # steps of a closure
_MAX_ORDERED = 100_000  # facts whose beginnings and ends are put in order
_FRONT = 1000  # entities whose facts are read at once
_FEW = 2000  # facts of an entity, of which all are read to find those of a span of time
Answer = TypeVar("Answer")


class GraphQuestions(ABC):
    """Answers questions from the facts of a store."""

    brain: Brain
    store: FactTable

    @abstractmethod
    def _reader(self) -> FactReader:
        """Return a reader for one answer. It keeps what it has read, so it must not outlive the answer."""

    def _read(self, answer: Callable[[FactReader], Answer]) -> Answer:
        """Answer from one snapshot of the store; may be retried."""
        return self.store.read_transaction(lambda: answer(self._reader()))

    def get(self, fact: Fact | str) -> Fact:
        """Return a fact by its id; NotFoundError if there is none."""
        wanted = id_of(fact)
        for found in self._of_memory(memory_of(wanted)):
            if found.id == wanted:
                return found
        raise NotFoundError(wanted, "fact")

    def of_memory(self, memory_id: str) -> list[Fact]:
        """Return the facts whose evidence is this memory."""
        return self._of_memory(checks.memory_id("memory_id", memory_id))

    def _of_memory(self, memory_id: str) -> list[Fact]:
        def read(reader: FactReader) -> list[Fact]:
            return reader.to_facts(reader.periods(reader.visible(self.store.facts_of([memory_id]))))

        return self._read(read)

    def facts(
        self,
        subject: str | None = None,
        relation: Names | None = None,
        object: str | None = None,
        *,
        at: Moment | None = None,
        believed: Moment | None = None,
        history: bool = False,
        likely: bool = False,
        limit: int = _PAGE,
        offset: int = 0,
    ) -> list[Fact]:
        """Return matching facts that are true now or at the time `at`, using only what was known at the time
        `believed`. With `history`, include facts that are over."""
        checks.whole("limit", limit, low=1)
        checks.whole("offset", offset)

        def read(reader: FactReader) -> list[Fact]:
            view = reader.view(at, believed, history, likely)
            first, last = reader.ids_of(subject, "subject"), reader.ids_of(object, "object")
            found: Iterator[Period] = view.stream(first, reader.relation_ids(relation), last)
            inverse = reader.inverse_ids(relation)
            found = chain(found, view.stream(last, inverse, first)) if inverse else found
            return reader.to_facts(list(islice(found, offset, offset + limit)))

        return self._read(read)

    def facts_after(
        self, place: Key | None, limit: int, *, at: Moment | None, believed: Moment | None, history: bool, likely: bool
    ) -> tuple[list[Fact], Key | None]:
        """Return a page of all facts and the place after which the next one begins, or None: quicker than an offset."""

        def read(reader: FactReader) -> tuple[list[Fact], Key | None]:
            found = list(islice(reader.view(at, believed, history, likely).stream(after=place), limit + 1))
            following = key_of(found[limit - 1].fact) if len(found) > limit else None
            return reader.to_facts(found[:limit]), following

        return self._read(read)

    def neighbours(
        self,
        entity: str,
        *,
        relations: Names | None = None,
        direction: Direction = "both",
        at: Moment | None = None,
        believed: Moment | None = None,
        likely: bool = False,
        limit: int = _PAGE,
        offset: int = 0,
    ) -> list[Neighbour]:
        """Return a page of what facts connect with an entity, in the order in which they were learned."""
        checks.name("entity", entity)
        checks.one_of("direction", direction, DIRECTIONS)
        checks.whole("limit", limit, low=1)
        checks.whole("offset", offset)

        def read(reader: FactReader) -> list[Neighbour]:
            view, ids, kinds = (
                reader.view(at, believed, False, likely),
                reader.ids_of(entity),
                reader.relation_ids(relations),
            )
            inverse = reader.inverse_ids(relations)
            found: Iterator[Period] = iter(())
            if direction != "in":
                found = chain(found, view.stream(ids, kinds), view.stream((), inverse, ids) if inverse else ())
            if direction != "out":
                found = chain(found, view.stream((), kinds, ids), view.stream(ids, inverse) if inverse else ())
            page = list(islice(found, offset, offset + limit))
            about = set(ids)
            return [
                Neighbour(fact.object, fact, True)
                if period.fact.subject in about
                else Neighbour(fact.subject, fact, False)
                for period, fact in zip(page, reader.to_facts(page), strict=True)
            ]

        return self._read(read)

    def as_of(
        self, time: Moment, entity: str | None = None, *, believed: Moment | None = None, limit: int = _PAGE
    ) -> list[Fact]:
        """Return what was true at `time`, of one entity or of all, using only what was known at the time `believed`."""
        if entity is None:
            return self.facts(at=time, believed=believed, limit=limit)
        found = [one.fact for one in self.neighbours(entity, at=time, believed=believed, limit=limit)]
        return list({fact.id: fact for fact in found}.values())

    def timeline(
        self, entity: str, *, believed: Moment | None = None, limit: int = 1000, offset: int = 0
    ) -> list[Change]:
        """Return a page of when each fact about an entity began and ended, oldest first."""
        checks.name("entity", entity)
        checks.whole("limit", limit, low=1)
        checks.whole("offset", offset)

        def read(reader: FactReader) -> list[Change]:
            found = _moments_of(reader, entity, believed, _MAX_ORDERED)
            if found is None:
                raise InputError(
                    f"entity {entity!r} has more than {_MAX_ORDERED:,} facts, too many to put in order; ask for those "
                    "between two times, or for its facts in pages",
                    field="entity",
                )
            return _changes(reader, sorted(found, key=_by_time)[offset : offset + limit])

        return self._read(read)

    def between(
        self,
        start: Moment,
        end: Moment,
        entity: str | None = None,
        *,
        believed: Moment | None = None,
        limit: int = 1000,
        offset: int = 0,
    ) -> list[Change]:
        """Return a page of the facts that began or ended between two times, oldest first."""
        first, last = checks.moment("start", start), checks.moment("end", end, end_of_day=True)
        if last <= first:
            raise InputError("end must be after start", field="end")
        checks.whole("limit", limit, low=1)
        checks.whole("offset", offset)

        def read(reader: FactReader) -> list[Change]:
            found = None if entity is None else _moments_of(reader, entity, believed, _FEW)
            if found is None:
                found = _moments_within(reader, first, last, entity, believed)
            if found is None and entity is not None:
                found = _moments_of(reader, entity, believed, _MAX_ORDERED)
            if found is None:
                raise InputError(
                    f"more than {_MAX_ORDERED:,} facts have a start or an end between these times, too many to put in "
                    "order; choose a shorter time",
                    field="end",
                )
            inside = [one for one in found if first <= one.time < last]
            return _changes(reader, sorted(inside, key=_by_time)[offset : offset + limit])

        return self._read(read)

    def contradictions(self, entity: str | None = None, *, limit: int = _PAGE, offset: int = 0) -> list[Contradiction]:
        """Return pairs of facts that cannot both be true at one time, with the evidence of both; of all, or of those
        in which an entity occurs and their rivals."""
        checks.whole("limit", limit, low=1)
        checks.whole("offset", offset)

        def read(reader: FactReader) -> list[Contradiction]:
            found = chain.from_iterable(group.conflicts for group in reader.resolve_conflicts(entity))
            pairs = [
                reader.to_facts([Period(first, first.valid_until, None), Period(second, second.valid_until, None)])
                for first, second in islice(found, offset, offset + limit)
            ]
            return [Contradiction(first, second) for first, second in pairs]

        return self._read(read)

    def closure(
        self,
        entity: str,
        relation: str,
        *,
        direction: Literal["out", "in"] = "out",
        depth: int = _MAX_DEPTH,
        limit: int = 1000,
        offset: int = 0,
    ) -> list[tuple[str, int]]:
        """Return a page of the entities reachable through one relation, with the number of steps, the nearest first;
        each once, even in cycles."""
        checks.name("entity", entity)
        checks.one_of("direction", direction, ("out", "in"))
        checks.whole("depth", depth, low=1)
        checks.whole("limit", limit, low=1)
        checks.whole("offset", offset)

        def read(reader: FactReader) -> list[tuple[str, int]]:
            reached = _walk(reader, reader.ids_of(entity), relation, direction, depth)
            return [(name, steps) for _, name, steps in islice(reached, offset, offset + limit)]

        return self._read(read)

    def _reaches(self, entity: str, relation: str, goal: str) -> bool:
        """Whether `goal` is reachable from an entity through one relation. Searches from both ends until one of them
        leads no further, because in a tree one direction is short."""

        def read(reader: FactReader) -> bool:
            first, last = reader.ids_of(entity), reader.ids_of(goal)
            forth = _walk(reader, first, relation, "out", _MAX_DEPTH)
            back = _walk(reader, last, relation, "in", _MAX_DEPTH)
            return bool(set(first) & set(last)) or any(
                there in last or here in first for (there, *_), (here, *_) in zip(forth, back, strict=False)
            )

        return self._read(read)

    def paths(
        self,
        start: str,
        goal: str,
        max_hops: int = 3,
        *,
        k: int = 1,
        relations: Names | None = None,
        at: Moment | None = None,
        believed: Moment | None = None,
        likely: bool = False,
    ) -> list[Path]:
        """Return the `k` shortest paths between two entities, each of at most `max_hops` facts of the given relations.
        Facts are followed in both directions, but not through entities with more than 2,000 facts."""
        checks.name("start", start)
        checks.name("goal", goal)
        checks.whole("max_hops", max_hops, low=1, high=8)
        checks.whole("k", k, low=1, high=1000)

        def read(reader: FactReader) -> list[Path]:
            view = reader.view(at, believed, False, likely)
            kinds = [*reader.relation_ids(relations), *reader.inverse_ids(relations)]
            return paths.find(view, start, goal, max_hops, k, kinds)

        return self._read(read)

    def query(
        self, pattern: str, *, at: Moment | None = None, believed: Moment | None = None, limit: int = 100
    ) -> list[dict[str, str]]:
        """Return the values of the variables of a pattern: facts with variables, separated by commas.

            graph.query("?who owns ?service, ?service depends on redis")

        Names of several words may be quoted. The relation may be a variable, too.
        """
        checks.whole("limit", limit, low=1)

        def read(reader: FactReader) -> list[dict[str, str]]:
            view = reader.view(at, believed, False, False)
            return patterns.match(view, pattern, lambda: [name for name, _ in self.relations()])[:limit]

        return self._read(read)

    def important(self, limit: int = 20) -> list[tuple[str, float]]:
        """Return entities by PageRank, the most important first; the shares of all entities sum to 1."""
        return whole.important(self.store, self._reader().edges(), checks.whole("limit", limit, low=1))

    def communities(self, *, smallest: int = 3, limit: int = 20) -> list[list[str]]:
        """Return groups of entities with many facts among them, the largest first (Louvain; above 200,000 facts label
        propagation)."""
        smallest, limit = checks.whole("smallest", smallest, low=1), checks.whole("limit", limit, low=1)
        return whole.communities(self.store, self._reader().edges(), smallest, limit)

    def to_networkx(self, *, history: bool = False) -> networkx.MultiDiGraph[Any]:
        """Return the facts that hold now, or with `history` all, as a networkx.MultiDiGraph. Nodes are names of
        entities; edges have the fields of a fact, and its id as key."""
        return whole.to_networkx(self.all_facts(history=history))

    def explain(self, fact: Fact | str) -> FactExplanation:
        """Return the sentence that states a fact, and other facts of the same subject and relation."""
        shown = self.get(fact)
        memory = self.brain.get(shown.memory_id)
        text = "" if memory is None else memory.text
        same: list[Fact] = []
        others: list[Fact] = []
        for other in self.facts(shown.subject, shown.relation, history=True, likely=True, limit=1000):
            if other.id != shown.id:
                (same if name_id(other.object) == name_id(shown.object) else others).append(other)
        return FactExplanation(shown, text[shown.start : shown.end] or text, text, same, others)

    def entities(self, like: str | None = None, *, limit: int = _PAGE) -> list[tuple[str, int]]:
        """Return entities and how many facts each has, the most first; `like` is a part of the name."""
        edges = whole.without_reserved(self._reader().edges())
        ids = np.concatenate([edges.subject, edges.object[edges.flags & VALUE == 0]])
        found, counts = np.unique(ids, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        wanted = None if like is None else name_key(checks.name("like", like))
        names: list[tuple[str, int]] = []
        for start in range(0, order.size, 1000):
            part = order[start : start + 1000]
            known = self.store.known_names(found[part].tolist())
            for at in part.tolist():
                name = known.get(int(found[at]))
                if name is not None and (wanted is None or wanted in name_key(name)):
                    names.append((name, int(counts[at])))
            if len(names) >= limit:
                break
        return names[:limit]

    def relations(self) -> list[tuple[str, int]]:
        """Return relations and how many facts each has, the most first."""
        kinds, counts = np.unique(self._reader().edges().relation, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        found = []
        for at in order.tolist():
            first = self.store.facts_about((), [int(kinds[at])], limit=1)
            if first and first[0].relation_name not in RESERVED:
                found.append((first[0].relation_name, int(counts[at])))
        return found

    def all_facts(self, *, history: bool = False, likely: bool = False) -> Iterator[Fact]:
        """Yield every fact, in the order in which they were learned."""
        reader = self._reader()
        found = reader.view(None, None, history, likely).stream()
        while page := list(islice(found, BATCH)):
            yield from reader.to_facts(page)

    def __len__(self) -> int:
        """Count the facts, including those that are over."""
        return self._reader().count()


class _Moment(NamedTuple):
    """A beginning or end, before the fact is built."""

    time: float
    began: bool
    period: Period


def _by_time(one: _Moment) -> tuple[float, bool, Key]:
    return one.time, one.began, key_of(one.period.fact)


def _moments_of(reader: FactReader, entity: str, believed: Moment | None, most: int) -> list[_Moment] | None:
    """Return when each fact about an entity began and ended, in no order; None if it has more than `most` facts."""
    ids, found = reader.ids_of(entity), dict[Key, StoredFact]()
    for batch in chain(reader.batches(ids, size=most + 1), reader.batches((), (), ids, size=most + 1)):
        found.update((key_of(fact), fact) for fact in reader.visible(batch))
        if len(found) > most:
            return None
    view = reader.view(None, believed, True, False)
    return [one for period in view.select(list(found.values())) for one in _moments(period)]


def _moments_within(
    reader: FactReader, first: float, last: float, entity: str | None, believed: Moment | None
) -> list[_Moment] | None:
    """Return when facts, of an entity or all, began and ended between two times, and other moments; None if there are
    too many. A fact ends as it says, by a statement that it is over, or when another one begins: all of these state
    a time of this span."""
    found: list[StoredFact] = []
    for batch in reader.batches(within=(first, last), size=_MAX_ORDERED + 1):
        found += [*reader.visible(batch), *reader.ended(batch)]
        if len(found) > _MAX_ORDERED:
            return None
    view, ids = reader.view(None, believed, True, False), set(reader.ids_of(entity))
    periods = view.select_groups(found)
    about = (period for period in periods if not ids or not ids.isdisjoint((period.fact.subject, period.fact.object)))
    return [one for period in about for one in _moments(period)]


def _moments(period: Period) -> Iterator[_Moment]:
    yield _Moment(period.fact.valid_from, True, period)
    if period.until is not None:
        yield _Moment(period.until, False, period)


def _walk(
    reader: FactReader, ids: Sequence[int], relation: str, direction: Literal["out", "in"], depth: int
) -> Iterator[tuple[int, str, int]]:
    """Yield the id, name and number of steps of every entity reachable through one relation, the nearest first."""
    view = reader.view(None, None, False, False)
    kinds, inverse = reader.relation_ids(relation), reader.inverse_ids(relation)
    forward, backward = (kinds, inverse) if direction == "out" else (inverse, kinds)
    front, seen = list(ids), set(ids)
    for step in range(1, depth + 1):
        following: list[int] = []
        for start in range(0, len(front), _FRONT):
            part = front[start : start + _FRONT]
            ahead = ((one.fact.object, one.fact.object_name) for one in view.stream(part, forward))
            behind = ((one.fact.subject, one.fact.subject_name) for one in view.stream((), backward, part))
            for key, name in chain(ahead if forward else (), behind if backward else ()):
                if key not in seen:
                    seen.add(key)
                    following.append(key)
                    yield key, name, step
        if not following:
            return
        front = following


def _changes(reader: FactReader, moments: Sequence[_Moment]) -> list[Change]:
    facts = reader.to_facts([one.period for one in moments])
    return [Change(one.time, one.began, fact) for one, fact in zip(moments, facts, strict=True)]


def id_of(fact: Fact | str) -> str:
    return fact.id if isinstance(fact, Fact) else checks.name("fact", fact)


def memory_of(fact: Fact | str) -> str:
    """Return the id of the memory that a fact comes from."""
    if isinstance(fact, Fact):
        return fact.memory_id
    memory_id, mark, number = checks.name("fact", fact).rpartition("#")
    if not mark or not number.isdigit():
        raise checks.refuse("fact", "a Fact or its id, as in 'agent-1-1700000000#0'", fact)
    return memory_id
