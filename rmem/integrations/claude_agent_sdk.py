"""The Claude Agent SDK on a Brain: memory tools, hooks that remember and recall, and a store of session transcripts.

from rmem.integrations.claude_agent_sdk import BrainSessionStore, memory_hooks, memory_server
options = ClaudeAgentOptions(mcp_servers={"rmem": memory_server(brain)}, hooks=memory_hooks(brain),
                             allowed_tools=["mcp__rmem__remember", "mcp__rmem__recall"])
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ..brain import Brain
from ..extras import require
from ..models import Memory
from .common import id_of
from .tools import memory_functions
from .turns import Turn, Turns, as_prompt

require("claude-agent-sdk", "rmem.integrations.claude_agent_sdk")

from claude_agent_sdk import HookMatcher, SdkMcpTool, create_sdk_mcp_server, tool  # noqa: E402
from claude_agent_sdk.types import (  # noqa: E402
    McpSdkServerConfig,
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
)

SAID, ENTRY = "claude_agent_turn", "claude_agent_entry"
"""Types of memories: what user and Claude said, and a line of a session's transcript."""


def memory_tools(
    brain: Brain | str | Path | None = None, *, user: str = "default", agent: str = "claude-agent-sdk", k: int = 5
) -> list[SdkMcpTool[Any]]:
    """Make the tools `remember` and `recall` for one user."""
    remember, recall = memory_functions(brain, user=user, agent=agent, k=k)
    return [_tool(remember, "text"), _tool(recall, "question")]


def memory_server(brain: Brain | str | Path | None = None, **options: Any) -> McpSdkServerConfig:
    """Make an MCP server in this process with the memory tools; `options` are those of `memory_tools`."""
    return create_sdk_mcp_server("rmem", tools=memory_tools(brain, **options))


def _tool(function: Callable[[str], str], argument: str) -> SdkMcpTool[Any]:
    about = " ".join((function.__doc__ or "").partition("Args:")[0].split())

    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        result = await asyncio.to_thread(function, arguments[argument])
        return {"content": [{"type": "text", "text": result}]}

    made: SdkMcpTool[Any] = tool(function.__name__, about, {argument: str})(call)
    return made


def memory_hooks(
    brain: Brain | str | Path | None = None,
    *,
    user: str = "default",
    agent: str = "claude-agent-sdk",
    k: int = 5,
    min_relevance: float | None = 0.5,
) -> dict[Any, list[HookMatcher]]:
    """Make hooks that add memories to a prompt, and remember what user and Claude say in a session."""
    turns = Turns(brain, SAID, agent=agent, k=k)

    async def on_prompt(event: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        prompt, session = event["prompt"], event["session_id"]
        hits = await asyncio.to_thread(turns.recall, prompt, min_relevance=min_relevance, user=user)
        await asyncio.to_thread(turns.add, [Turn("user", prompt, None)], session, user=user)
        added = as_prompt(hit for hit in hits if hit.memory.session != session)  # Claude knows this session
        if not added:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": added}}

    async def on_stop(event: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        if answer := event.get("last_assistant_message"):
            await asyncio.to_thread(turns.add, [Turn("assistant", answer, None)], event["session_id"], user=user)
        return {}

    hooks: dict[Any, Callable[..., Awaitable[Any]]] = {"UserPromptSubmit": on_prompt, "Stop": on_stop}
    return {name: [HookMatcher(hooks=[hook])] for name, hook in hooks.items()}


class BrainSessionStore(SessionStore):
    """Transcripts of sessions in `brain`, a Brain or its address, so that another machine can resume them. An entry
    with a uuid is stored once; recall finds it by its words."""

    def __init__(self, brain: Brain | str | Path | None = None, *, agent: str = "claude-agent-sdk") -> None:
        self._turns = Turns(brain, ENTRY, agent=agent)
        self.brain = self._turns.brain

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append entries to a transcript."""
        await asyncio.to_thread(self._append, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all entries in order; None if there are none."""
        entries = await asyncio.to_thread(self._turns.read, key["session_id"], **_scope(key))
        return entries or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project, and when each was last written."""
        held = await asyncio.to_thread(self._turns.memories, project=project_key, subpath="")
        written = {str(memory.session): int(1000 * memory.timestamp) for memory in held}
        return [{"session_id": session, "mtime": mtime} for session, mtime in written.items()]

    async def delete(self, key: SessionKey) -> None:
        """Delete a session with its subpaths, or only the given subpath."""
        scope = _scope(key) if key.get("subpath") else {"project": key["project_key"]}
        await asyncio.to_thread(self._turns.clear, key["session_id"], **scope)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session."""
        scope: dict[str, Any] = {"project": key["project_key"]}
        held = await asyncio.to_thread(self._turns.memories, key["session_id"], **scope)
        return [path for path in dict.fromkeys(memory.contents["subpath"] for memory in held) if path]

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        self._turns.close()

    def _append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        scope = _scope(key)
        place = (self._turns.agent, key["session_id"], *scope.values())
        ids = [id_of("claude-entry", *place, entry["uuid"]) if entry.get("uuid") else None for entry in entries]
        there = {memory.id for memory in self._known(ids) if memory is not None}
        turns = {
            memory_id or f"{at}": Turn(str(entry["type"]), _words(entry), entry, memory_id)
            for at, (entry, memory_id) in enumerate(zip(entries, ids, strict=True))
            if memory_id not in there
        }
        self._turns.add(turns.values(), key["session_id"], **scope)

    def _known(self, ids: list[str | None]) -> list[Memory | None]:
        named = [key for key in ids if key is not None]
        return self.brain.get_many(named) if named else []


def _scope(key: SessionKey) -> dict[str, Any]:
    return {"project": key["project_key"], "subpath": key.get("subpath") or ""}


def _words(entry: Any) -> str:
    """Return the words of an entry; "" for those that are not messages."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        content = "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and part.get("text"))
    return content if isinstance(content, str) else ""
