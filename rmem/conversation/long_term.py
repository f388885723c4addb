"""The long-term memory of EnhancedAgentMemory: experiences, messages, tool calls and summaries, each a memory of one
Brain under a short key; and the experiences among them by their vectors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from .. import checks
from ..annotations import Mode
from ..brain import Brain
from ..embed import EmbedderSpec
from ..embed.base import Vector
from ..errors import EmbedderMismatchError
from ..filters import Filter
from ..kv.base import Entry, Hits, checked_query
from ..kv.records import RecordValues
from ..models import Bookkeeping, Memory
from ..stores.base import MemoryStore
from .key_numbers import numbers_for

PREFIXES = {"experience": "exp", "message": "msg", "tool_call": "tool", "summary": "sum"}
KINDS = tuple(PREFIXES)


def open_brain(address: str | Path | MemoryStore[Any], vector: bool, embedder: EmbedderSpec, **options: Any) -> Brain:
    """A Brain; without `vector` one that makes no vectors, unless the file has some already."""
    if vector:
        return Brain(address, embedder=embedder, **options)
    try:
        return Brain(address, embedder="none", **options)
    except EmbedderMismatchError:
        return Brain(address, **options)


def importance_of(importance: object) -> float:
    """The guide counts importance 1, 2, 3 …; a Brain has 0 to 1, where 0.5 is neutral. n becomes n / (n + 1), so that
    1 is neutral, 2 is 0.67 and 9 is 0.9. A number with a decimal point is taken to be from 0 to 1 already."""
    if isinstance(importance, Integral) and not isinstance(importance, bool):
        number = checks.whole("importance", importance)
        return number / (number + 1)
    return checks.share("importance", importance)


class LongTermMemory(RecordValues):
    """All that an agent keeps, by key: `exp_0`, `msg_0`, `tool_0`, `sum_0` …. Its `search` compares words."""

    types = KINDS

    def __init__(self, brain: Brain, agent: str) -> None:
        super().__init__(brain.store, agent)
        self.brain = brain
        self._numbers = numbers_for(brain.store)

    def _keep(self, memories: Sequence[Memory]) -> None:
        self.brain.keep(memories)

    def _memory(self, one: Entry, now: float) -> Memory:
        memory = super()._memory(one, now)
        if "importance" in one.meta:
            memory.bookkeeping.importance_score = importance_of(one.meta["importance"])
        return memory

    def _forget(self, key: str) -> bool:
        return key in self and self.brain.forget(self.id_of(key))

    def write(
        self,
        kind: str,
        text: str,
        contents: Mapping[str, Any],
        *,
        session: str | None = None,
        actor: str | None = None,
        importance: float = 0.5,
        key: str | None = None,
    ) -> Memory:
        """Keep a memory of some kind under a new key, or under one that is given."""
        checks.text(kind.replace("_", " "), text)
        now = time.time()
        memory = Memory(
            memory_id=self.id_of(self.new_key(kind) if key is None else key),
            agent_id=self.namespace,
            step_number=-1,
            timestamp=now,
            contents={"text": text, **contents},
            bookkeeping=Bookkeeping(
                creation_time=now, last_access_time=now, importance_score=importance, memory_type=kind
            ),
            text=text,
            session=session,
            actor=actor,
        )
        return self.brain.keep([memory])[0]

    def new_key(self, kind: str) -> str:
        prefix = PREFIXES[kind]
        return f"{prefix}_{self._numbers.take(self.id_of(f'{prefix}_'))}"

    def held(self, keys: Sequence[str]) -> set[str]:
        """Which of these keys there are."""
        return {one.key for one in self._get_many(keys) if one is not None}

    def memory(self, key: str) -> Memory | None:
        """The whole memory behind a key."""
        found = self.records.get(self.id_of(key))
        return found if found is not None and self._ours(found) else None

    def recall(self, query: str, k: int, kinds: Sequence[str], mode: Mode) -> Hits:
        """(key, text, score) of the best memories of some kinds."""
        checked_query(query, k)
        asked = query.encode("utf-8", "replace").decode().replace("\x00", " ")
        if not asked.strip():
            return []
        where = Filter.of({"agent": self.namespace, "type": list(kinds)})
        hits = self.brain.recall(asked, k, where=where, mode=mode)
        return [(self.key_of(hit.memory), hit.text, hit.score) for hit in hits]


class SemanticMemory(LongTermMemory):
    """The experiences of a long-term memory by their vectors: `search` answers with the highest cosines."""

    types = ("experience",)

    @property
    def keys(self) -> list[str]:
        return self._keys()

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self._all()]

    @property
    def embeds(self) -> list[Vector | None]:
        """The vectors, in the order of `keys`."""
        return [memory.embeddings.full_vector for memory in self.records.select(self.where, order="step")]

    def search(self, query: str, top_k: int = 5) -> Hits:
        return self.recall(query, top_k, self.types, "vector")
