"""The operations of the plan, by the public interfaces: `Brain` for SQLite and PostgreSQL, `AgentMemoryAPI` for Redis.

A method has the name and the arguments of the operation in the journal, even those it does not need. It returns JSON:
a list of memories as "word/revision", a single memory as {"rev", "tags", "tier"}."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmem import Brain
from rmem.agents import AgentMemoryAPI, MemoryConfig, RedisIMConfig, RedisSTMConfig
from rmem.annotations import Durability
from rmem.errors import MemoryAPIException, StoreError, VectorError
from rmem.transfer import export

from .plan import EVER_PRESENT, text_of

Ids = list[str]
Pairs = list[str]
"""Memories as "word/revision"."""
_MAX_STEP = 2**53


@dataclass(frozen=True)
class Setting:
    """Where the store of a run is."""

    kind: str
    address: str
    durability: Durability = "full"
    redis_port: int = 0

    def open(self) -> Client:
        return AgentClient(self) if self.kind == "redis" else BrainClient(self)

    def brain(self) -> Brain:
        return Brain(self.address, durability=self.durability)


def is_excusable(error: BaseException) -> bool:
    """Whether a store may raise this while a fault is injected below it."""
    cause = error.__cause__ if isinstance(error, MemoryAPIException) else error
    return isinstance(cause, StoreError)


def names(contents: dict[str, Any]) -> list[str]:
    """Return the word and the revision of a memory with these contents."""
    return [contents["word"], contents["rev"]] if "rev" in contents else contents["text"].split()[:2]


def pairs(all_contents: Iterable[dict[str, Any]]) -> Pairs:
    return ["/".join(names(contents)) for contents in all_contents]


def read_export(path: Path) -> Pairs:
    """Return the memories of an exported file."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return pairs(json.loads(line)["contents"] for line in lines)


class BrainClient:
    """Operations on a Brain."""

    def __init__(self, setting: Setting) -> None:
        self.brain = setting.brain()

    def close(self) -> None:
        self.brain.close()

    # Writing

    def remember(
        self,
        agent: str,
        items: dict[str, str],
        id: str | None = None,
        step: int | None = None,
        actor: str | None = None,
    ) -> Ids:
        fields = [{"text": text_of(*item), "agent": agent, "actor": actor, "step": step} for item in items.items()]
        if len(fields) > 1:
            return [memory.memory_id for memory in self.brain.remember_many(fields)]
        return [self.brain.remember(id=id, **fields[0]).memory_id]  # type: ignore[arg-type]

    def update(self, id: str, word: str, agent: str, rev: str) -> None:
        self.brain.update(id, text=text_of(word, rev))

    def tag(self, id: str, word: str, agent: str, tags: dict[str, str]) -> None:
        self.brain.update(id, tags=tags)

    def pin(self, id: str, word: str, agent: str, tags: dict[str, str]) -> None:
        self.brain.pin(id, "pinned" in tags)

    def move(self, id: str, word: str, agent: str, tier: str) -> int:
        """Move as agents do: a memory that moves up gets its vector again."""
        memory = self.brain.get(id) if tier != "ltm" else None
        vector = None if memory is None else self.brain.vector_of(memory.text, memory.contents)
        try:
            return self.brain.store.move([id], tier, {} if vector is None else {id: vector})
        except VectorError:  # the store was re-embedded between the two
            return self.move(id, word, agent, tier)

    def forget(self, id: str, word: str, agent: str) -> bool:
        return self.brain.forget(id)

    def forget_subject(self, subject: str, words: list[str]) -> int:
        return len(self.brain.forget(subject=subject))

    # Reading

    def get(self, id: str, word: str, agent: str) -> dict[str, Any] | None:
        memory = self.brain.get(id)
        return None if memory is None else {"rev": names(memory.contents)[1], "tags": memory.tags, "tier": memory.tier}

    def lexical(self, word: str, agent: str) -> Pairs:
        return pairs(hit.memory.contents for hit in self.brain.recall(word, k=5, mode="lexical"))

    def hybrid(self, agent: str, question: str) -> Pairs:
        return pairs(
            hit.memory.contents for hit in self.brain.recall(question, k=2 * EVER_PRESENT, where={"agent": agent})
        )

    def vector(self, agent: str, question: str) -> Pairs:
        hits = self.brain.recall(question, k=2 * EVER_PRESENT, where={"agent": agent}, mode="vector")
        return pairs(hit.memory.contents for hit in hits)

    def list(self, agent: str | None) -> Pairs:
        found = self.brain.memories({"agent": agent} if agent else None, limit=None)
        return pairs(memory.contents for memory in found)

    def export(self, agent: str | None) -> Pairs:
        handle, name = tempfile.mkstemp(suffix=".jsonl")
        os.close(handle)
        try:
            export(self.brain, name, where={"agent": agent} if agent else None)
            return read_export(Path(name))
        finally:
            os.unlink(name)

    def count(self, agent: str | None) -> int:
        stats = self.brain.stats()
        return int(stats["by_agent"].get(agent, 0) if agent else stats["memories"])


class AgentClient:
    """Operations on the Agent Memory API. Its hot tiers in Redis are small, so that memories move between tiers."""

    def __init__(self, setting: Setting) -> None:
        redis: dict[str, Any] = {"host": "127.0.0.1", "port": setting.redis_port}
        config = MemoryConfig(
            cleanup_interval=20,
            stm_config=RedisSTMConfig(memory_limit=10, **redis),
            im_config=RedisIMConfig(memory_limit=10, **redis),
        )
        self.api = AgentMemoryAPI(config, brain=setting.brain())

    def close(self) -> None:
        self.api.close()

    def remember(self, agent: str, items: dict[str, str], **_: Any) -> Ids:
        states = [{"word": word, "rev": rev, "says": text_of(word, rev)} for word, rev in items.items()]
        step = time.monotonic_ns() // 1_000_000
        return self.api.get_memory_space(agent).store_many("state", states, first_step=step)

    def forget(self, id: str, word: str, agent: str) -> bool:
        return self.api.get_memory_space(agent).forget(id)

    def raise_(self, id: str, word: str, agent: str) -> None:
        """Move a memory up: decompress it, then focus on it."""
        space = self.api.get_memory_space(agent)
        space.decompress(id)
        for _ in range(3):
            space.focus(id)

    def maintain(self, agent: str) -> None:
        self.api.force_memory_maintenance(agent)

    def get(self, id: str, word: str, agent: str) -> dict[str, Any] | None:
        entry = self.api.get_memory_space(agent).get(id)
        return None if entry is None else {"rev": entry["contents"]["rev"]}

    def lexical(self, word: str, agent: str) -> Pairs:
        return _pairs_of(self.api.get_memory_space(agent).retrieve_by_attributes({"word": word}))

    def hybrid(self, agent: str, question: str) -> Pairs:
        return _pairs_of(self.api.get_memory_space(agent).search_by_content(question, k=2 * EVER_PRESENT))

    def vector(self, agent: str, question: str) -> Pairs:
        space = self.api.get_memory_space(agent)
        return _pairs_of(space.search_by_embedding(space.embed(question), k=2 * EVER_PRESENT))

    def list(self, agent: str) -> Pairs:
        return _pairs_of(self.api.retrieve_by_time_range(agent, 0, _MAX_STEP))

    def count(self, agent: str) -> int:
        return int(self.api.get_memory_statistics(agent)["total_memories"])


def _pairs_of(found: Iterable[dict[str, Any]]) -> Pairs:
    return pairs(entry["contents"] for entry in found)


Client = BrainClient | AgentClient
