"""The Claude Agent SDK: its conformance harness for session stores, its tools called over MCP, and its hooks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed: make test-frameworks")

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
from claude_agent_sdk.testing import run_session_store_conformance
from claude_agent_sdk.types import StopHookInput, UserPromptSubmitHookInput
from mcp import Client

from rmem import Brain
from rmem.integrations.claude_agent_sdk import BrainSessionStore, memory_hooks, memory_server

BASE = {"transcript_path": "", "cwd": "/"}


@pytest.mark.framework("claude-agent-sdk", "its own tests")
def test_the_conformance_harness_of_session_stores_passes():
    brains: list[Brain] = []

    def store() -> BrainSessionStore:
        brains.append(Brain(":memory:"))
        return BrainSessionStore(brains[-1])

    asyncio.run(run_session_store_conformance(store, skip_optional=frozenset({"list_session_summaries"})))
    assert len(brains) > 5
    for brain in brains:
        brain.close()


@pytest.fixture
def brain():
    with Brain(":memory:") as brain:
        yield brain


def prompt(hooks: dict[Any, list[HookMatcher]], text: str, session: str) -> str:
    event = UserPromptSubmitHookInput(**BASE, session_id=session, hook_event_name="UserPromptSubmit", prompt=text)
    told = asyncio.run(hooks["UserPromptSubmit"][0].hooks[0](event, None, {"signal": None}))
    return str(told.get("hookSpecificOutput", {}).get("additionalContext", ""))


def test_claude_calls_the_tools_over_mcp(brain):
    async def run() -> tuple[list[str], str]:
        async with Client(memory_server(brain, user="ann")["instance"]) as client:
            names = [one.name for one in (await client.list_tools()).tools]
            await client.call_tool("remember", {"text": "Ann's dog is called Bruno"})
            return names, (await client.call_tool("recall", {"question": "dog"})).content[0].text

    assert asyncio.run(run()) == (["remember", "recall"], "- Ann's dog is called Bruno")


def test_options_of_the_sdk_take_server_hooks_and_store(brain):
    options = ClaudeAgentOptions(
        mcp_servers={"rmem": memory_server(brain)}, hooks=memory_hooks(brain), session_store=BrainSessionStore(brain)
    )
    assert set(options.hooks) == {"UserPromptSubmit", "Stop"}


def test_a_prompt_is_told_what_was_said_in_other_sessions(brain):
    hooks = memory_hooks(brain, user="ann", min_relevance=None)
    assert prompt(hooks, "my dog is called Bruno", "monday") == ""
    assert prompt(hooks, "what is my dog called?", "monday") == ""
    assert "my dog is called Bruno" in prompt(hooks, "what is my dog called?", "tuesday")
    assert prompt(memory_hooks(brain, user="bob"), "what is my dog called?", "tuesday") == ""


def test_an_answer_is_kept(brain):
    hooks = memory_hooks(brain, user="ann")
    event = StopHookInput(
        **BASE, session_id="one", hook_event_name="Stop", stop_hook_active=False, last_assistant_message="It is Bruno."
    )
    assert asyncio.run(hooks["Stop"][0].hooks[0](event, None, {"signal": None})) == {}
    assert brain.recall("Bruno", k=1)[0].memory.actor == "assistant"


def test_an_entry_that_is_sent_twice_is_kept_once_and_found_by_recall(brain):
    key = {"project_key": "pets", "session_id": "one"}
    entry = {"type": "user", "uuid": "1", "message": {"role": "user", "content": "my dog is called Bruno"}}
    store = BrainSessionStore(brain)
    asyncio.run(store.append(key, [entry, {"type": "title", "title": "dogs"}]))
    asyncio.run(store.append(key, [entry, entry]))
    assert asyncio.run(store.load(key)) == [entry, {"type": "title", "title": "dogs"}]
    assert brain.recall("dog", k=1)[0].text == "my dog is called Bruno"
