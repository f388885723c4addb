"""The model: computes from the journals what the store must hold and what each read may have returned.

Each memory has three registers: its revision (None: absent), its tags and its tier. An acknowledged write of a register
took effect at some moment between its start and its end; another one may have. So a value is possible at a time unless
an acknowledged write began after the value's write had ended and itself ended before that time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .journal import FOREVER, Operation

_SCOPED = ("hybrid", "vector", "list", "export", "backup", "power")  # reads that must show all of their scope
_SINGLE = ("update", "tag", "pin", "move", "forget")  # writes whose result says whether there was a memory
_ALWAYS = -FOREVER


class Violation(NamedTuple):
    """A broken promise, with the lines of the journals that prove it."""

    kind: str
    message: str
    lines: str = ""


class Window(NamedTuple):
    """A period in which errors of the store are excused, for one source or for all."""

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
        """Return the values that a read between `start` and `end` may return."""
        floor = max(write.start for write in self._writes if write.sure and write.end < start)
        return {write.value for write in self._writes if write.start < end and write.end >= floor}

    def journal_lines(self, until: float = FOREVER) -> str:
        """Return the journal's lines of the last writes before a time and of the first one after it."""
        written = sorted(
            (w.operation for w in self._writes if w.operation is not None), key=lambda operation: operation.start
        )
        before = [operation for operation in written if operation.start < until]
        return "\n".join(
            operation.journal_lines() for operation in [*before[-4:], *written[len(before) : len(before) + 1]]
        )


@dataclass(slots=True)
class Entry:
    """One memory."""

    agent: str
    id: str | None
    revision: Register
    tags: Register
    tier: Register | None  # None where the store moves memories by itself


class StoredMemory(NamedTuple):
    """One memory as found in the store after all processes had stopped."""

    id: str
    agent: str
    word: str
    revision: str
    tags: Mapping[str, str]
    tier: str
    actor: str | None = None


