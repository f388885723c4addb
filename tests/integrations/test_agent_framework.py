"""Microsoft's Agent Framework: providers in runs of a real agent. It publishes no tests for providers of others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="agent-framework-core is not installed: make test-frameworks")

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, Message

from rmem import Brain
from rmem.integrations.agent_framework import BrainContextProvider, BrainHistoryProvider


class Echo(BaseChatClient):
    """A client that answers with all that it was given."""

    async def _inner_get_response(self, *, messages: list[Message], **options: Any) -> ChatResponse:
        heard = " | ".join(message.text for message in messages)
        return ChatResponse(messages=[Message(role="assistant", contents=[heard])])


@pytest.fixture
def brain():
    with Brain(":memory:") as brain:
        yield brain


def test_an_agent_is_told_what_was_said_in_another_session(brain):
    async def run() -> tuple[str, Any]:
        agent = Agent(Echo(), context_providers=[BrainContextProvider(brain, user="ann", k=1)])
        await agent.run("my dog is called Bruno", session=agent.create_session(session_id="monday"))
        session = agent.create_session(session_id="tuesday")
        other = Agent(Echo(), context_providers=[BrainContextProvider(brain, user="bob", k=1)])
        told = await agent.run("what is my dog called?", session=session)
        return told.text, (await other.run("what is my dog called?")).text

    told, other = asyncio.run(run())
    assert told.startswith("Relevant memories:\n- my dog is called Bruno")
    assert other == "what is my dog called?"


def test_memories_of_other_sessions_are_attributed_to_them(brain):
    from agent_framework import SessionContext

    provider = BrainContextProvider(brain)
    first = SessionContext(session_id="monday", input_messages=[Message(role="user", contents=["my dog Bruno"])])
    asyncio.run(provider.after_run(agent=None, session=None, context=first, state={}))
    second = SessionContext(session_id="tuesday", input_messages=[Message(role="user", contents=["dog?"])])
    asyncio.run(provider.before_run(agent=None, session=None, context=second, state={}))
    (message,) = second.get_messages()
    assert message.additional_properties["_attribution"]["origin_session_ids"] == ["monday"]


def test_a_session_goes_on_in_the_next_process(tmp_path):
    async def run(text: str) -> str:
        with Brain(tmp_path / "a.db") as brain:
            agent = Agent(Echo(), context_providers=[BrainHistoryProvider(brain)])
            return (await agent.run(text, session=agent.create_session(session_id="one"))).text

    asyncio.run(run("first"))
    assert asyncio.run(run("second")) == "first | first | second"


def test_messages_come_back_exactly(brain):
    given = [
        Message(role="user", contents=["hello"], author_name="ann"),
        Message(role="assistant", contents=[Content.from_function_call("1", "weather", arguments={"city": "Oslo"})]),
        Message(role="tool", contents=[Content.from_function_result("1", result="rain")]),
    ]
    history = BrainHistoryProvider(brain)
    asyncio.run(history.save_messages("one", given))
    read = asyncio.run(history.get_messages("one"))
    assert [message.to_dict() for message in read] == [message.to_dict() for message in given]
    assert asyncio.run(history.get_messages("two")) == []
