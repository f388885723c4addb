"""What the store must hold and what a read may have seen, by what the journals say was issued and acknowledged.

Each memory has three registers: its revision (None: it is not there), its tags and its tier. A write in a register took
effect at some moment between its start and its end, if it was acknowledged; otherwise perhaps. So a value is possible
at a time unless an acknowledged write began after it was over and ended before that time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .journal import FOREVER, Operation

_SCOPED = ("hybrid", "vector", "list", "export", "backup", "power")  # reads that must show all of their scope
_ONE = ("update", "tag", "pin", "move", "forget")  # writes that say whether there was a memory
_ALWAYS = -FOREVER


class Violation(NamedTuple):
    """A promise that was not kept, with the lines of the journals that say so."""

    kind: str
    message: str
    lines: str = ""


class Window(NamedTuple):
    """A time in which errors of the store are excused, of one source or of all."""

    start: float
    end: float
    source: str | None = None


class Write(NamedTuple):
    start: float
    end: float
    sure: bool
    value: Hashable
    operation: Operation | None = None


class Register:
    """The values that one field may have had."""

    __slots__ = ("_writes",)

    def __init__(self, value: Hashable) -> None:
        self._writes = [Write(_ALWAYS, _ALWAYS, True, value)]

    def write(self, operation: Operation, value: Hashable) -> None:
        self._writes.append(Write(operation.start, operation.end, operation.acknowledged, value, operation))

    def possible(self, start: float, end: float) -> set[Hashable]:
        """What somebody may see who looks at some moment between `start` and `end`."""
        floor = max(write.start for write in self._writes if write.sure and write.end < start)
        return {write.value for write in self._writes if write.start < end and write.end >= floor}

    def told(self, until: float = FOREVER) -> str:
        """The journal's lines on the last writes before a time and the first one after it."""
        written = sorted((w.operation for w in self._writes if w.operation is not None), key=lambda one: one.start)
        before = [one for one in written if one.start < until]
        return "\n".join(one.told() for one in [*before[-4:], *written[len(before) : len(before) + 1]])


@dataclass(slots=True)
class Entry:
    """One memory."""

    agent: str
    id: str | None
    revision: Register
    tags: Register
    tier: Register | None  # None where the store moves memories by itself


class Seen(NamedTuple):
    """One memory as it was found when everyone had stopped."""

    id: str
    agent: str
    word: str
    revision: str
    tags: Mapping[str, str]
    tier: str
    actor: str | None = None


