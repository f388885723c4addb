"""Models of the answers of the memory routes, for the OpenAPI document only: answers are sent without validation."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from .forms import Tier


class Answer(BaseModel):
    pass


class MetadataAnswer(Answer):
    creation_time: float
    last_access_time: float
    compression_level: int
    importance_score: float
    retrieval_count: int
    memory_type: str


class MemoryAnswer(Answer):
    memory_id: str
    agent_id: str
    step_number: int
    timestamp: float
    text: str
    contents: dict[str, Any]
    metadata: MetadataAnswer
    session: str | None
    actor: str | None
    tags: dict[str, str]
    tier: Tier
    position: list[float] | None
    place: str | None
    embeddings: dict[str, list[float] | None] | None = None


class IdsAnswer(Answer):
    ids: list[str]


class MemoriesAnswer(Answer):
    memories: list[MemoryAnswer]
    total: int
    next_cursor: str | None


class WordAnswer(Answer):
    word: str
    matched: str
    score: float


class ExplanationAnswer(Answer):
    mode: str
    score: float
    components: dict[str, float]
    bm25: float
    cosine: float | None
    words: list[WordAnswer]
    notes: list[str]


class HitAnswer(Answer):
    rank: int
    score: float
    relevance: float | None
    memory: MemoryAnswer
    explanation: ExplanationAnswer | None = None


class BinAnswer(Answer):
    start: float
    counts: dict[str, int]


class HistogramAnswer(Answer):
    """How many memories there are in equal spans of time from `start` to `end`; spans without any are left out."""

    start: float | None
    end: float | None
    width: float
    total: int
    names: list[str]
    bins: list[BinAnswer]


class RecallAnswer(Answer):
    recall_id: str
    score_kind: Literal["fused", "bm25", "cosine"]
    hits: list[HitAnswer]


class ForgottenAnswer(Answer):
    ids: list[str]
    dry_run: bool


class RestoredAnswer(Answer):
    restored: list[str]
    missing: list[str]


class AsideAnswer(Answer):
    memories: list[MemoryAnswer]
    until: dict[str, float]


class PinnedAnswer(Answer):
    memory_id: str
    pinned: bool


class StatsAnswer(Answer):
    embedder: str | None
    memories: int
    by_agent: dict[str, int]
    by_type: dict[str, int]
    by_tier: dict[str, int]
    sessions: int
    oldest: float | None
    newest: float | None
    vectors: int
    dimension: int | None
    words: int
    encrypted: int
    unreadable: int
    segments: int
    bytes: int


class FeedbackAnswer(Answer):
    recall_id: str
    memory_id: str
    useful: bool
    rank: int
    time: float


class SyncAnswer(Answer):
    memories: list[dict[str, Any]]
    gone: list[dict[str, Any]]
    by: dict[str, str]
    next: int
    more: bool
    repositories: list[str]
    """Repositories whose changes you receive."""
    shared: list[str] | None
    """Repositories that the workspace shares; null if it shares all."""


class RefusedAnswer(Answer):
    id: str | None
    field: str | None
    error: str


class AppliedAnswer(Answer):
    changed: int
    refused: list[RefusedAnswer]
    memories: list[dict[str, Any]]


class RepositoriesAnswer(Answer):
    shared: list[str] | None
    given: dict[str, list[str]]


class PrunedAnswer(Answer):
    memory_id: str
    retention: float


class MaintenanceAnswer(Answer):
    stm_to_im: int
    im_to_ltm: int
    agents: dict[str, dict[str, int]]
    pruned: list[PrunedAnswer]
    pruned_count: int
    dry_run: bool


class FadingAnswer(Answer):
    memory: MemoryAnswer
    retention: float
    falls: float | None


class RetentionAnswer(Answer):
    memories: int
    bins: list[int]
    next: list[FadingAnswer]


class RelatedAnswer(Answer):
    memory: MemoryAnswer
    why: str
    is_same: bool


class EarlierTextAnswer(Answer):
    text: str
    until: float


class ConnectionsAnswer(Answer):
    versions: list[MemoryAnswer]
    earlier: list[EarlierTextAnswer]
    pairs: list[RelatedAnswer]
    around: list[MemoryAnswer]
    lost: list[str]


class JudgedQuestionAnswer(Answer):
    question: str
    relevant: list[str]


class EvaluationRunAnswer(Answer):
    time: float
    who: str
    settings: str
    questions: int
    missing: int
    measures: dict[str, float]
    reliability: dict[str, Any]


class EvaluationAnswer(Answer):
    count: int
    questions: list[JudgedQuestionAnswer]
    runs: list[EvaluationRunAnswer]


class RankingAnswer(Answer):
    embedder: str
    ids: list[str]


class ActivityEntryAnswer(Answer):
    time: float
    action: str
    who: str
    text: str
    memory_id: str | None


class ActivityAnswer(Answer):
    entries: list[ActivityEntryAnswer]


class FindingAnswer(Answer):
    name: str
    ok: bool
    detail: str


class LatencyAnswer(Answer):
    method: str
    route: str
    p50: float
    p95: float
    p99: float


class ExaminationAnswer(Answer):
    findings: list[FindingAnswer]
    latencies: list[LatencyAnswer]


class SessionAnswer(Answer):
    session: str
    agent: str
    start: float
    end: float
    memories: int


class SessionsAnswer(Answer):
    sessions: list[SessionAnswer]
    total: int


class AuditEntryAnswer(Answer):
    n: int
    time: float
    who: str
    action: str
    memory: str | None
    detail: dict[str, Any]


class AuditAnswer(Answer):
    entries: list[AuditEntryAnswer]
    next_cursor: str | None


class VerifiedAnswer(Answer):
    sound: bool
    broken: list[int]


class ImportAnswer(Answer):
    imported: int
    replaced: int
    vectors_kept: int
    embedder: str


class AgentsAnswer(Answer):
    agents: dict[str, int]


class StoredAnswer(Answer):
    memory_id: str


class EntryAnswer(Answer):
    """A memory in the structure of the agent memory API, with its tier and, where there was a question, its score."""

    memory_id: str
    agent_id: str
    step_number: int
    timestamp: float
    contents: dict[str, Any]
    metadata: MetadataAnswer
    tier: Tier
    score: float | None
    embeddings: dict[str, list[float] | None] | None = None


class EntriesAnswer(Answer):
    memories: list[EntryAnswer]
    total: int
    missing_tiers: list[str]


class VectorAnswer(Answer):
    vector: list[float]


class ValueAnswer(Answer):
    step_number: int
    timestamp: float
    value: Any
    changed: bool
    memory_id: str


class HistoryAnswer(Answer):
    history: list[ValueAnswer]


class ChangesAnswer(Answer):
    changes: dict[str, dict[str, Any]]
