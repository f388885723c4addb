"""Each integration on a Brain of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

pytest.importorskip("langgraph", reason="the frameworks are not installed: make test-frameworks")
pytest.importorskip("langchain_core")
pytest.importorskip("agents.memory")
pytest.importorskip("anthropic")
pytest.importorskip("fastapi")

from langchain_core.messages import HumanMessage

from rmem import Brain
from rmem.errors import ServerError
from rmem.integrations.anthropic import BrainMemoryTool
from rmem.integrations.langchain import BrainChatHistory, BrainVectorStore
from rmem.integrations.langgraph import BrainStore
from rmem.integrations.openai_agents import BrainSession


@pytest.fixture
def brain(server) -> Iterator[Brain]:
    with Brain(server.url, token=server.first_token) as brain:
        yield brain


def test_langgraph(brain):
    store = BrainStore(brain, ttl={"default_ttl": 1})
    store.put(("users", "ann"), "pet", {"text": "Ann's dog is called Bruno", "legs": 4})
    store.put(("users", "ann"), "tea", {"text": "Ann drinks green tea", "legs": 0}, index=False)
    assert store.get(("users", "ann"), "pet").value["legs"] == 4
    assert [item.key for item in store.search(("users",), query="dog", limit=1)] == ["pet"]
    assert [item.key for item in store.search(("users",), filter={"legs": {"$lt": 1}})] == ["tea"]
    assert store.list_namespaces() == [("users", "ann")]
    store.delete(("users", "ann"), "pet")
    assert store.get(("users", "ann"), "pet") is None
    assert store.sweep_ttl() == 0


def test_langchain(brain):
    store = BrainVectorStore(brain)
    store.add_texts(["a red apple", "a blue car"], [{"n": 1}, {"n": 2}], ids=["1", "2"])
    assert store.similarity_search("apple", k=1)[0].id == "1"
    assert store.similarity_search("apple", k=1, filter={"n": {"$gt": 1}})[0].id == "2"
    with pytest.raises(ServerError, match="not offered by a server"):  # it gives out no vectors
        store.max_marginal_relevance_search("apple", k=2)
    store.delete(["1"])
    assert [one.id for one in store.get_by_ids(["1", "2"])] == ["2"]
    history = BrainChatHistory("one", brain)
    history.add_messages([HumanMessage("first"), HumanMessage("second")])
    assert [one.content for one in history.messages] == ["first", "second"]
    history.clear()
    assert history.messages == []


def test_openai_agents(brain):
    session = BrainSession("one", brain)
    items = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "second"}]
    asyncio.run(session.add_items(items))
    assert asyncio.run(session.get_items()) == items
    assert asyncio.run(session.get_items(1)) == asyncio.run(session.get_items())[1:]
    assert asyncio.run(session.pop_item()) == items[1]
    asyncio.run(session.clear_session())
    assert asyncio.run(session.get_items()) == []


def test_claudes_memory_tool(brain):
    tool = BrainMemoryTool(brain)
    tool.call({"command": "create", "path": "/memories/old/a", "file_text": "one\ntwo\n"})
    tool.call({"command": "str_replace", "path": "/memories/old/a", "old_str": "two", "new_str": "three"})
    tool.call({"command": "rename", "old_path": "/memories/old", "new_path": "/memories/new"})
    assert "three" in tool.call({"command": "view", "path": "/memories/new/a"})
    tool.call({"command": "delete", "path": "/memories/new"})
    assert brain.count() == 0
