"""Each framework behind two functions, so that one contract can be tested on all of them: `keep` a sentence in a scope
of the framework, by its own interface, and `find` sentences there."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from rmem import Brain


class Adapter(NamedTuple):
    keep: Callable[[str, str], object]
    find: Callable[[str, str], list[str]]


def google_adk(brain: Brain) -> Adapter:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session
    from google.genai.types import Content, Part

    from rmem.integrations.google_adk import BrainMemoryService

    service = BrainMemoryService(brain)

    def keep(user: str, text: str) -> None:
        event = Event(author="user", content=Content(role="user", parts=[Part(text=text)]))
        session = Session(id=f"session of {user}", app_name="app", user_id=user, events=[event])
        asyncio.run(service.add_session_to_memory(session))

    def find(user: str, query: str) -> list[str]:
        found = asyncio.run(service.search_memory(app_name="app", user_id=user, query=query))
        return [entry.content.parts[0].text for entry in found.memories]

    return Adapter(keep, find)


def llama_index(brain: Brain) -> Adapter:
    from llama_index.core.llms import ChatMessage

    from rmem.integrations.llama_index import BrainMemoryBlock

    block = BrainMemoryBlock(brain=brain, this_session_only=True)

    def keep(session: str, text: str) -> None:
        asyncio.run(
            block.aput([ChatMessage(role="user", content=text)], from_short_term_memory=True, session_id=session)
        )

    def find(session: str, question: str) -> list[str]:
        told = asyncio.run(block.aget([ChatMessage(role="user", content=question)], session_id=session))
        return told.splitlines()[1:]

    return Adapter(keep, find)


def autogen(brain: Brain) -> Adapter:
    from autogen_core.memory import MemoryContent, MemoryMimeType

    from rmem.integrations.autogen import BrainMemory

    def keep(name: str, text: str) -> None:
        asyncio.run(BrainMemory(brain, name=name).add(MemoryContent(content=text, mime_type=MemoryMimeType.TEXT)))

    def find(name: str, question: str) -> list[str]:
        return [str(one.content) for one in asyncio.run(BrainMemory(brain, name=name).query(question)).results]

    return Adapter(keep, find)


def agent_framework(brain: Brain) -> Adapter:
    from agent_framework import AgentSession, Message, SessionContext

    from rmem.integrations.agent_framework import BrainContextProvider

    def context_of(text: str) -> SessionContext:
        return SessionContext(session_id="one", input_messages=[Message(role="user", contents=[text])])

    def keep(user: str, text: str) -> None:
        provider = BrainContextProvider(brain, user=user)
        asyncio.run(provider.after_run(agent=None, session=AgentSession(), context=context_of(text), state={}))

    def find(user: str, question: str) -> list[str]:
        context = context_of(question)
        provider = BrainContextProvider(brain, user=user)
        asyncio.run(provider.before_run(agent=None, session=AgentSession(), context=context, state={}))
        return [line for message in context.get_messages() for line in message.text.splitlines()[1:]]

    return Adapter(keep, find)


def pydantic_ai(brain: Brain) -> Adapter:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from rmem.integrations.pydantic_ai import memory_toolset

    def called(user: str, tool: str, arguments: dict[str, str]) -> str:
        def model(messages: list[Any], info: Any) -> ModelResponse:
            answered = [part for one in messages for part in one.parts if part.part_kind == "tool-return"]
            return ModelResponse([TextPart(answered[0].content) if answered else ToolCallPart(tool, arguments)])

        agent = Agent(FunctionModel(model), toolsets=[memory_toolset(brain, user=user)])
        return str(agent.run_sync("go").output)

    return Adapter(
        lambda user, text: called(user, "remember", {"text": text}),
        lambda user, question: called(user, "recall", {"question": question}).splitlines(),
    )


def smolagents(brain: Brain) -> Adapter:
    from rmem.integrations.smolagents import memory_tools

    return Adapter(
        lambda user, text: memory_tools(brain, user=user)[0](text=text),
        lambda user, question: str(memory_tools(brain, user=user)[1](question=question)).splitlines(),
    )


def crewai(brain: Brain) -> Adapter:
    from crewai.memory.unified_memory import Memory

    from rmem.integrations.crewai import BrainStorage

    storage = BrainStorage(brain)
    memory = Memory(storage=storage, embedder=storage.embed)

    def keep(scope: str, text: str) -> None:
        memory.remember(text, scope=f"/{scope}", categories=["said"], importance=0.5, metadata={})

    def find(scope: str, question: str) -> list[str]:
        return [match.record.content for match in memory.recall(question, scope=f"/{scope}", depth="shallow")]

    return Adapter(keep, find)


def strands(brain: Brain) -> Adapter:
    from strands.memory import MemoryManager

    from rmem.integrations.strands import BrainMemoryStore

    def manager(user: str) -> MemoryManager:
        return MemoryManager(stores=[BrainMemoryStore(brain, user=user)])

    return Adapter(
        lambda user, text: asyncio.run(manager(user).add(text)),
        lambda user, question: [entry.content for entry in asyncio.run(manager(user).search(question))],
    )


def langgraph(brain: Brain) -> Adapter:
    from rmem.integrations.langgraph import BrainStore

    store = BrainStore(brain)

    def find(user: str, query: str) -> list[str]:
        return [item.value["text"] for item in store.search(("users", user), query=query)]

    return Adapter(lambda user, text: store.put(("users", user), text, {"text": text}), find)


def langchain(brain: Brain) -> Adapter:
    from rmem.integrations.langchain import BrainVectorStore

    def find(collection: str, query: str) -> list[str]:
        return [one.page_content for one in BrainVectorStore(brain, collection=collection).similarity_search(query)]

    return Adapter(lambda collection, text: BrainVectorStore(brain, collection=collection).add_texts([text]), find)


def openai_agents(brain: Brain) -> Adapter:
    from rmem.integrations.openai_agents import BrainSession

    def find(session: str, question: str) -> list[str]:
        items = {item["content"] for item in asyncio.run(BrainSession(session, brain).get_items())}
        return [hit.text for hit in brain.recall(question, where={"session": session}) if hit.text in items]

    return Adapter(
        lambda session, text: asyncio.run(BrainSession(session, brain).add_items([{"role": "user", "content": text}])),
        find,
    )


def anthropic(brain: Brain) -> Adapter:
    from rmem.integrations.anthropic import BrainMemoryTool

    def keep(agent: str, text: str) -> None:
        path = f"/memories/{text.replace(' ', '-')}.md"
        BrainMemoryTool(brain, agent=agent).call({"command": "create", "path": path, "file_text": text})

    def find(agent: str, question: str) -> list[str]:
        listed = str(BrainMemoryTool(brain, agent=agent).call({"command": "view", "path": "/memories"}))
        hits = brain.recall(question, agent=agent)
        return [hit.text for hit in hits if hit.text.replace(" ", "-") in listed]

    return Adapter(keep, find)


def claude_agent_sdk(brain: Brain) -> Adapter:
    from mcp import Client

    from rmem.integrations.claude_agent_sdk import memory_server

    async def called(user: str, tool: str, **arguments: str) -> str:
        async with Client(memory_server(brain, user=user)["instance"]) as client:
            return str((await client.call_tool(tool, arguments)).content[0].text)

    return Adapter(
        lambda user, text: asyncio.run(called(user, "remember", text=text)),
        lambda user, question: asyncio.run(called(user, "recall", question=question)).splitlines(),
    )


ADAPTERS: dict[str, tuple[str, Callable[[Brain], Adapter]]] = {  # by distribution: the module it is known by
    "agent-framework-core": ("agent_framework", agent_framework),
    "anthropic": ("anthropic", anthropic),
    "autogen-core": ("autogen_core", autogen),
    "claude-agent-sdk": ("claude_agent_sdk", claude_agent_sdk),
    "crewai": ("crewai", crewai),
    "google-adk": ("google.adk", google_adk),
    "langchain-core": ("langchain_core", langchain),
    "langgraph": ("langgraph", langgraph),
    "llama-index-core": ("llama_index.core", llama_index),
    "openai-agents": ("agents.memory", openai_agents),
    "pydantic-ai-slim": ("pydantic_ai", pydantic_ai),
    "smolagents": ("smolagents", smolagents),
    "strands-agents": ("strands", strands),
}


def is_installed(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def adapter(name: str, brain: Any) -> Adapter:
    return ADAPTERS[name][1](brain)
