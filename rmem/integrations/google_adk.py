"""The memory service of Google's Agent Development Kit on a Brain: each event of a session is a memory.

from rmem.integrations.google_adk import BrainMemoryService
runner = Runner(agent=agent, memory_service=BrainMemoryService("memories.db"), …)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..annotations import Mode
from ..brain import Brain
from ..extras import require
from ..models import Hit
from .common import id_of
from .turns import Turn, Turns

require("google-adk", "rmem.integrations.google_adk")

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse  # noqa: E402
from google.adk.memory.memory_entry import MemoryEntry  # noqa: E402
from google.genai.types import Content  # noqa: E402

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

EVENT, DELETED = "adk_event", "adk_deleted"
"""Types of memories: an event or an added memory, and the tombstone of a deleted one, which keeps it deleted when its
session is added again."""


class BrainMemoryService(BaseMemoryService):
    """Memories of the users of ADK's apps in `brain`, a Brain or its address.

    A search returns the best `k` of one user of one app; `mode="lexical"` finds by words alone, as ADK's own service
    does. A session may be added repeatedly: its events replace their former versions, except deleted ones.
    """

    def __init__(
        self,
        brain: Brain | str | Path | None = None,
        *,
        agent: str = "google-adk",
        k: int = 10,
        min_relevance: float | None = None,
        mode: Mode = "hybrid",
    ) -> None:
        self._turns = Turns(brain, EVENT, agent=agent, k=k)
        self._min_relevance, self._mode = min_relevance, mode
        self.brain = self._turns.brain

    async def add_session_to_memory(self, session: Session) -> None:
        """Store all events of a session."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events that have words; `custom_metadata` is returned with each of them."""
        entries = [
            MemoryEntry(
                content=event.content,
                id=event.id or None,
                author=event.author,
                timestamp=datetime.fromtimestamp(event.timestamp).isoformat(),
                custom_metadata=dict(custom_metadata or {}),
            )
            for event in events
            if event.content and event.content.parts
        ]
        whens = [event.timestamp for event in events if event.content and event.content.parts]
        await asyncio.to_thread(self._keep, app_name, user_id, session_id, entries, whens)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories as given; `custom_metadata` is added to that of each."""
        entries = [
            entry.model_copy(update={"custom_metadata": {**entry.custom_metadata, **(custom_metadata or {})}})
            for entry in memories
        ]
        await asyncio.to_thread(self._keep, app_name, user_id, None, entries, [None] * len(entries))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the memories that best answer a question, best first."""
        hits = await asyncio.to_thread(
            self._turns.recall,
            query,
            min_relevance=self._min_relevance,
            mode=self._mode,
            app=app_name,
            user=user_id,
        )
        return SearchMemoryResponse(memories=[self._entry(hit) for hit in hits])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory of this user permanently; do nothing if there is none."""
        if memory_id:
            await asyncio.to_thread(self._delete, app_name, user_id, memory_id)

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        self._turns.close()

    def _keep(
        self,
        app: str,
        user: str,
        session: str | None,
        entries: Sequence[MemoryEntry],
        whens: Iterable[float | None],
    ) -> None:
        values = [entry.model_dump(mode="json", exclude_none=True) for entry in entries]
        ids = [
            self._id_of(app, user, entry.id or json.dumps(value)) for entry, value in zip(entries, values, strict=True)
        ]
        deleted = {memory.id for memory in self.brain.get_many(ids) if memory is not None and memory.type == DELETED}
        turns = [
            Turn(entry.author or "user", _words(entry.content), value, key, when)
            for entry, value, key, when in zip(entries, values, ids, whens, strict=True)
            if key not in deleted and _words(entry.content)
        ]
        self._turns.add(turns, session, app=app, user=user)

    def _id_of(self, app: str, user: str, key: str) -> str:
        return id_of("adk", self._turns.agent, app, user, key)

    def _entry(self, hit: Hit) -> MemoryEntry:
        entry = MemoryEntry.model_validate(self._turns.value(hit.memory))
        return entry if entry.id else entry.model_copy(update={"id": hit.id})

    def _delete(self, app: str, user: str, memory_id: str) -> None:
        scope = {"app": app, "user": user}
        for memory in self.brain.get_many([self._id_of(app, user, memory_id), memory_id]):
            if memory is not None and memory.type == EVENT and scope.items() <= memory.metadata.items():
                self.brain.remember(
                    "deleted", id=memory.id, agent=memory.agent, type=DELETED, importance=0, metadata=scope
                )


def _words(content: Content) -> str:
    return " ".join(part.text for part in content.parts or () if part.text)
