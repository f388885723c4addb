"""Graph: `brain.graph`. State facts, and ask what is known, what was true at a time and what was believed at a time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from .. import checks
from ..annotations import Moment, Names, Where
from ..errors import ConfigError, InputError, NotFoundError
from ..facts.by_model import KEY, FactReaderModel, fact_reader_for, quoted_facts
from ..facts.model import STATED, VALUE, StoredFact, name_id, name_key
from ..facts.relations import relation_id
from ..facts.stated import ENDS, MANY, ONE, RESERVED, SAME_AS, TYPE, VALUES, sentence, stated_contents
from ..filters import Filter
from ..stores.base import Edited, Progress
from ..stores.capabilities import FactTable
from . import paths, patterns, whole
from .mapping import Mapped, map_rows
from .model import Change, Contradiction, Explanation, Fact, Neighbour, Path
from .reader import BATCH, FactReader, Sees
from .validity import Period, Resolved

if TYPE_CHECKING:
    import networkx

    from ..brain import Brain
    from ..models import Memory

Direction = Literal["out", "in", "both"]
DIRECTIONS: tuple[Direction, ...] = ("out", "in", "both")
TREES = frozenset(map(relation_id, ("part of", "is part of", "contains", "belongs to", "subclass of", "inside")))
"""Relations that form a tree: nothing can be part of itself."""
_PAGE = 100
_GROUPS = 400  # pairs of subject and relation resolved in one batch
_MAX_DEPTH = 64  # steps of a closure


class Scope(NamedTuple):
    """What a caller sees and writes in a store that several people share."""

    sees: Sees
    fields: Mapping[str, Any]
    """Arguments of `Brain.remember` for every stated fact, such as its author."""


class Graph:
    """The facts of a store.

        graph.add("staging", "runs on", "port 5433", since="2026-05-01")
        graph.facts("staging")                           # what is true now
        graph.facts("staging", at="2026-04-01")          # what was true then
        graph.facts("staging", believed="2026-04-01")    # what was known then

    Names match without regard to case, articles, hyphens and underscores; `alias` joins names that differ more.
    Facts are read from every memory as it is remembered; those that are only likely are left out unless `likely=True`.
    `where` limits all answers to facts whose evidence is inside a filter.
    """

    def __init__(self, brain: Brain, where: Where | None = None, scope: Scope | None = None) -> None:
        if not isinstance(brain.store, FactTable):
            raise ConfigError(
                f"{type(brain.store).__name__} keeps no facts; use an SQLite file or PostgreSQL (capability 'facts')"
            )
        self.brain = brain
        self.store = brain.store
        self._scope = scope
        self._reader = FactReader(
            brain.store, None if where is None else Filter.of(where), None if scope is None else scope.sees
        )

    def where(self, where: Where) -> Graph:
        """Return this graph restricted to facts whose memories match a filter."""
        return Graph(self.brain, where, self._scope)

    # Writing

    def add(
        self,
        subject: str,
        relation: str,
        object: str | float,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        negated: bool = False,
        confidence: float = STATED,
        agent: str = "default",
        tags: Mapping[str, Any] | None = None,
        when: Moment | None = None,
        is_value: bool = False,
        place: str | None = None,
    ) -> Fact:
        """State a fact. It is a memory of the type `fact`: recalled, shared, exported and forgotten as one.

        `since` and `until` tell when it is true; without `since` it counts from `when`, the time of the memory. A
        number is a value; words are the name of an entity unless `is_value`. `place` is that of the memory: who sees it
        on a server.
        """
        object_name = (
            checks.name("object", object) if isinstance(object, str) else f"{checks.number('object', object):g}"
        )
        names = checks.name("subject", subject), checks.name("relation", relation), object_name
        if name_key(relation).startswith("rmem:"):
            raise InputError("relation must not begin with 'rmem:'", field="relation")
        for field, name in zip(("subject", "relation", "object"), names, strict=True):
            if not name_key(name):
                raise checks.refuse(field, "a name with letters or digits", name)
        start = None if since is None else checks.moment("since", since)
        end = None if until is None else checks.moment("until", until, end_of_day=True)
        if start is not None and end is not None and end <= start:
            raise InputError(f"until must be after since, but {until!r} is not after {since!r}", field="until")
        if not negated:
            self._check_tree(*names)
        return self._state(
            *names,
            is_value=checks.flag("is_value", is_value) or not isinstance(object, str),
            since=start,
            until=end,
            negated=checks.flag("negated", negated),
            confidence=checks.share("confidence", confidence),
            agent=agent,
            tags=tags,
            when=when,
            place=place,
        )

    def _check_tree(self, subject: str, relation: str, object: str) -> None:
        """Refuse a fact that would make something part of itself."""
        if relation_id(relation) not in TREES:
            return
        above = [name for name, _ in self.closure(object, relation)]
        if name_id(subject) in {name_id(name) for name in [object, *above]}:
            raise InputError(
                f"{subject!r} {relation} {object!r} would close a circle"
                + (f": {object!r} {relation} {subject!r} already" if name_id(subject) != name_id(object) else ""),
                field="object",
            )

    def add_many(self, facts: Iterable[Fact], on_progress: Progress | None = None) -> int:
        """State facts from a file or another store; return how many. All are checked before the first is written. They
        get new ids and count as learned now."""
        items = []
        for number, fact in enumerate(facts):
            names = {"subject": fact.subject, "relation": fact.relation, "object": fact.object}
            for field, name in names.items():
                if not name_key(checks.name(f"fact {number}: {field}", name)):
                    raise checks.refuse(f"fact {number}: {field}", "a name with letters or digits", name)
            if fact.valid_until is not None and fact.valid_until <= fact.valid_from:
                raise InputError(f"fact {number}: valid_until must be after valid_from", field="valid_until")
            contents = stated_contents(
                **names,
                is_value=fact.is_value,
                since=fact.valid_from if fact.dated else None,
                until=fact.valid_until,
                negated=fact.negated,
                confidence=fact.confidence,
            )
            items.append(
                {
                    "text": sentence(**names, negated=fact.negated),
                    "type": TYPE,
                    "agent": fact.agent,
                    "tags": dict(fact.tags) or None,
                    "when": fact.valid_from,
                    "metadata": contents,
                }
            )
        return len(self.brain.remember_many(items, on_progress=on_progress))

    def map_table(
        self,
        name: str,
        rows: Iterable[Mapping[str, Any]],
        *,
        subject: str,
        relation: str,
        object: str,
        since: str | None = None,
        until: str | None = None,
        on_progress: Progress | None = None,
    ) -> Mapped:
        """State one fact for each row of a table; `subject`, `object`, `since` and `until` are names of columns.

            graph.map_table("deploys", client.query("SELECT * FROM deploys"),
                            subject="service", relation="runs on", object="host", since="deployed_at")

        Called again, it adds new facts and removes those that the table no longer states.
        """
        columns = {"subject": subject, "object": object, "since": since, "until": until}
        checked = {part: None if one is None else checks.name(part, one) for part, one in columns.items()}
        table, kind = checks.name("name", name), checks.name("relation", relation)
        return map_rows(self.brain, table, rows, checked, kind, on_progress)

    def read_with(
        self,
        model: str | FactReaderModel,
        where: Where | None = None,
        *,
        again: bool = False,
        on_progress: Progress | None = None,
    ) -> int:
        """Let a language model read facts in memories that none has read yet (with `again`, in all); how many it found.

            graph.read_with("chat:openai/gpt-5-mini@https://openrouter.ai/api/v1", where={"agent": "swe-01"})

        Off unless called: the texts are sent to that server. `model` may also be a function that takes a text. What it
        finds is kept with the memory and counts as likely, so that it never wins over what was stated.
        """
        read = fact_reader_for(model)
        waiting = [
            memory
            for memory in self.brain.memories(where, order="oldest", limit=None)
            if "text" in memory.contents and memory.type != TYPE and (again or KEY not in memory.contents)
        ]
        count = 0
        for number, memory in enumerate(waiting, 1):
            found = read(memory.text)

            def edit(current: Memory | None, found: object = found) -> Edited | None:
                if current is None:
                    return None
                current.contents = {**current.contents, KEY: quoted_facts(current.text, found)}
                return Edited(self.brain.cleaned(current))

            kept = self.brain.edit(memory.id, edit)
            count += 0 if kept is None else len(kept.contents[KEY])
            if on_progress is not None:
                on_progress(number, len(waiting))
        return count

    def _state(
        self,
        subject: str,
        relation: str,
        object: str,
        *,
        agent: str = "default",
        tags: Mapping[str, Any] | None = None,
        when: Moment | None = None,
        place: str | None = None,
        **details: Any,
    ) -> Fact:
        text = sentence(subject, relation, object, negated=details.get("negated", False))
        contents = stated_contents(subject, relation, object, **details)
        fields = {"agent": agent, "place": place, **({} if self._scope is None else self._scope.fields)}
        memory = self.brain.remember(text, type=TYPE, tags=tags, when=when, metadata=contents, **fields)
        found = self._of_memory(memory.memory_id)
        if not found:
            raise ConfigError("the privacy policy removed the names of this fact")
        return found[0]

    def end(self, fact: Fact | str, when: Moment | None = None) -> Fact:
        """State that a fact is no longer true from `when` on; `undo` reverts that. It stays in the history. Whoever
        sees the fact sees its end."""
        ended = self.get(fact)
        at = time.time() if when is None else checks.moment("when", when)
        if at <= ended.valid_from:
            raise InputError(f"when must be after the fact began ({ended})", field="when")
        evidence = self.brain.get(ended.memory_id)
        place = None if evidence is None else evidence.place
        return self._state(ended.id, ENDS, ended.id, since=at, place=place, tags=ended.tags)

    def alias(self, name: str, other: str) -> Fact:
        """State that two names mean one entity."""
        if name_id(checks.name("name", name)) == name_id(checks.name("other", other)):
            raise InputError("name and other are the same name already", field="other")
        return self._state(name, SAME_AS, other)

    def declare(self, relation: str, *, single: bool) -> Fact:
        """State whether a relation has one value at a time, so that a newer value ends the older one, or many."""
        return self._state(checks.name("relation", relation), VALUES, ONE if checks.flag("single", single) else MANY)

    def undo(self, fact: Fact | str) -> bool:
        """Remove a stated fact, end, alias or declaration. To remove an extracted fact, forget its memory."""
        memory_id = memory_of(fact)
        memory = self.brain.get(memory_id)
        if memory is not None and not (self._scope is None or self._scope.sees(memory.place)):
            raise NotFoundError(memory_id)
        if memory is not None and memory.type != TYPE:
            raise InputError(
                f"fact must be a stated one; this was extracted from the memory {memory_id!r}: forget that memory, or "
                "end the fact with `end`",
                field="fact",
            )
        if not self.brain.forget(memory_id):
            raise NotFoundError(memory_id)
        return True

    # Reading

    def get(self, fact: Fact | str) -> Fact:
        """Return a fact by its id; NotFoundError if there is none."""
        wanted = fact.id if isinstance(fact, Fact) else checks.name("fact", fact)
        for found in self._of_memory(memory_of(wanted)):
            if found.id == wanted:
                return found
        raise NotFoundError(wanted)

    def of_memory(self, memory_id: str) -> list[Fact]:
        """Return the facts whose evidence is this memory."""
        return self._of_memory(checks.memory_id("memory_id", memory_id))

    def _of_memory(self, memory_id: str) -> list[Fact]:
        def read() -> list[Fact]:
            return self._reader.to_facts(self._reader.periods(self._reader.visible(self.store.facts_of([memory_id]))))

        return self.store.read_transaction(read)

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

        def read() -> list[Fact]:
            view = self._reader.view(at, believed, history, likely)
            first, last = self._reader.ids_of(subject, "subject"), self._reader.ids_of(object, "object")
            found: Iterator[Period] = view.stream(first, self._reader.relation_ids(relation), last)
            inverse = self._reader.inverse_ids(relation)
            found = chain(found, view.stream(last, inverse, first)) if inverse else found
            return self._reader.to_facts(list(islice(found, offset, offset + limit)))

        return self.store.read_transaction(read)

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

        def read() -> list[Neighbour]:
            view, ids, kinds = (
                self._reader.view(at, believed, False, likely),
                self._reader.ids_of(entity),
                self._reader.relation_ids(relations),
            )
            inverse = self._reader.inverse_ids(relations)
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
                for period, fact in zip(page, self._reader.to_facts(page), strict=True)
            ]

        return self.store.read_transaction(read)

    def as_of(
        self, time: Moment, entity: str | None = None, *, believed: Moment | None = None, limit: int = _PAGE
    ) -> list[Fact]:
        """Return what was true at `time`, of one entity or of all, using only what was known at the time `believed`."""
        if entity is None:
            return self.facts(at=time, believed=believed, limit=limit)
        found = [one.fact for one in self.neighbours(entity, at=time, believed=believed, limit=limit)]
        return list({fact.id: fact for fact in found}.values())

    def timeline(self, entity: str, *, believed: Moment | None = None, limit: int = 1000) -> list[Change]:
        """Return when each fact about an entity began and ended, oldest first."""
        return self._changes(checks.name("entity", entity), believed, limit)

    def between(
        self, start: Moment, end: Moment, entity: str | None = None, *, believed: Moment | None = None
    ) -> list[Change]:
        """Return the facts that began or ended between two times."""
        first, last = checks.moment("start", start), checks.moment("end", end, end_of_day=True)
        if last <= first:
            raise InputError("end must be after start", field="end")
        return [change for change in self._changes(entity, believed, None) if first <= change.time < last]

    def _changes(self, entity: str | None, believed: Moment | None, limit: int | None) -> list[Change]:
        def read() -> list[Change]:
            view, ids = self._reader.view(None, believed, True, False), self._reader.ids_of(entity)
            stored = self.store.facts_about(ids, limit=limit)
            if ids:
                stored += self.store.facts_about((), (), ids, limit=limit)
            facts = {fact.id: fact for fact in self._reader.to_facts(view.select(stored))}
            changes = [Change(fact.valid_from, True, fact) for fact in facts.values()]
            changes += [
                Change(fact.valid_until, False, fact) for fact in facts.values() if fact.valid_until is not None
            ]
            return sorted(changes, key=lambda change: (change.time, change.began))

        return self.store.read_transaction(read)

    def contradictions(self, entity: str | None = None, *, limit: int = _PAGE, offset: int = 0) -> list[Contradiction]:
        """Return pairs of facts that cannot both be true at one time, with the evidence of both; of all, or of those
        in which an entity occurs and their rivals."""
        checks.whole("limit", limit, low=1)
        checks.whole("offset", offset)

        def read() -> list[Contradiction]:
            found: list[tuple[StoredFact, StoredFact]] = []
            for group in self._resolve_repeated() if entity is None else self._resolve_around(entity):
                found += group.conflicts
                if len(found) >= offset + limit:
                    break
            pairs = [
                self._reader.to_facts(
                    [Period(first, first.valid_until, None), Period(second, second.valid_until, None)]
                )
                for first, second in found[offset : offset + limit]
            ]
            return [Contradiction(first, second) for first, second in pairs]

        return self.store.read_transaction(read)

    def _resolve_repeated(self) -> Iterator[Resolved]:
        """Resolve every pair of subject and relation that has more than one fact."""
        edges = self._reader.edges()
        pairs = np.stack([edges.subject, edges.relation], axis=1)
        _, group, sizes = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
        several = np.unique(pairs[sizes[group.ravel()] > 1], axis=0)
        for start in range(0, len(several), _GROUPS):
            yield from self._reader.resolve_pairs([tuple(pair) for pair in several[start : start + _GROUPS].tolist()])

    def _resolve_around(self, entity: str) -> Iterator[Resolved]:
        """Resolve every pair of subject and relation in whose facts an entity occurs."""
        ids, seen = self._reader.ids_of(entity), set[tuple[int, int]]()
        for batch in chain(self._reader.batches(subjects=ids), self._reader.batches(objects=ids)):
            pairs = {(fact.subject, fact.relation) for fact in batch if fact.relation_name not in RESERVED} - seen
            seen |= pairs
            yield from self._reader.resolve_pairs(sorted(pairs))

    def closure(
        self, entity: str, relation: str, *, direction: Literal["out", "in"] = "out", depth: int = _MAX_DEPTH
    ) -> list[tuple[str, int]]:
        """Return every entity reachable through one relation, with the number of steps; each once, even in cycles."""
        checks.name("entity", entity)
        checks.one_of("direction", direction, ("out", "in"))
        checks.whole("depth", depth, low=1)

        def read() -> list[tuple[str, int]]:
            view, kinds = self._reader.view(None, None, False, False), self._reader.relation_ids(relation)
            inverse = self._reader.inverse_ids(relation)
            front = list(self._reader.ids_of(entity))
            seen, reached = set(front), []
            for step in range(1, depth + 1):
                forward, backward = (kinds, inverse) if direction == "out" else (inverse, kinds)
                following: dict[int, str] = {}
                if forward:
                    for period in view.select(self.store.facts_about(front, forward)):
                        following[period.fact.object] = period.fact.object_name
                if backward:
                    for period in view.select(self.store.facts_about((), backward, front)):
                        following[period.fact.subject] = period.fact.subject_name
                following = {key: name for key, name in following.items() if key not in seen}
                reached += [(name, step) for name in following.values()]
                seen |= following.keys()
                front = list(following)
                if not front:
                    break
            return reached

        return self.store.read_transaction(read)

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

        def read() -> list[Path]:
            view = self._reader.view(at, believed, False, likely)
            kinds = [*self._reader.relation_ids(relations), *self._reader.inverse_ids(relations)]
            return paths.find(view, start, goal, max_hops, k, kinds)

        return self.store.read_transaction(read)

    def query(
        self, pattern: str, *, at: Moment | None = None, believed: Moment | None = None, limit: int = 100
    ) -> list[dict[str, str]]:
        """Return the values of the variables of a pattern: facts with variables, separated by commas.

            graph.query("?who owns ?service, ?service depends on redis")

        Names of several words may be quoted. The relation may be a variable, too.
        """
        checks.whole("limit", limit, low=1)

        def read() -> list[dict[str, str]]:
            view = self._reader.view(at, believed, False, False)
            return patterns.match(view, pattern, lambda: [name for name, _ in self.relations()])[:limit]

        return self.store.read_transaction(read)

    def important(self, limit: int = 20) -> list[tuple[str, float]]:
        """Return entities by PageRank, the most important first; the shares of all entities sum to 1."""
        return whole.important(self.store, self._reader.edges(), checks.whole("limit", limit, low=1))

    def communities(self, *, smallest: int = 3, limit: int = 20) -> list[list[str]]:
        """Return groups of entities with many facts among them, the largest first (Louvain; above 200,000 facts label
        propagation)."""
        smallest, limit = checks.whole("smallest", smallest, low=1), checks.whole("limit", limit, low=1)
        return whole.communities(self.store, self._reader.edges(), smallest, limit)

    def to_networkx(self, *, history: bool = False) -> networkx.MultiDiGraph[Any]:
        """Return the facts that hold now, or with `history` all, as a networkx.MultiDiGraph. Nodes are names of
        entities; edges have the fields of a fact, and its id as key."""
        return whole.to_networkx(self.all_facts(history=history))

    def explain(self, fact: Fact | str) -> Explanation:
        """Return the sentence that states a fact, and other facts of the same subject and relation."""
        shown = self.get(fact)
        memory = self.brain.get(shown.memory_id)
        text = "" if memory is None else memory.text
        same: list[Fact] = []
        others: list[Fact] = []
        for other in self.facts(shown.subject, shown.relation, history=True, likely=True, limit=1000):
            if other.id != shown.id:
                (same if name_id(other.object) == name_id(shown.object) else others).append(other)
        return Explanation(shown, text[shown.start : shown.end] or text, text, same, others)

    def entities(self, like: str | None = None, *, limit: int = _PAGE) -> list[tuple[str, int]]:
        """Return entities and how many facts each has, the most first; `like` is a part of the name."""
        edges = whole.without_reserved(self._reader.edges())
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
        kinds, counts = np.unique(self._reader.edges().relation, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        found = []
        for at in order.tolist():
            first = self.store.facts_about((), [int(kinds[at])], limit=1)
            if first and first[0].relation_name not in RESERVED:
                found.append((first[0].relation_name, int(counts[at])))
        return found

    def all_facts(self, *, history: bool = False, likely: bool = False) -> Iterator[Fact]:
        """Yield every fact, in the order in which they were learned."""
        found = self._reader.view(None, None, history, likely).stream()
        while page := list(islice(found, BATCH)):
            yield from self._reader.to_facts(page)

    def __len__(self) -> int:
        """Count the facts, including those that are over."""
        return self._reader.count()


def memory_of(fact: Fact | str) -> str:
    """Return the id of the memory that a fact comes from."""
    if isinstance(fact, Fact):
        return fact.memory_id
    memory_id, mark, number = checks.name("fact", fact).rpartition("#")
    if not mark or not number.isdigit():
        raise checks.refuse("fact", "a Fact or its id, as in 'agent-1-1700000000#0'", fact)
    return memory_id
