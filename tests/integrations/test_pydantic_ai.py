"""Pydantic AI: its base class of conversation stores on ours, beside its own store in memory. It publishes no tests for
stores or toolsets of others."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed: make test-frameworks")

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationStore, InMemoryConversationStore
from pydantic_ai.messages import BinaryImage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.test import TestModel as Model

from rmem import Brain
from rmem.integrations.pydantic_ai import BrainConversationStore


@pytest.fixture
def brain():
    with Brain(":memory:") as brain:
        yield brain


async def story(store: ConversationStore) -> list[object]:
    """Save, continue, branch, fork, list and delete; what a reader sees after each."""
    agent = Agent(Model(custom_output_text="a good name"))
    seen: list[object] = []

    async def look(name: str) -> None:
        held = await store.load(name)
        told = held and [(part.part_kind, getattr(part, "content", "")) for one in held.messages for part in one.parts]
        seen.append(told and [(kind, str(content)) for kind, content in told])

    result = await agent.run("my dog is called Bruno", conversation=Conversation(conversation_id="ann"))
    await store.save(result, scope="pets")
    await look("ann")
    held = await store.load("ann", scope="pets")
    result = await agent.run("my cat is called Mia", conversation=held)
    entries = await store.save(result)
    await look("ann")
    seen.append(await store.load("ann", scope="others"))
    stale = await store.load("ann")
    await store.save(await agent.run("again", conversation=await store.load("ann")))
    try:
        await store.save(await agent.run("too late", conversation=stale))
    except ConversationConflict:
        seen.append("conflict")
    await store.fork("ann", new_conversation_id="fork", from_entry=entries[0].id)
    await look("fork")
    await store.branch("ann", from_entry=entries[0].id, expected_revision=(await store.load("ann")).revision)
    await look("ann")
    seen.append(sorted(record.conversation_id for record in await store.read_records()))
    seen.append([record.conversation_id for record in await store.read_records(scope="none")])
    await store.delete("ann")
    await look("ann")
    await look("fork")
    return seen


def test_a_conversation_lives_as_in_the_store_of_pydantic_ai(brain):
    assert asyncio.run(story(BrainConversationStore(brain))) == asyncio.run(story(InMemoryConversationStore()))


def test_a_deleted_conversation_leaves_nothing_but_what_a_fork_reaches(brain):
    store = BrainConversationStore(brain)
    asyncio.run(story(store))
    assert {memory.text for memory in brain.memories()} >= {"my dog is called Bruno"}
    assert "again" not in {memory.text for memory in brain.memories()}
    asyncio.run(store.delete("fork"))
    assert brain.count() == 0


def test_messages_come_back_exactly_and_recall_finds_them(brain):
    picture = BinaryImage(data=b"\x00\xff", media_type="image/png")
    given = [
        ModelRequest([UserPromptPart(["my dog", picture])]),
        ModelResponse([TextPart("Bruno is a good name for a dog")]),
    ]
    store = BrainConversationStore(brain)
    asyncio.run(store.save(Conversation(conversation_id="ann", messages=given)))
    loaded = asyncio.run(BrainConversationStore(brain).load("ann"))
    assert loaded is not None
    assert loaded.messages == given
    assert brain.recall("good name", k=1)[0].text == "Bruno is a good name for a dog"
    assert brain.recall("my dog", k=1)[0].text == "my dog"


def test_a_save_that_was_overtaken_leaves_no_message(brain):
    store = BrainConversationStore(brain)
    asyncio.run(store.save(Conversation(conversation_id="ann", messages=[ModelRequest([UserPromptPart("first")])])))
    late = asyncio.run(store.load("ann"))
    soon = asyncio.run(store.load("ann"))
    soon.messages.append(ModelResponse([TextPart("second")]))
    asyncio.run(store.save(soon))
    late.messages.append(ModelResponse([TextPart("too late")]))
    with pytest.raises(ConversationConflict):
        asyncio.run(store.save(late))
    assert "too late" not in {memory.text for memory in brain.memories()}
