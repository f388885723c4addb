"""CrewAI's memory on a Brain: each record is a memory.

from rmem.integrations.crewai import BrainStorage
memory = Memory(storage=BrainStorage("memories.db"))
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..brain import Brain
from ..errors import ConfigError
from ..extras import require
from ..filters import Filter
from ..models import Memory
from .common import MAX_HITS, clean_text, id_of, in_thread, iterate_memories, open_brain
from .embeddings import pad_vector

require("crewai", "rmem.integrations.crewai")

from crewai.memory.types import MemoryRecord, ScopeInfo  # noqa: E402

RECORD = "crewai_record"
"""The type of these memories."""


class BrainStorage:
    """A `StorageBackend` on a Brain. CrewAI embeds records and queries itself.

    With an address, the Brain stores vectors of CrewAI's embedder. With a Brain that has an embedder, CrewAI must use
    that one, which needs no key: `Memory(storage=storage, embedder=storage.embed)`.
    """

    def __init__(self, brain: Brain | str | Path | None = None, *, agent: str = "crewai") -> None:
        self.brain, self._owned = open_brain(brain, "none")
        self.agent = agent

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts by the Brain's embedder."""
        vectors = [self.brain.vector_of(text) for text in texts]
        if any(vector is None for vector in vectors):
            raise ConfigError("this Brain has no embedder; give BrainStorage a Brain that has: BrainStorage(Brain(…))")
        return [vector.tolist() for vector in vectors if vector is not None]

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records in one transaction; replace those with the same id."""
        self.brain.remember_many([self._memory(record) for record in records])

    def update(self, record: MemoryRecord) -> None:
        """Replace the record with the same id."""
        self.save([record])

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records whose vectors are nearest, with their cosines."""
        if not any(query_embedding) or limit < 1:
            return []
        k = min(limit, MAX_HITS)
        while True:
            where, vector = self._where(scope_prefix), pad_vector(query_embedding)
            hits = self.brain.recall("vector", k, where, mode="vector", vector=vector)
            scored = [(_record(hit.memory), max(0.0, hit.score)) for hit in hits]
            found = [(record, score) for record, score in scored if _passes(record, categories, metadata_filter)]
            if len(found) >= limit or len(hits) < k or k == MAX_HITS:
                return [(record, score) for record, score in found[:limit] if score >= min_score]
            k = min(MAX_HITS, 4 * k)

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that match all conditions; return how many."""
        wanted = None if record_ids is None else set(record_ids)
        before = None if older_than is None else _seconds(older_than)
        chosen = [
            memory.id
            for memory, record in self._records_in(scope_prefix)
            if (wanted is None or record.id in wanted)
            and (before is None or memory.timestamp < before)
            and _passes(record, categories, metadata_filter)
        ]
        return sum(self.brain.forget(key) for key in chosen)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return the record with this id, or None."""
        memory = self.brain.get(self._id_of(record_id))
        return None if memory is None else _record(memory)

    def touch_records(self, record_ids: list[str]) -> None:
        """Set the access time of records to now."""
        now = datetime.now(UTC).replace(tzinfo=None)  # as CrewAI writes times
        held = self.brain.get_many([self._id_of(key) for key in record_ids])
        records = [_record(memory).model_copy(update={"last_accessed": now}) for memory in held if memory is not None]
        self.save(records)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return the records of a scope and those below it, newest first."""
        if limit < 1 or offset < 0:
            return []
        page = self.brain.memories(self._where(scope_prefix), order="newest", limit=limit, offset=offset)
        return [_record(memory) for memory in page]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return statistics of a scope and those below it."""
        records = [record for _, record in self._records_in(scope)]
        times = [record.created_at for record in records]
        return ScopeInfo(
            path="/" + "/".join(_parts(scope)),
            record_count=len(records),
            categories=sorted({name for record in records for name in record.categories}),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=_children(scope, records),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the direct children of a scope."""
        return _children(parent, [record for _, record in self._records_in(parent)])

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return the number of records of each category."""
        return dict(Counter(name for _, record in self._records_in(scope_prefix) for name in record.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        """Count the records of a scope and those below it."""
        return self.brain.count(self._where(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all records of a scope and those below it."""
        self.brain.forget(where=self._where(scope_prefix))

    asave = in_thread(save)
    asearch = in_thread(search)
    adelete = in_thread(delete)

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        if self._owned:
            self.brain.close()

    def _id_of(self, record_id: str) -> str:
        return id_of("crewai", self.agent, record_id)

    def _where(self, scope: str | None) -> Filter:
        path = {f"path.{at}": name for at, name in enumerate(_parts(scope or "/"))}
        return Filter.of({"agent": self.agent, "type": RECORD, "attributes": path})

    def _records_in(self, scope: str | None) -> Iterator[tuple[Memory, MemoryRecord]]:
        for memory in iterate_memories(self.brain, self._where(scope)):
            yield memory, _record(memory)

    def _memory(self, record: MemoryRecord) -> dict[str, Any]:
        given = record.embedding or []
        parts = _parts(record.scope)
        return {
            "id": self._id_of(record.id),
            "agent": self.agent,
            "type": RECORD,
            "text": clean_text(record.content, record.scope),
            "importance": record.importance,
            "when": _seconds(record.created_at),
            "metadata": {
                "path": {str(at): name for at, name in enumerate(parts)},
                "record": json.dumps(record.model_dump(mode="json")),
                "numbers": len(given),
            },
            **({"vector": pad_vector(given)} if any(given) else {}),
        }


def _record(memory: Memory) -> MemoryRecord:
    record = MemoryRecord.model_validate_json(memory.contents["record"])
    if memory.vector is not None and memory.contents["numbers"]:
        record.embedding = memory.vector[: memory.contents["numbers"]].tolist()
    return record


def _passes(record: MemoryRecord, categories: list[str] | None, metadata: dict[str, Any] | None) -> bool:
    if categories and not set(categories) & set(record.categories):
        return False
    return all(record.metadata.get(key) == value for key, value in (metadata or {}).items())


def _parts(scope: str) -> list[str]:
    return [name for name in scope.split("/") if name]


def _children(scope: str, records: Sequence[MemoryRecord]) -> list[str]:
    depth = len(_parts(scope)) + 1
    paths = {tuple(_parts(record.scope)[:depth]) for record in records}
    return sorted("/" + "/".join(path) for path in paths if len(path) == depth)


def _seconds(moment: datetime) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
