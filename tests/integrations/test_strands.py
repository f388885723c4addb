"""Strands: a store behind its memory manager and a real agent. It publishes no tests for stores of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("strands", reason="strands-agents is not installed: make test-frameworks")

from strands import Agent
from strands.memory import MemoryManager
from strands.models import Model

from rmem import Brain
from rmem.integrations.strands import BrainMemoryStore


class Parrot(Model):
    """A model that answers with all that it was given."""

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def stream(self, messages: Any, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        heard = " | ".join(block["text"] for one in messages for block in one["content"] if "text" in block)
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": heard}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


@pytest.fixture
def brain():
    with Brain(":memory:") as brain:
        yield brain


def test_the_manager_searches_and_adds(brain):
    manager = MemoryManager(stores=[BrainMemoryStore(brain, name="pets")], add_tool_config=True)
    asyncio.run(manager.add("Ann's dog is called Bruno", {"metadata": {"by": "form"}}))
    (found,) = asyncio.run(manager.search("dog"))
    assert (found.content, found.store_name, found.metadata["by"]) == ("Ann's dog is called Bruno", "pets", "form")
    assert 0 <= found.metadata["score"] <= 1
    assert len(manager.get_tools() if hasattr(manager, "get_tools") else manager.tools) == 2


def test_an_agent_is_told_what_was_kept_before(brain):
    asyncio.run(BrainMemoryStore(brain).add("Ann's dog is called Bruno"))
    agent = Agent(model=Parrot(), memory_manager=MemoryManager(stores=[BrainMemoryStore(brain)]), callback_handler=None)
    assert "Bruno" in str(agent("what is the dog called?"))


def test_messages_are_kept_as_they_were_said(brain):
    store = BrainMemoryStore(brain, user="ann")
    said = [
        {"role": "user", "content": [{"text": "my dog is called Bruno"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "f", "input": {}}}]},
    ]
    assert len(asyncio.run(store.add_messages(said))) == 1
    assert asyncio.run(store.search("dog"))[0].metadata["role"] == "user"
    assert asyncio.run(BrainMemoryStore(brain, user="bob").search("dog")) == []
    assert asyncio.run(BrainMemoryStore(brain, name="other", user="ann").search("dog")) == []
