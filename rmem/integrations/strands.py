"""A memory store for Strands on a Brain: each content is a memory, and a search is a recall.

from rmem.integrations.strands import BrainMemoryStore
agent = Agent(memory_manager=MemoryManager(stores=[BrainMemoryStore("memories.db")]))
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from ..brain import Brain
from ..extras import require
from .turns import Turn, Turns

require("strands", "rmem.integrations.strands")

from strands.memory.extraction.types import ExtractionConfig  # noqa: E402
from strands.memory.types import AddMessagesContext, MemoryEntry, MemoryStore, Metadata, SearchOptions  # noqa: E402
from strands.types.content import Message  # noqa: E402

CONTENT = "strands_memory"
"""The type of these memories."""


class BrainMemoryStore(MemoryStore):
    """Memories of one user under the store's name, in `brain`, a Brain or its address.

    It accepts single contents and whole messages; with `extraction=True` Strands passes it the conversation. In an
    entry of a search, metadata["score"] is the probability that it answers.
    """

    def __init__(
        self,
        brain: Brain | str | Path | None = None,
        *,
        name: str = "rmem",
        user: str = "default",
        description: str | None = "What was said in earlier conversations.",
        max_search_results: int = 5,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
        min_relevance: float | None = None,
        agent: str = "strands",
    ) -> None:
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction
        self.user = user
        self._min_relevance = min_relevance
        self._turns = Turns(brain, CONTENT, agent=agent, k=max_search_results)
        self.brain = self._turns.brain

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return the entries that best answer, best first."""
        most = (options or {}).get("max_search_results")
        hits = await asyncio.to_thread(
            self._turns.recall, query, most, None, self._min_relevance, store=self.name, user=self.user
        )
        return [
            MemoryEntry(
                content=hit.text,
                store_name=self.name,
                metadata={**(self._turns.value(hit.memory) or {}), "id": hit.id, "score": hit.relevance},
            )
            for hit in hits
        ]

    async def add(self, content: str, metadata: Metadata | None = None) -> Any:
        """Store one content; `metadata` is returned with it."""
        return await self._keep([Turn("assistant", content, metadata)])

    async def add_messages(self, messages: list[Message], context: AddMessagesContext | None = None) -> Any:
        """Store each message that has words as a memory."""
        spoken = [(message["role"], _words(message)) for message in messages]
        return await self._keep([Turn(role, words, {"role": role}) for role, words in spoken if words])

    async def _keep(self, turns: list[Turn]) -> list[str]:
        kept = await asyncio.to_thread(self._turns.add, turns, None, store=self.name, user=self.user)
        return [memory.id for memory in kept]

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        self._turns.close()


def _words(message: Message) -> str:
    return "\n".join(block["text"] for block in message["content"] if block.get("text"))
