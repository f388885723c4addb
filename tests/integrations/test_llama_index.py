"""LlamaIndex: its own tests of a chat store, and what is ours alone."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed: make test-frameworks")

from llama_index.core.base.llms.types import ImageBlock, TextBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer, Memory
from upstream import outcomes, repository

from rmem import Brain
from rmem.integrations.llama_index import BrainChatStore, BrainMemoryBlock

FILE = "tests/storage/chat_store/test_simple_chat_store.py"


@pytest.mark.framework("llama-index-core", "its own tests")
def test_the_tests_of_the_simple_chat_store_pass(tmp_path, record_property):
    tag = f"v{version('llama-index-core')}"
    root = repository("https://github.com/run-llama/llama_index", tag, "llama-index-core", tmp_path)
    alone = f"{FILE}::test_persist_non_ascii_unescaped"  # a file of its own format
    counted = outcomes(root, [FILE], "replace_llama_index", deselect=[alone], alone=True)
    record_property("counted", counted["passed"])
    assert counted.keys() <= {"passed", "deselected", "warning", "warnings"}
    assert counted["passed"] >= 4


@pytest.fixture
def brain():
    with Brain(":memory:") as brain:
        yield brain


def said(text: str, role: str = "user") -> ChatMessage:
    return ChatMessage(role=role, content=text)


def test_what_leaves_the_short_term_memory_is_remembered_and_told(brain):
    block = BrainMemoryBlock(brain=brain, k=1)
    memory = Memory.from_defaults(
        session_id="ann", memory_blocks=[block], token_limit=60, chat_history_token_ratio=0.5, token_flush_size=10
    )
    memory.put(said("my dog is called Bruno, he is two years old and likes to swim in the lake"))
    for at in range(4):
        memory.put(said(f"the train number {at} leaves at nine from platform {at}", "user" if at % 2 else "assistant"))
    memory.put(said("what is my dog called?"))
    told = str(memory.get()[0].content)
    assert "Relevant memories:\n- my dog is called Bruno" in told


def test_a_block_that_is_too_long_loses_its_worst_memories(brain):
    block = BrainMemoryBlock(brain=brain)
    told = "Relevant memories:\n- the best answer\n- the second answer"
    assert asyncio.run(block.atruncate(told, 3)) == "Relevant memories:\n- the best answer"
    assert asyncio.run(block.atruncate(told, 30)) is None


def test_messages_of_a_chat_come_back_exactly(brain):
    store = BrainChatStore(brain)
    given = [
        ChatMessage(role="user", blocks=[TextBlock(text="look"), ImageBlock(url="https://example.com/a.png")]),
        ChatMessage(role="assistant", content="a dog", additional_kwargs={"tool_calls": [{"name": "see"}]}),
    ]
    store.set_messages("ann", given)
    assert store.get_messages("ann") == given
    store.set_messages("ann", given[1:])
    assert store.get_messages("ann") == given[1:]
    assert store.delete_message("ann", 5) is None
    assert store.delete_messages("ann") == given[1:]
    assert store.delete_messages("ann") is None
    assert brain.count() == 0


def test_a_buffer_of_llama_index_keeps_its_chat_in_a_brain(tmp_path):
    with Brain(tmp_path / "a.db") as brain:
        ChatMemoryBuffer.from_defaults(chat_store=BrainChatStore(brain), chat_store_key="ann").put(said("my dog Bruno"))
    with Brain(tmp_path / "a.db") as brain:
        buffer = ChatMemoryBuffer.from_defaults(chat_store=BrainChatStore(brain), chat_store_key="ann")
        assert [message.content for message in buffer.get()] == ["my dog Bruno"]
        assert brain.recall("dog", k=1)[0].text == "my dog Bruno"