@dataclass
class Model:
    """`read` takes the operations, `check` compares every read with them, `check_final_state` the store itself."""

    moves_by_itself: bool = False
    entries: dict[str, Entry] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    reads: int = 0
    _agents: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, memories: Iterable[StoredMemory], *, moves_by_itself: bool = False) -> Model:
        model = cls(moves_by_itself)
        for seen in memories:
            model._entry(seen.word, seen.agent, seen)
        return model

    def _entry(self, word: str, agent: str, seen: StoredMemory | None = None) -> Entry:
        if word not in self.entries:
            tier = None if self.moves_by_itself else Register(seen and seen.tier)
            self.entries[word] = Entry(
                agent, seen and seen.id, Register(seen and seen.revision), Register(seen and _tags(seen.tags)), tier
            )
            self._agents.setdefault(agent, []).append(word)
        return self.entries[word]

    def _violate(self, kind: str, message: str, *lines: str) -> None:
        self.violations.append(Violation(kind, message, "\n".join(filter(None, lines))))

    # What was written

    def read(self, operations: Iterable[Operation]) -> None:
        """Record what was issued. All memories first: a forget may have begun before its memory was written."""
        ordered = sorted(operations, key=lambda operation: operation.start)
        for operation in ordered:
            for word in operation.args["items"] if operation.op == "remember" else ():
                self._entry(word, operation.args["agent"])
        for operation in ordered:
            if operation.result != "not found":
                self._apply(operation)

    def _apply(self, operation: Operation) -> None:
        args = operation.args
        if operation.op == "remember":
            for at, (word, revision) in enumerate(args["items"].items()):
                entry = self.entries[word]
                entry.id = operation.result[at] if operation.acknowledged else entry.id or args.get("id")
                entry.revision.write(operation, revision)
                entry.tags.write(operation, ())
                if entry.tier is not None:
                    entry.tier.write(operation, "stm")
        elif operation.op == "forget_subject":
            for word in args["words"]:
                self.entries[word].revision.write(operation, None)
        elif args.get("word") in self.entries:
            entry = self.entries[args["word"]]
            if operation.op == "update":
                entry.revision.write(operation, args["rev"])
            elif operation.op in ("tag", "pin"):
                entry.tags.write(operation, _tags(args["tags"]))
            elif operation.op == "forget" and operation.result is not False:
                entry.revision.write(operation, None)
            elif operation.op == "move" and entry.tier is not None and operation.result != 0:
                entry.tier.write(operation, args["tier"])

    # What was read

    def check(self, operations: Iterable[Operation], excuses: Sequence[Window]) -> None:
        """Compare every result with what was possible at that time."""
        for operation in operations:
            if operation.error is not None and not (operation.excusable and _excused(operation, excuses)):
                self._violate(
                    operation.op if operation.op in ("doctor", "open") else "error",
                    f"{operation.op}: {operation.error}",
                    operation.journal_lines(),
                )
            elif operation.acknowledged:
                self._check(operation)

    def _check(self, operation: Operation) -> None:
        if operation.op in _SCOPED:
            self.compare(operation)
        elif operation.op == "lexical":
            self.compare(operation, must=[operation.args["word"]])
        elif operation.op == "count":
            self._check_count(operation)
        elif operation.op == "get" or (
            operation.op in _SINGLE and (operation.result == "not found" or operation.result in (False, 0))
        ):
            self._check_single(operation)

    def compare(self, operation: Operation, must: Sequence[str] | None = None) -> None:
        """Compare a list of "word/revision" with what was possible. It must contain what was present throughout:
        `must`, or all memories of the agent that was read."""
        self.reads += 1
        found = Counter(pair.split("/")[0] for pair in operation.result)
        for word, times in found.items():
            if times > 1:
                self._violate(
                    "doubled",
                    f"{operation.op} shows {word} {times} times",
                    operation.journal_lines(),
                    self._journal_lines(word, operation.end),
                )
        for pair in operation.result:
            word, revision = pair.split("/")
            entry = self.entries.get(word)
            if entry is None:
                self._violate("ghost", f"{operation.op} shows {pair}, which nobody wrote", operation.journal_lines())
            elif revision not in (known := entry.revision.possible(operation.start, operation.end)):
                kind = "resurrected" if known == {None} else "stale"
                self._violate(
                    kind,
                    f"{operation.op} shows {pair}, possible was {_list(known)}",
                    operation.journal_lines(),
                    self._journal_lines(word, operation.end),
                )
        agent = operation.args.get("agent")
        for word in self._scope(agent) if must is None else must:
            entry = self.entries.get(word)
            if word not in found and entry and None not in entry.revision.possible(operation.start, operation.end):
                self._violate(
                    "missed",
                    f"{operation.op} does not show {word}, which was there",
                    operation.journal_lines(),
                    self._journal_lines(word, operation.end),
                )

    def _scope(self, agent: str | None) -> Iterable[str]:
        return self.entries if agent is None else self._agents.get(agent, ())

    def _check_count(self, operation: Operation) -> None:
        self.reads += 1
        sets = [
            self.entries[word].revision.possible(operation.start, operation.end)
            for word in self._scope(operation.args["agent"])
        ]
        low, high = sum(None not in known for known in sets), sum(known != {None} for known in sets)
        if not low <= operation.result <= high:
            self._violate(
                "count", f"count says {operation.result}, possible was {low} to {high}", operation.journal_lines()
            )

    def _check_single(self, operation: Operation) -> None:
        """Check a memory that was read, or that an operation did not find."""
        self.reads += 1
        word, seen = operation.args["word"], operation.result if isinstance(operation.result, dict) else {"rev": None}
        if (entry := self.entries.get(word)) is None:
            return  # nobody ever wrote it, and it was not there
        fields = {"rev": entry.revision, "tags": entry.tags, "tier": entry.tier}
        for name, value in seen.items():
            register = fields[name]
            value = _tags(value) if name == "tags" and value is not None else value
            if register is not None and value not in (known := register.possible(operation.start, operation.end)):
                kind = "missed" if name == "rev" and value is None else "resurrected" if known == {None} else "stale"
                message = f"{operation.op}: the {name} of {word} is {value}, possible was {_list(known)}"
                self._violate(kind, message, operation.journal_lines(), register.journal_lines(operation.end))

    # What is there

    def check_final_state(self, memories: Sequence[StoredMemory], operations: Iterable[Operation]) -> None:
        """Compare the store, after all processes have stopped, with what was acknowledged."""
        held = {seen.word: seen for seen in memories}
        for name, counted in (
            ("word", Counter(seen.word for seen in memories)),
            ("id", Counter(s.id for s in memories)),
        ):
            for value, times in counted.items():
                if times > 1:
                    self._violate("doubled", f"{times} memories with the {name} {value}", self._journal_lines(value))
        for seen in memories:
            if seen.word not in self.entries:
                self._violate("ghost", f"{seen.id} holds {seen.word}/{seen.revision}, which nobody wrote")
        for word, entry in self.entries.items():
            self._check_memory(word, entry, held.get(word))
        for operation in operations:
            if operation.op == "remember" and not operation.acknowledged and len(operation.args["items"]) > 1:
                kept = sum(word in held for word in operation.args["items"])
                if 0 < kept < len(operation.args["items"]):
                    self._violate(
                        "half",
                        f"{kept} of {len(operation.args['items'])} memories written at once",
                        operation.journal_lines(),
                    )

    def _check_memory(self, word: str, entry: Entry, seen: StoredMemory | None) -> None:
        known = entry.revision.possible(FOREVER, FOREVER)
        if (seen.revision if seen else None) not in known:
            kind = "lost" if seen is None else "resurrected" if known == {None} else "content"
            state = f"is {seen.revision}" if seen else "is gone"
            self._violate(
                kind, f"{word} of {entry.agent} {state}, possible was {_list(known)}", self._journal_lines(word)
            )
        if seen is None:
            return
        if entry.id is not None and seen.id != entry.id:
            self._violate("content", f"{word} has the id {seen.id}, not {entry.id}", self._journal_lines(word))
        if _tags(seen.tags) not in (known := entry.tags.possible(FOREVER, FOREVER)):
            lines = entry.tags.journal_lines()
            self._violate("content", f"the tags of {word} are {seen.tags}, possible was {_list(known)}", lines)
        if entry.tier is not None and seen.tier not in (known := entry.tier.possible(FOREVER, FOREVER)):
            lines = entry.tier.journal_lines()
            self._violate("content", f"{word} is in tier {seen.tier}, possible was {_list(known)}", lines)

    def gone(self) -> list[str]:
        """Return the words of memories that are certainly forgotten."""
        return [word for word, entry in self.entries.items() if entry.revision.possible(FOREVER, FOREVER) == {None}]

    def _journal_lines(self, word: str, until: float = FOREVER) -> str:
        entry = self.entries.get(word)
        return entry.revision.journal_lines(until) if entry is not None else ""


def _excused(operation: Operation, excuses: Sequence[Window]) -> bool:
    if operation.error is not None and operation.error.startswith("Interrupted"):
        return True
    return any(
        window.source in (None, operation.source) and operation.start < window.end and operation.answered > window.start
        for window in excuses
    )


def _tags(tags: Mapping[str, str]) -> Hashable:
    return tuple(sorted(tags.items()))


def _list(known: Iterable[Hashable]) -> str:
    return " or ".join(sorted("gone" if value is None else str(value) for value in known))
