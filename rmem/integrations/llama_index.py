"""LlamaIndex's memory on a Brain: a memory block and a chat store.

from rmem.integrations.llama_index import BrainChatStore, BrainMemoryBlock
memory = Memory.from_defaults(session_id="ann", memory_blocks=[BrainMemoryBlock(brain="memories.db")])
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..brain import Brain
from ..extras import require
from .turns import Turn, Turns, as_prompt

require("llama-index", "rmem.integrations.llama_index")

from llama_index.core.base.llms.types import ChatMessage  # noqa: E402
from llama_index.core.bridge.pydantic import Field, PrivateAttr  # noqa: E402
from llama_index.core.memory import BaseMemoryBlock  # noqa: E402
from llama_index.core.storage.chat_store.base import BaseChatStore  # noqa: E402

REMEMBERED, MESSAGE = "llama_index_memory", "llama_index_message"
"""Types of memories: a message that left the short-term memory, and a message of a chat store."""


class BrainMemoryBlock(BaseMemoryBlock[str]):
    """Store messages that leave the short-term memory, and return those that answer the latest messages.

    `brain` is a Brain or its address. With `this_session_only` each session of LlamaIndex sees only its own.
    """

    name: str = Field(default="memories", description="The name of the memory block.")
    brain: Any = Field(default=None, exclude=True, description="A Brain or its address.")
    agent: str = Field(default="llama-index", description="The agent whose memories these are.")
    k: int = Field(default=5, description="How many memories are returned at most.")
    question_messages: int = Field(default=1, ge=1, description="How many of the latest messages form the question.")
    min_relevance: float | None = Field(default=None, description="The least probability that a memory answers.")
    this_session_only: bool = Field(default=False, description="Whether each session sees only its own memories.")
    _turns: Turns = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        self._turns = Turns(self.brain, REMEMBERED, agent=self.agent, k=self.k)
        self.brain = self._turns.brain

    async def _aget(
        self, messages: list[ChatMessage] | None = None, session_id: str | None = None, **block_kwargs: Any
    ) -> str:
        question = "\n".join(message.content or "" for message in (messages or [])[-self.question_messages :])
        session = session_id if self.this_session_only else None
        hits = await asyncio.to_thread(self._turns.recall, question, session=session, min_relevance=self.min_relevance)
        return as_prompt(hits)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        by_session: dict[str | None, list[Turn]] = {}
        for message in messages:
            if message.content:
                session = message.additional_kwargs.get("session_id")
                by_session.setdefault(session, []).append(_turn(message))
        for session, turns in by_session.items():
            await asyncio.to_thread(self._turns.add, turns, session)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Leave out the worst memories; return None if none is left."""
        heading, *lines = content.splitlines()
        left = 4 * tokens_to_truncate  # of four characters each
        while lines and left > 0:
            left -= len(lines.pop())
        return "\n".join([heading, *lines]) if lines else None


class BrainChatStore(BaseChatStore):
    """The messages of chats, each a memory with the chat's key as session. `brain` is a Brain or its address."""

    brain: Any = Field(default=None, exclude=True)
    agent: str = "llama-index"
    _turns: Turns = PrivateAttr()

    def __init__(self, brain: Brain | str | Path | None = None, **options: Any) -> None:
        super().__init__(brain=brain, **options)
        self._turns = Turns(brain, MESSAGE, agent=self.agent)
        self.brain = self._turns.brain

    @classmethod
    def class_name(cls) -> str:
        return "BrainChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace all messages of a chat."""
        self._turns.replace([_turn(message) for message in messages], key)

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Return all messages of a chat, oldest first."""
        return _messages(self._turns.read(key))

    def add_message(self, key: str, message: ChatMessage, idx: int | None = None) -> None:
        """Append a message, or insert it at `idx`."""
        if idx is None:
            self._turns.add([_turn(message)], key)
        else:
            held = self.get_messages(key)
            held.insert(idx, message)
            self.set_messages(key, held)

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Remove a chat; return its messages, or None if there is no such chat."""
        held = self.get_messages(key)
        self._turns.clear(key)
        return held or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Remove the message at `idx` and return it; None if there is none."""
        held = self._turns.memories(key)
        if not -len(held) <= idx < len(held):
            return None
        self._turns.brain.forget(held[idx].id)
        return _messages([self._turns.value(held[idx])])[0]

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Remove the latest message and return it; None if there is none."""
        popped = self._turns.pop(key)
        return None if popped is None else _messages([popped])[0]

    def get_keys(self) -> list[str]:
        """Return the keys of all chats, in the order of their first messages."""
        return list(dict.fromkeys(str(memory.session) for memory in self._turns.memories()))

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        self._turns.close()


def _turn(message: ChatMessage) -> Turn:
    return Turn(message.role.value, message.content or "", message.model_dump(mode="json"))


def _messages(values: Sequence[Any]) -> list[ChatMessage]:
    return [ChatMessage.model_validate(value) for value in values]
