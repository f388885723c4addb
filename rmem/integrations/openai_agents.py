"""A `Session` of the OpenAI Agents SDK on a Brain: each item of a conversation is a memory.

from rmem.integrations.openai_agents import BrainSession
await Runner.run(agent, "my dog is called Bruno", session=BrainSession("ann", "memories.db"))
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..brain import Brain
from ..extras import require
from .turns import Turn, Turns

require("openai-agents", "rmem.integrations.openai_agents")

from agents.items import TResponseInputItem  # noqa: E402
from agents.memory import SessionSettings  # noqa: E402
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit  # noqa: E402

ITEM = "openai_agents_item"
"""The type of these memories."""


class BrainSession:
    """The items of one conversation in `brain`, a Brain or its address.

    Items are returned exactly as they were given. Messages are found by their words, calls of tools by name and
    arguments.
    """

    def __init__(
        self,
        session_id: str,
        brain: Brain | str | Path | None = None,
        *,
        agent: str = "openai-agents",
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = (
            SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        )
        self._turns = Turns(brain, ITEM, agent=agent, value_field="item")
        self.brain = self._turns.brain

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the latest items, oldest first; all of them without a limit here and in the settings."""
        count = resolve_session_limit(limit, self.session_settings)
        if count is not None and count < 0:
            count = None
        if count == 0:
            return []
        return await asyncio.to_thread(self._turns.read, self.session_id, count)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items in one transaction."""
        await asyncio.to_thread(self._turns.add, [_turn(item) for item in items], self.session_id)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest item and return it; each of several concurrent callers gets another."""
        return await asyncio.to_thread(self._turns.pop, self.session_id)

    async def clear_session(self) -> None:
        """Remove all items."""
        await asyncio.to_thread(self._turns.clear, self.session_id)

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        self._turns.close()


def _turn(item: Mapping[str, Any]) -> Turn:
    return Turn(str(item.get("role") or item.get("type") or "item"), _words(item), item)


def _words(item: Mapping[str, Any]) -> str:
    """Return the words of an item: its text, or the name, arguments and output of a tool."""
    content = item.get("content", item.get("output", item.get("summary")))
    if isinstance(content, list):
        content = "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))
    called = f"{item['name']} {item.get('arguments', '')}" if isinstance(item.get("name"), str) else ""
    return "\n".join(part for part in (called, content) if isinstance(part, str) and part)
