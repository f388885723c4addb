"""Facts as users see them: with their evidence, and with what ended them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..facts.model import LIKELY, STATED, SURE

CONFIDENCE = {STATED: "stated", SURE: "sure", LIKELY: "likely"}


@dataclass(frozen=True, slots=True)
class Fact:
    """Subject, relation and object, as one memory says it.

    `valid_from` and `valid_until` tell when it was true, `learned_at` when it was remembered. `ended_by` is the id of
    the fact that replaced it. `memory_id`, `start` and `end` are the evidence: a memory and the place in its text.
    """

    id: str
    subject: str
    relation: str
    object: str
    valid_from: float
    learned_at: float
    memory_id: str
    valid_until: float | None = None
    ended_by: str | None = None
    confidence: float = STATED
    is_value: bool = False
    negated: bool = False
    dated: bool = False
    """Whether the text gives the start; otherwise `valid_from` is the time of the memory."""
    start: int = 0
    end: int = 0
    agent: str = "default"
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def repository(self) -> str | None:
        """The repository that the evidence belongs to, if it names one."""
        return self.tags.get("repository")

    @property
    def trust(self) -> str:
        """Where the fact comes from: "stated", "sure" or "likely"."""
        return next((name for least, name in CONFIDENCE.items() if self.confidence >= least), "likely")

    def is_true_at(self, time: float) -> bool:
        """Whether the fact holds at a time (Unix seconds), as far as is known now."""
        return self.valid_from <= time and (self.valid_until is None or time < self.valid_until)

    def to_dict(self) -> dict[str, Any]:
        """Convert to a JSON object; times in ISO format."""
        document: dict[str, Any] = {name: getattr(self, name) for name in _FIELDS}
        for name in ("valid_from", "valid_until", "learned_at"):
            document[name] = None if document[name] is None else iso(document[name])
        return document | {"tags": dict(self.tags), "trust": self.trust}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Fact:
        """Reverse `to_dict`; ignore unknown fields."""
        given = {name: document[name] for name in _FIELDS if name in document}
        for name in ("valid_from", "valid_until", "learned_at"):
            given[name] = None if given[name] is None else seconds(given[name])
        return cls(**given)

    def __str__(self) -> str:
        since = iso(self.valid_from)[:10]
        until = "" if self.valid_until is None else f" until {iso(self.valid_until)[:10]}"
        denied = "not: " if self.negated else ""
        return f"{denied}{self.subject} – {self.relation} – {self.object} (since {since}{until}, {self.trust})"


_FIELDS = tuple(one.name for one in fields(Fact))


def iso(time: float) -> str:
    """Format a time in ISO format, UTC; as a number if outside the years of the calendar."""
    try:
        return datetime.fromtimestamp(time, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return str(time)


def seconds(time: str) -> float:
    """Reverse `iso`."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return float(time)


def document_of(answer: Any) -> Any:
    """Convert an answer to what JSON can hold: named tuples by field, facts by `to_dict`, times in ISO format."""
    if isinstance(answer, Fact):
        return answer.to_dict()
    if isinstance(answer, Change):
        return {"time": iso(answer.time), "began": answer.began, "fact": answer.fact.to_dict()}
    if hasattr(answer, "_asdict"):
        return {name: document_of(value) for name, value in answer._asdict().items()}
    return [document_of(one) for one in answer] if isinstance(answer, list | tuple) else answer


class Neighbour(NamedTuple):
    """An entity or value, and the fact that connects it with the entity that was asked for."""

    name: str
    fact: Fact
    outgoing: bool
    """Whether the asked entity is the subject of the fact; otherwise the neighbour is."""

    def __str__(self) -> str:
        return _arrow(self.fact.relation, self.name, self.outgoing)


class Path(NamedTuple):
    """A path from one entity to another, fact by fact."""

    names: tuple[str, ...]
    facts: tuple[Fact, ...]

    def __str__(self) -> str:
        words = [self.names[0]]
        for name, fact in zip(self.names[1:], self.facts, strict=True):
            words.append(_arrow(fact.relation, name, fact.object == name))
        return " ".join(words)


def _arrow(relation: str, name: str, forward: bool) -> str:
    return f"→ {relation} → {name}" if forward else f"← {relation} ← {name}"


class Contradiction(NamedTuple):
    """Two facts that cannot both be true at one time."""

    first: Fact
    second: Fact

    def __str__(self) -> str:
        return f"{self.first} / {self.second}"


class Change(NamedTuple):
    """The beginning or end of a fact."""

    time: float
    began: bool
    fact: Fact

    def __str__(self) -> str:
        return f"{iso(self.time)[:10]} {'began' if self.began else 'ended'}: {self.fact}"


class FactExplanation(NamedTuple):
    """The evidence of a fact: the sentence that states it, and other facts of the same subject and relation."""

    fact: Fact
    sentence: str
    text: str
    """Whole text of the memory that is the evidence."""
    same: list[Fact]
    """Facts of other memories that state the same."""
    others: list[Fact]
    """Other values of the same relation, oldest first."""
