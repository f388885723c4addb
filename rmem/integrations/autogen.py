"""AutoGen's memory on a Brain: each content is a memory; those that answer the conversation are added to its context.

from rmem.integrations.autogen import BrainMemory
agent = AssistantAgent("helper", model_client=client, memory=[BrainMemory("memories.db")])
"""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any, Self

from ..brain import Brain
from ..errors import ConfigError
from ..extras import require
from ..models import Hit
from .common import to_text
from .turns import Turn, Turns, as_prompt

require("autogen", "rmem.integrations.autogen")

from autogen_core import CancellationToken, Component, Image  # noqa: E402
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult  # noqa: E402
from autogen_core.model_context import ChatCompletionContext  # noqa: E402
from autogen_core.models import SystemMessage  # noqa: E402
from pydantic import BaseModel  # noqa: E402

CONTENT = "autogen_content"
"""The type of these memories."""


class BrainMemoryConfig(BaseModel):
    """The saved configuration of a BrainMemory, without the memories."""

    address: str
    name: str = "memories"
    agent: str = "autogen"
    k: int = 5
    min_relevance: float | None = None


class BrainMemory(Memory, Component[BrainMemoryConfig]):
    """Memories of one name in `brain`, a Brain or its address.

    `query` returns the `k` best; metadata["score"] is the probability that each answers. An empty query returns the
    newest. `update_context` searches by the latest message and adds the hits as a system message.
    """

    component_type = "memory"
    component_provider_override = "rmem.integrations.autogen.BrainMemory"
    component_config_schema = BrainMemoryConfig

    def __init__(
        self,
        brain: Brain | str | Path | None = None,
        *,
        name: str = "memories",
        agent: str = "autogen",
        k: int = 5,
        min_relevance: float | None = None,
    ) -> None:
        self.name = name
        self._min_relevance = min_relevance
        self._given = brain
        self._turns = Turns(brain, CONTENT, agent=agent, k=k)
        self.brain = self._turns.brain

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Store a content of any type."""
        turn = Turn(self.name, _search_text(content), _to_json(content))
        await asyncio.to_thread(self._turns.add, [turn], None, memory=self.name)

    async def query(
        self, query: str | MemoryContent, cancellation_token: CancellationToken | None = None, **kwargs: Any
    ) -> MemoryQueryResult:
        """Return the contents that best answer, best first. `k` and `min_relevance` may be given for this call."""
        question = query if isinstance(query, str) else _search_text(query)
        return MemoryQueryResult(results=await asyncio.to_thread(self._find, question, **kwargs))

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Add the memories that answer the latest message to the context."""
        messages = await model_context.get_messages()
        question = next((message.content for message in reversed(messages) if isinstance(message.content, str)), "")
        hits = await asyncio.to_thread(self._hits, question)
        if hits:
            await model_context.add_message(SystemMessage(content=as_prompt(hits)))
        return UpdateContextResult(memories=MemoryQueryResult(results=[self._content(hit) for hit in hits]))

    async def clear(self) -> None:
        """Remove all memories of this name."""
        await asyncio.to_thread(self._turns.clear, None, memory=self.name)

    async def close(self) -> None:
        """Close the Brain if it was opened here."""
        self._turns.close()

    def _find(self, question: str, k: int | None = None, min_relevance: float | None = None) -> list[MemoryContent]:
        return [self._content(hit) for hit in self._hits(question, k, min_relevance)]

    def _hits(self, question: str, k: int | None = None, min_relevance: float | None = None) -> list[Hit]:
        if not question.strip():
            newest = self._turns.memories(None, k or self._turns.k, memory=self.name)
            return [Hit(memory, 0.0) for memory in newest]
        least = self._min_relevance if min_relevance is None else min_relevance
        return list(self._turns.recall(question, k, None, least, memory=self.name))

    def _content(self, hit: Hit) -> MemoryContent:
        content = _from_json(self._turns.value(hit.memory))
        found = {"id": hit.id, "score": hit.relevance or 0.0}
        return content.model_copy(update={"metadata": {**(content.metadata or {}), **found}})

    def _to_config(self) -> BrainMemoryConfig:
        if isinstance(self._given, Brain):
            raise ConfigError("a BrainMemory can be saved if it was made with an address; this one was given a Brain")
        return BrainMemoryConfig(
            address=self.brain.address,
            name=self.name,
            agent=self._turns.agent,
            k=self._turns.k,
            min_relevance=self._min_relevance,
        )

    @classmethod
    def _from_config(cls, config: BrainMemoryConfig) -> Self:
        return cls(config.address, name=config.name, agent=config.agent, k=config.k, min_relevance=config.min_relevance)


def _search_text(content: MemoryContent) -> str:
    value = content.content
    if isinstance(value, bytes | Image):
        return to_text(content.metadata or {})
    return to_text(value)


def _to_json(content: MemoryContent) -> dict[str, Any]:
    value: Any = content.content
    if isinstance(value, bytes):
        value = {"bytes": base64.b64encode(value).decode()}
    elif isinstance(value, Image):
        value = {"image": value.to_base64()}
    else:
        value = {"plain": value}
    kind = content.mime_type.value if isinstance(content.mime_type, MemoryMimeType) else content.mime_type
    metadata = None if content.metadata is None else json.loads(json.dumps(content.metadata, default=str))
    return {"content": value, "mime_type": kind, "metadata": metadata}


def _from_json(value: dict[str, Any]) -> MemoryContent:
    ((form, held),) = value["content"].items()
    content = Image.from_base64(held) if form == "image" else base64.b64decode(held) if form == "bytes" else held
    kinds = {kind.value for kind in MemoryMimeType}
    kind = MemoryMimeType(value["mime_type"]) if value["mime_type"] in kinds else value["mime_type"]
    return MemoryContent(content=content, mime_type=kind, metadata=value["metadata"])
