"""Models of the answers of the routes for coding agents, for the OpenAPI document only."""

from __future__ import annotations

from .documents import Answer, MemoryAnswer


class CodingRepositoryAnswer(Answer):
    id: str
    memories: int


class CodingRepositoriesAnswer(Answer):
    repositories: list[CodingRepositoryAnswer]
    here: str | None


class ToldLineAnswer(Answer):
    text: str
    memory_id: str | None
    tokens: int
    told: bool


class ToldSectionAnswer(Answer):
    title: str
    lines: list[ToldLineAnswer]


class ConsideredAnswer(Answer):
    relevance: float
    stale: str | None
    told: bool
    memory: MemoryAnswer


class InjectionAnswer(Answer):
    text: str
    tokens: int
    characters: int
    budget: int
    sections: list[ToldSectionAnswer]
    bar: float | None = None
    considered: list[ConsideredAnswer] | None = None


class ToldSessionAnswer(Answer):
    agent: str
    session: str
    who: str
    time: float
    memories: int
    tokens: int


class LedgerAnswer(Answer):
    days: int
    tokens: int
    sessions: list[ToldSessionAnswer]


class SessionEventAnswer(Answer):
    time: float
    kind: str
    text: str
    memory_id: str | None


class ReplayAnswer(Answer):
    session: str
    task: str
    plan: list[str]
    prompts: list[str]
    events: list[SessionEventAnswer]


class PairAnswer(Answer):
    older: MemoryAnswer
    newer: MemoryAnswer
    why: str


class OutOfDateAnswer(Answer):
    memory: MemoryAnswer
    why: str


class ReviewAnswer(Answer):
    contradictions: list[PairAnswer]
    duplicates: list[PairAnswer]
    out_of_date: list[OutOfDateAnswer]
    waiting: list[MemoryAnswer]
    compared: int
    next_cursor: str | None


class ReviewedAnswer(Answer):
    memory_id: str
