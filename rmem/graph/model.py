"""Facts as users see them: with their evidence, and with what ended them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
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
    """Whether it was said when it began; otherwise `valid_from` is the time of the memory."""
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
        """Whether the fact holds at a time, as far as is known now."""
        return self.valid_from <= time and (self.valid_until is None or time < self.valid_until)

    def to_dict(self) -> dict[str, Any]:
        """The fact as JSON; times in ISO format."""
        told = asdict(self) | {"tags": dict(self.tags), "trust": self.trust}
        for name in ("valid_from", "valid_until", "learned_at"):
            told[name] = None if told[name] is None else iso(told[name])
        return told

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Fact:
        """The reverse of `to_dict`, as far as the fields are known here."""
        given = {one.name: told[one.name] for one in fields(cls) if one.name in told}
        for name in ("valid_from", "valid_until", "learned_at"):
            given[name] = None if given[name] is None else seconds(given[name])
        return cls(**given)

    def __str__(self) -> str:
        since = iso(self.valid_from)[:10]
        until = "" if self.valid_until is None else f" until {iso(self.valid_until)[:10]}"
        denied = "not: " if self.negated else ""
        return f"{denied}{self.subject} – {self.relation} – {self.object} (since {since}{until}, {self.trust})"


def iso(time: float) -> str:
    """A time in ISO format, in UTC; years that no calendar has are given as numbers."""
    try:
        return datetime.fromtimestamp(time, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return str(time)


def seconds(time: str) -> float:
    """The reverse of `iso`."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return float(time)


class Neighbour(NamedTuple):
    """An entity or value beside another one, and the fact that connects them."""

    name: str
    fact: Fact
    outgoing: bool
    """Whether the fact is about the entity that was asked for; otherwise it is about the neighbour."""


class Path(NamedTuple):
    """A way from one entity to another, fact by fact."""

    names: tuple[str, ...]
    facts: tuple[Fact, ...]

    def __str__(self) -> str:
        words = [self.names[0]]
        for name, fact in zip(self.names[1:], self.facts, strict=True):
            forward = fact.object == name
            words.append(f"→ {fact.relation} → {name}" if forward else f"← {fact.relation} ← {name}")
        return " ".join(words)


class Contradiction(NamedTuple):
    """Two facts that cannot both be true at one time."""

    first: Fact
    second: Fact


class Change(NamedTuple):
    """Something that began or ended."""

    time: float
    began: bool
    fact: Fact


class Explanation(NamedTuple):
    """Why a fact is believed: the sentence that says it, and what came before or after it."""

    fact: Fact
    sentence: str
    text: str
    """The whole memory that is the evidence."""
    same: list[Fact]
    """Facts of other memories that say the same."""
    others: list[Fact]
    """Other values of the same relation, oldest first."""