@dataclass
class Model:
    """`read` takes in what was issued, `check` compares every read with it, `settle` the store itself."""

    moves_by_itself: bool = False
    entries: dict[str, Entry] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    reads: int = 0
    _agents: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, memories: Iterable[Seen], *, moves_by_itself: bool = False) -> Model:
        model = cls(moves_by_itself)
        for seen in memories:
            model._entry(seen.word, seen.agent, seen)
        return model

    def _entry(self, word: str, agent: str, seen: Seen | None = None) -> Entry:
        if word not in self.entries:
            tier = None if self.moves_by_itself else Register(seen and seen.tier)
            self.entries[word] = Entry(
                agent, seen and seen.id, Register(seen and seen.revision), Register(seen and _tags(seen.tags)), tier
            )
            self._agents.setdefault(agent, []).append(word)
        return self.entries[word]

    def _violate(self, kind: str, message: str, *told: str) -> None:
        self.violations.append(Violation(kind, message, "\n".join(filter(None, told))))

    # What was written

    def read(self, operations: Iterable[Operation]) -> None:
        """Take in what was issued. All memories first: one may be forgotten by who began before it was written."""
        ordered = sorted(operations, key=lambda one: one.start)
        for one in ordered:
            for word in one.args["items"] if one.op == "remember" else ():
                self._entry(word, one.args["agent"])
        for one in ordered:
            if one.result != "not found":
                self._take(one)

    def _take(self, one: Operation) -> None:
        args = one.args
        if one.op == "remember":
            for at, (word, revision) in enumerate(args["items"].items()):
                entry = self.entries[word]
                entry.id = one.result[at] if one.acknowledged else entry.id or args.get("id")
                entry.revision.write(one, revision)
                entry.tags.write(one, ())
                if entry.tier is not None:
                    entry.tier.write(one, "stm")
        elif one.op == "forget_subject":
            for word in args["words"]:
                self.entries[word].revision.write(one, None)
        elif args.get("word") in self.entries:
            entry = self.entries[args["word"]]
            if one.op == "update":
                entry.revision.write(one, args["rev"])
            elif one.op in ("tag", "pin"):
                entry.tags.write(one, _tags(args["tags"]))
            elif one.op == "forget" and one.result is not False:
                entry.revision.write(one, None)
            elif one.op == "move" and entry.tier is not None and one.result != 0:
                entry.tier.write(one, args["tier"])

    # What was read

    def check(self, operations: Iterable[Operation], excuses: Sequence[Window]) -> None:
        """Compare every answer with what was possible while it was made."""
        for one in operations:
            if one.error is not None and not (one.excusable and _excused(one, excuses)):
                self._violate(one.op if one.op in ("doctor", "open") else "error", f"{one.op}: {one.error}", one.told())
            elif one.acknowledged:
                self._check(one)

    def _check(self, one: Operation) -> None:
        if one.op in _SCOPED:
            self.compare(one)
        elif one.op == "lexical":
            self.compare(one, must=[one.args["word"]])
        elif one.op == "count":
            self._check_count(one)
        elif one.op == "get" or (one.op in _ONE and (one.result == "not found" or one.result in (False, 0))):
            self._check_one(one)

    def compare(self, one: Operation, must: Sequence[str] | None = None) -> None:
        """Compare a list of "word/revision" with what was possible. It must hold what was there throughout: `must`,
        or everything in the agent that the read was about."""
        self.reads += 1
        found = Counter(pair.split("/")[0] for pair in one.result)
        for word, times in found.items():
            if times > 1:
                self._violate("doubled", f"{one.op} shows {word} {times} times", one.told(), self._told(word, one.end))
        for pair in one.result:
            word, revision = pair.split("/")
            entry = self.entries.get(word)
            if entry is None:
                self._violate("ghost", f"{one.op} shows {pair}, which nobody wrote", one.told())
            elif revision not in (known := entry.revision.possible(one.start, one.end)):
                kind = "resurrected" if known == {None} else "stale"
                self._violate(
                    kind, f"{one.op} shows {pair}, possible was {_list(known)}", one.told(), self._told(word, one.end)
                )
        agent = one.args.get("agent")
        for word in self._scope(agent) if must is None else must:
            entry = self.entries.get(word)
            if word not in found and entry and None not in entry.revision.possible(one.start, one.end):
                self._violate(
                    "missed", f"{one.op} does not show {word}, which was there", one.told(), self._told(word, one.end)
                )

    def _scope(self, agent: str | None) -> Iterable[str]:
        return self.entries if agent is None else self._agents.get(agent, ())

    def _check_count(self, one: Operation) -> None:
        self.reads += 1
        sets = [self.entries[word].revision.possible(one.start, one.end) for word in self._scope(one.args["agent"])]
        low, high = sum(None not in known for known in sets), sum(known != {None} for known in sets)
        if not low <= one.result <= high:
            self._violate("count", f"count says {one.result}, possible was {low} to {high}", one.told())

    def _check_one(self, one: Operation) -> None:
        """A memory that was read, or one that an operation did not find."""
        self.reads += 1
        word, seen = one.args["word"], one.result if isinstance(one.result, dict) else {"rev": None}
        if (entry := self.entries.get(word)) is None:
            return  # nobody ever wrote it, and it was not there
        fields = {"rev": entry.revision, "tags": entry.tags, "tier": entry.tier}
        for name, value in seen.items():
            register = fields[name]
            value = _tags(value) if name == "tags" and value is not None else value
            if register is not None and value not in (known := register.possible(one.start, one.end)):
                kind = "missed" if name == "rev" and value is None else "resurrected" if known == {None} else "stale"
                message = f"{one.op}: the {name} of {word} is {value}, possible was {_list(known)}"
                self._violate(kind, message, one.told(), register.told(one.end))

    # What is there

    def settle(self, memories: Sequence[Seen], operations: Iterable[Operation]) -> None:
        """Compare the store, when everyone has stopped, with what was acknowledged."""
        held = {seen.word: seen for seen in memories}
        for name, counted in (
            ("word", Counter(seen.word for seen in memories)),
            ("id", Counter(s.id for s in memories)),
        ):
            for value, times in counted.items():
                if times > 1:
                    self._violate("doubled", f"{times} memories with the {name} {value}", self._told(value))
        for seen in memories:
            if seen.word not in self.entries:
                self._violate("ghost", f"{seen.id} holds {seen.word}/{seen.revision}, which nobody wrote")
        for word, entry in self.entries.items():
            self._settle(word, entry, held.get(word))
        for one in operations:
            if one.op == "remember" and not one.acknowledged and len(one.args["items"]) > 1:
                kept = sum(word in held for word in one.args["items"])
                if 0 < kept < len(one.args["items"]):
                    self._violate("half", f"{kept} of {len(one.args['items'])} memories written at once", one.told())

    def _settle(self, word: str, entry: Entry, seen: Seen | None) -> None:
        known = entry.revision.possible(FOREVER, FOREVER)
        if (seen.revision if seen else None) not in known:
            kind = "lost" if seen is None else "resurrected" if known == {None} else "content"
            state = f"is {seen.revision}" if seen else "is gone"
            self._violate(kind, f"{word} of {entry.agent} {state}, possible was {_list(known)}", self._told(word))
        if seen is None:
            return
        if entry.id is not None and seen.id != entry.id:
            self._violate("content", f"{word} has the id {seen.id}, not {entry.id}", self._told(word))
        if _tags(seen.tags) not in (known := entry.tags.possible(FOREVER, FOREVER)):
            told = entry.tags.told()
            self._violate("content", f"the tags of {word} are {seen.tags}, possible was {_list(known)}", told)
        if entry.tier is not None and seen.tier not in (known := entry.tier.possible(FOREVER, FOREVER)):
            told = entry.tier.told()
            self._violate("content", f"{word} is in tier {seen.tier}, possible was {_list(known)}", told)

    def gone(self) -> list[str]:
        """Words of memories that are certainly forgotten."""
        return [word for word, entry in self.entries.items() if entry.revision.possible(FOREVER, FOREVER) == {None}]

    def _told(self, word: str, until: float = FOREVER) -> str:
        entry = self.entries.get(word)
        return entry.revision.told(until) if entry is not None else ""


def _excused(one: Operation, excuses: Sequence[Window]) -> bool:
    if one.error is not None and one.error.startswith("Interrupted"):
        return True
    return any(
        window.source in (None, one.source) and one.start < window.end and one.answered > window.start
        for window in excuses
    )


def _tags(tags: Mapping[str, str]) -> Hashable:
    return tuple(sorted(tags.items()))


def _list(known: Iterable[Hashable]) -> str:
    return " or ".join(sorted("gone" if value is None else str(value) for value in known))
