"""Models of the answers of the graph routes, for the OpenAPI document only."""

from __future__ import annotations

from typing import Literal

from .documents import Answer


class FactAnswer(Answer):
    """A fact with its evidence; times in ISO format."""

    id: str
    subject: str
    relation: str
    object: str
    valid_from: str
    valid_until: str | None
    learned_at: str
    ended_by: str | None
    memory_id: str
    confidence: float
    trust: Literal["stated", "sure", "likely"]
    is_value: bool
    negated: bool
    dated: bool
    start: int
    end: int
    agent: str
    tags: dict[str, str]


class FactsAnswer(Answer):
    facts: list[FactAnswer]
    next_cursor: str | None


class FactsOfMemoryAnswer(Answer):
    facts: list[FactAnswer]


class GraphAnswer(Answer):
    facts: int


class NeighbourAnswer(Answer):
    name: str
    outgoing: bool
    """Whether the fact is about the requested entity."""
    fact: FactAnswer


class NeighboursAnswer(Answer):
    neighbours: list[NeighbourAnswer]
    next_cursor: str | None


class PathAnswer(Answer):
    names: list[str]
    facts: list[FactAnswer]


class PathsAnswer(Answer):
    paths: list[PathAnswer]


class FactChangeAnswer(Answer):
    time: str
    began: bool
    fact: FactAnswer


class FactChangesAnswer(Answer):
    changes: list[FactChangeAnswer]
    next_cursor: str | None


class ContradictionAnswer(Answer):
    first: FactAnswer
    second: FactAnswer


class ContradictionsAnswer(Answer):
    contradictions: list[ContradictionAnswer]
    next_cursor: str | None


class MatchesAnswer(Answer):
    matches: list[dict[str, str]]
    next_cursor: str | None


class ReachedAnswer(Answer):
    name: str
    steps: int


class ClosureAnswer(Answer):
    reached: list[ReachedAnswer]
    next_cursor: str | None


class CountedAnswer(Answer):
    name: str
    facts: int


class EntitiesAnswer(Answer):
    entities: list[CountedAnswer]
    next_cursor: str | None


class RelationsAnswer(Answer):
    relations: list[CountedAnswer]


class RankedAnswer(Answer):
    name: str
    share: float


class ImportantAnswer(Answer):
    entities: list[RankedAnswer]


class CommunitiesAnswer(Answer):
    communities: list[list[str]]


class FactExplanationAnswer(Answer):
    fact: FactAnswer
    sentence: str
    text: str
    same: list[FactAnswer]
    others: list[FactAnswer]
