"""A user's script, for mypy --strict (`make check`) and pyright --strict (tests/test_typing.py). It is not run."""

from __future__ import annotations

import asyncio
from typing import assert_type

import rmem
from rmem import AsyncBrain, Brain, Filter, Hit, Hits, Memory
from rmem.annotations import NewMemory, Stats

with Brain("team.db", durability="normal") as brain:
    memory = brain.remember("text", agent="a", type="note", tags={"repo": "etl"}, metadata={"ticket": 4711})
    assert_type(memory, Memory)
    assert_type(memory.agent, str)
    assert_type(memory.tags, dict[str, str])
    items: list[NewMemory] = [{"text": "one", "importance": 0.7}, {"text": "two", "tier": "ltm"}]
    assert_type(brain.remember_many(items), list[Memory])
    brain.remember_many([{"text": line} for line in ("three", "four")])
    hits = brain.recall("text", k=3, agent="a", type=["note", "fix"], mode="lexical", where=Filter(min_step=1))
    assert_type(hits, Hits)
    for hit in hits:
        assert_type(hit, Hit)
        assert_type(hit.id, str)
        assert_type(hit.memory.importance, float)
    assert_type(brain.get("a"), Memory | None)
    assert_type(brain.get_many(["a", "b"]), list[Memory | None])
    brain.update(memory, importance=0.9, tags={"repo": "etl"})
    assert_type(brain.forget(memory), bool)
    assert_type(brain.forget(where={"agent": "a"}, dry_run=True), list[str])
    assert_type(brain.stats(), Stats)
    assert_type(brain.stats()["memories"], int)
    assert_type(rmem.__version__, str)


async def main() -> None:
    async with AsyncBrain("team.db") as brain:
        assert_type(await brain.remember("text", agent="a", metadata={"ticket": 4711}), Memory)
        assert_type(await brain.recall("text", k=3, agent="a", explain=True), Hits)
        assert_type(await brain.get("a"), Memory | None)
        assert_type(await brain.get_many(["a"]), list[Memory | None])
        assert_type(await brain.update("a", importance=0.9), Memory)
        assert_type(await brain.forget("a"), bool)
        assert_type(await brain.forget(where={"agent": "a"}), list[str])
        assert_type(await brain.stats(), Stats)


asyncio.run(main())
