"""Types of the arguments and results of AgentMemoryAPI, for annotations. Those of the models are in `models`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from ..stores.base import MemoryStore
from .entries import MemoryEntry

__all__ = [
    "ConfigUpdate",
    "MemoryChangeRecord",
    "MemoryEmbeddings",
    "MemoryEntry",
    "MemoryImportanceScore",
    "MemoryMetadata",
    "MemoryStatistics",
    "MemoryStore",
    "MemoryTier",
    "MemoryTypeDistribution",
    "MemoryTypeFilter",
    "QueryResult",
    "SimilaritySearchResult",
]

MemoryTier = Literal["stm", "im", "ltm"]
MemoryTypeFilter = Literal["state", "action", "interaction"] | None
MemoryImportanceScore = float
"""From 0 to 1."""
MemoryTypeDistribution = dict[str, int]
"""Number of memories by type."""
ConfigUpdate = Mapping[str, Any]
"""`{"cleanup_interval": 200, "stm_config.memory_limit": 5000}`, for `configure_memory_system`."""
QueryResult = MemoryEntry
SimilaritySearchResult = MemoryEntry
"""The attribute `score` is the similarity."""


class MemoryMetadata(TypedDict):
    """`entry["metadata"]`. The tier is the entry's attribute `tier`."""

    creation_time: float
    last_access_time: float
    compression_level: int
    importance_score: MemoryImportanceScore
    retrieval_count: int
    memory_type: str


class MemoryEmbeddings(TypedDict):
    """`entry["embeddings"]`: the vector of the memory in its tier."""

    full_vector: list[float] | None
    compressed_vector: list[float] | None
    abstract_vector: list[float] | None


class MemoryChangeRecord(TypedDict):
    """One step of `MemorySpace.attribute_history`."""

    step_number: int
    timestamp: float
    value: Any
    changed: bool
    memory_id: str


class MemoryStatistics(TypedDict):
    """The result of `get_memory_statistics`."""

    agent_id: str
    total_memories: int
    memory_type_distribution: MemoryTypeDistribution
    tier_distribution: dict[str, int]
    compression: dict[str, Any]
    importance_histogram: dict[str, int]
    average_importance: float | None
    oldest: float | None
    newest: float | None
    first_step: int | None
    last_step: int | None
    cache: dict[str, Any]
    hot_tiers: dict[str, str]
    state_failures: int
    """Failures of a hooked agent's `get_state` in this process."""
