"""The long-term memory of EnhancedAgentMemory: experiences, messages, tool calls and summaries, each a memory of one
Brain under a short key; and the experiences among them by their vectors."""

from __future__ import annotations

import time
from collections import defaultdict
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
from ..forks import new_lock
from ..kv.base import Entry, Hits, check_query
from ..kv.records import RecordValues
from ..models import Bookkeeping, Memory
from ..stores.base import MemoryStore, RecordStore
from ..stores.capabilities import Counters

PREFIXES = {"experience": "exp", "message": "msg", "tool_call": "tool", "summary": "sum"}
KINDS = tuple(PREFIXES)


def open_brain(address: str | Path | MemoryStore[Any], vector: bool, embedder: EmbedderSpec, **options: Any) -> Brain:
    """Open a Brain; without `vector` one that computes no vectors, unless the file already has some."""
    if vector:
        return Brain(address, embedder=embedder, **options)
    try:
        return Brain(address, embedder="none", **options)
    except EmbedderMismatchError:
        return Brain(address, **options)


def importance_of(importance: object) -> float:
    """Convert the guide's importance 1, 2, 3 … to that of a Brain, 0 to 1 with 0.5 as neutral: n becomes n / (n + 1),
    so 1 is neutral, 2 is 0.67 and 9 is 0.9. A number with a decimal point is taken to be from 0 to 1 already."""
    if isinstance(importance, Integral) and not isinstance(importance, bool):
        number = checks.whole("importance", importance)
        return number / (number + 1)
    return checks.share("importance", importance)


class KeyCounters:
    """Numbers for keys such as `exp_7`, each used once, also after deletions. For a store that ends with the process;
    others count themselves, for all processes that share them."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._next: dict[str, int] = defaultdict(int)
        self._lock = new_lock()

    def next_number(self, stem: str) -> int:
        """Return the next number after `stem` that no memory has or ever had."""
        with self._lock:
            number = self._next[stem]
            while self._store.get(f"{stem}{number}") is not None:  # an id that a caller chose
                number += 1
            self._next[stem] = number + 1
            return number


class LongTermMemory(RecordValues):
    """All memories of an agent by key: `exp_0`, `msg_0`, `tool_0`, `sum_0` …. Its `search` compares words."""

    types = KINDS

    def __init__(self, brain: Brain, agent: str) -> None:
        super().__init__(brain.store, agent)
        self.brain = brain
        store = brain.store
        self._counters = store if isinstance(store, Counters) else KeyCounters(store)

    def _keep(self, memories: Sequence[Memory]) -> None:
        self.brain.keep(memories)

    def _memory(self, entry: Entry, now: float) -> Memory:
        memory = super()._memory(entry, now)
        if "importance" in entry.meta:
            memory.bookkeeping.importance_score = importance_of(entry.meta["importance"])
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
        """Store a memory of one of `KINDS` under a new key, or under a given one."""
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
        return f"{prefix}_{self._counters.next_number(self.id_of(f'{prefix}_'))}"

    def existing_keys(self, keys: Sequence[str]) -> set[str]:
        return {entry.key for entry in self._get_many(keys) if entry is not None}

    def memory(self, key: str) -> Memory | None:
        found = self.records.get(self.id_of(key))
        return found if found is not None and self._is_ours(found) else None

    def recall(self, query: str, k: int, kinds: Sequence[str], mode: Mode) -> Hits:
        """Return (key, text, score) of the best memories of some kinds."""
        check_query(query, k)
        question = query.encode("utf-8", "replace").decode().replace("\x00", " ")
        if not question.strip():
            return []
        where = Filter.of({"agent": self.namespace, "type": list(kinds)})
        hits = self.brain.recall(question, k, where=where, mode=mode)
        return [(self.key_of(hit.memory), hit.text, hit.score) for hit in hits]


class SemanticMemory(LongTermMemory):
    """The experiences of a long-term memory; `search` ranks them by cosine."""

    types = ("experience",)

    @property
    def keys(self) -> list[str]:
        return self._keys()

    @property
    def texts(self) -> list[str]:
        return [entry.text for entry in self._all()]

    @property
    def embeds(self) -> list[Vector | None]:
        """Return the vectors, in the order of `keys`."""
        return [memory.embeddings.full_vector for memory in self.records.select(self.where, order="step")]

    def search(self, query: str, top_k: int = 5) -> Hits:
        return self.recall(query, top_k, self.types, "vector")
