"""Microsoft's Agent Framework on a Brain: a context provider and a history provider.

from rmem.integrations.agent_framework import BrainContextProvider
agent = Agent(client, context_providers=[BrainContextProvider("memories.db", user="ann")])
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..brain import Brain
from ..extras import require
from .turns import Turn, Turns, as_prompt

require("agent-framework", "rmem.integrations.agent_framework")

from agent_framework import AgentSession, ContextProvider, HistoryProvider, Message, SessionContext  # noqa: E402

REMEMBERED, MESSAGE = "agent_framework_memory", "agent_framework_message"
"""Types of memories: what was said in runs, and the history of a session."""

_SPOKEN = ("user", "assistant")


class BrainContextProvider(ContextProvider):
    """Add memories that answer the user's messages to the context, and remember what user and model say.

    `brain` is a Brain or its address. A `user` sees only their own memories. Memories of other sessions carry the ids
    of those sessions in the attribution of the message.
    """

    def __init__(
        self,
        brain: Brain | str | Path | None = None,
        *,
        user: str = "default",
        source_id: str = "rmem",
        agent: str = "agent-framework",
        k: int = 5,
        min_relevance: float | None = None,
    ) -> None:
        super().__init__(source_id)
        self.user = user
        self._min_relevance = min_relevance
        self._turns = Turns(brain, REMEMBERED, agent=agent, k=k)
        self.brain = self._turns.brain

    async def before_run(
        self, *, agent: Any, session: AgentSession | None, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the memories that answer the input as one message."""
        question = "\n".join(message.text for message in context.input_messages if message.text)
        hits = await asyncio.to_thread(self._turns.recall, question, min_relevance=self._min_relevance, user=self.user)
        if hits:
            origins = [hit.memory.session for hit in hits if hit.memory.session not in (None, context.session_id)]
            message = Message(role="user", contents=[as_prompt(hits)])
            context.extend_messages(self, [message], origin_session_ids=[str(origin) for origin in origins] or None)

    async def after_run(
        self, *, agent: Any, session: AgentSession | None, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Remember the input and the answer."""
        answered = context.response.messages if context.response else []
        turns = _turns(
            message for message in [*context.input_messages, *answered] if message.text and message.role in _SPOKEN
        )
        await asyncio.to_thread(self._turns.add, turns, context.session_id, user=self.user)

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        self._turns.close()


class BrainHistoryProvider(HistoryProvider):
    """The messages of sessions, each a memory with the session's id; `brain` is a Brain or its address.

    Further options, such as `store_inputs=False`, are those of HistoryProvider.
    """

    def __init__(
        self,
        brain: Brain | str | Path | None = None,
        *,
        source_id: str = "rmem_history",
        agent: str = "agent-framework",
        **options: Any,
    ) -> None:
        super().__init__(source_id, **options)
        self._turns = Turns(brain, MESSAGE, agent=agent)
        self.brain = self._turns.brain

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return all messages of a session, oldest first."""
        if session_id is None:
            return []
        return [Message.from_dict(value) for value in await asyncio.to_thread(self._turns.read, session_id)]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Store messages in one transaction; do nothing without a session."""
        if session_id is not None:
            await asyncio.to_thread(self._turns.add, _turns(messages), session_id)

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        self._turns.close()


def _turns(messages: Iterable[Message]) -> list[Turn]:
    return [Turn(str(message.role), message.text or "", message.to_dict()) for message in messages]
