"""The async face: everything that Brain can do, awaited."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rmem import AsyncBrain, Brain
from rmem.errors import InputError, NotFoundError, StoreClosedError


def test_everything_is_the_same_awaited(tmp_path):
    async def story():
        async with AsyncBrain(tmp_path / "memories.db") as brain:
            memory = await brain.remember("the lighthouse keeper waved", agent="a", session="s")
            kept = await brain.remember_many([{"text": "one"}, {"text": "two"}])
            assert len(kept) == 2
            hits = await brain.recall("lighthouse", k=1, explain=True)
            assert hits[0].memory.memory_id == memory.memory_id
            assert hits[0].explanation is not None
            assert (await brain.get(memory.memory_id)).text == "the lighthouse keeper waved"
            assert (await brain.update(memory.memory_id, text="the keeper left")).text == "the keeper left"
            assert len(await brain.memories()) == 3
            assert await brain.forget(memory.memory_id) is True
            stats = await brain.stats()
            assert stats["memories"] == 2
            assert brain.address == str(tmp_path / "memories.db")
            assert brain.settings == brain.sync.settings
        with pytest.raises(StoreClosedError):
            await brain.recall("lighthouse")
        await brain.close()

    asyncio.run(story())
    with Brain(tmp_path / "memories.db") as brain:
        assert {memory.text for memory in brain.memories()} == {"one", "two"}


def test_errors_come_through_as_they_are():
    async def story():
        async with AsyncBrain(":memory:") as brain:
            with pytest.raises(InputError, match="text must not be empty"):
                await brain.remember("  ")
            with pytest.raises(NotFoundError, match="nobody"):
                await brain.update("nobody", text="x")
            with pytest.raises(AttributeError, match="no_such_method"):
                brain.no_such_method  # noqa: B018
            assert await brain.memories() == []

    asyncio.run(story())
    with pytest.raises(InputError, match="durability"):
        AsyncBrain(":memory:", durability="never")


def test_many_calls_run_beside_each_other(tmp_path):
    async def story():
        async with AsyncBrain(tmp_path / "memories.db", durability="normal") as brain:
            kept = await asyncio.gather(*(brain.remember(f"entry {number}", agent="a") for number in range(60)))
            assert len({memory.memory_id for memory in kept}) == 60
            assert sorted(memory.step_number for memory in kept) == list(range(60))
            found = await asyncio.gather(*(brain.recall(f"entry {number}", k=60) for number in range(20)))
            assert all(len(hits) == 60 for hits in found)

    asyncio.run(story())


def test_the_event_loop_stays_free_while_an_embedder_works():
    """The embedder waits for something that only the loop can do: it would wait for ever if it held the loop."""
    go = threading.Event()

    def patient(texts):
        assert go.wait(30), "the loop was blocked"
        return [[float(len(text)), *[1.0] * 7] for text in texts]

    async def story():
        async with AsyncBrain(":memory:", embedder=patient) as brain:
            task = asyncio.create_task(brain.remember("slow"))
            await asyncio.sleep(0)
            go.set()
            assert (await task).text == "slow"

    asyncio.run(story())


def test_the_async_face_lists_what_it_offers():
    brain = AsyncBrain(":memory:")
    try:
        assert {"remember", "recall", "get", "forget", "update", "stats", "memories"} <= set(dir(brain))
        assert brain.recall.__doc__ == Brain.recall.__doc__
        assert asyncio.iscoroutinefunction(brain.recall)
    finally:
        brain.sync.close()
