"""Graph: `brain.graph`. State facts, and ask what is known, what was true at a time and what was believed at a time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import checks
from ..annotations import Moment, Where
from ..errors import ConfigError, InputError, NotFoundError
from ..facts.by_model import KEY, FactReaderModel, fact_reader_for, quoted_facts
from ..facts.model import STATED, name_id, name_key
from ..facts.relations import relation_id
from ..facts.stated import ENDS, MANY, ONE, SAME_AS, TYPE, VALUES, sentence, stated_contents
from ..filters import Filter
from ..stores.base import Edited, Progress
from ..stores.capabilities import FactTable
from .mapping import Mapped, map_rows
from .model import Fact
from .questions import GraphQuestions, id_of, memory_of
from .reader import FactReader, Sees

if TYPE_CHECKING:
    from ..brain import Brain
    from ..models import Memory

TREES = frozenset(map(relation_id, ("part of", "is part of", "contains", "belongs to", "subclass of", "inside")))
"""Relations that form a tree: nothing can be part of itself."""


class Scope(NamedTuple):
    """What a caller sees and writes in a store that several people share."""

    sees: Sees
    fields: Mapping[str, Any]
    """Arguments of `Brain.remember` for every stated fact, such as its author."""


class Graph(GraphQuestions):
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
            hint = "use an SQLite file or PostgreSQL (capability 'facts')"
            raise ConfigError(f"{brain.store.kind} keeps no facts; {hint}")
        self.brain = brain
        self.store = brain.store
        self._filter = None if where is None else Filter.of(where)
        self._scope = scope

    def _reader(self) -> FactReader:
        return FactReader(self.store, self._filter, None if self._scope is None else self._scope.sees)

    def where(self, where: Where) -> Graph:
        """Return this graph restricted to facts whose memories match a filter."""
        return Graph(self.brain, where, self._scope)

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
        if self._reaches(object, relation, subject):
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
        memory_id, wanted = memory_of(fact), id_of(fact)
        memory = self.brain.get(memory_id)
        if memory is not None:
            if not (self._scope is None or self._scope.sees(memory.place)):
                raise NotFoundError(wanted, "fact")
            if memory.type != TYPE:
                raise InputError(
                    f"fact must be a stated one; this was extracted from the memory {memory_id!r}: forget that memory, "
                    "or end the fact with `end`",
                    field="fact",
                )
            if wanted not in [found.id for found in self._of_memory(memory_id)]:
                raise NotFoundError(wanted, "fact")
        if not self.brain.forget(memory_id):  # also of a memory that is gone: a repeated request gets its first answer
            raise NotFoundError(wanted, "fact")
        return True
