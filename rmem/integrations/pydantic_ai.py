"""Pydantic AI on a Brain: tools with which a model remembers and recalls, and a store for whole conversations.

from rmem.integrations.pydantic_ai import BrainConversationStore, memory_toolset
agent = Agent(model, toolsets=[memory_toolset("memories.db")])
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..brain import Brain
from ..errors import NotFoundError
from ..extras import require
from ..models import Memory
from .common import id_of, open_brain
from .tools import memory_functions
from .turns import Turn, Turns

require("pydantic-ai", "rmem.integrations.pydantic_ai")

from pydantic import TypeAdapter  # noqa: E402
from pydantic_ai.conversation_store import (  # noqa: E402
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: E402
from pydantic_ai.toolsets import FunctionToolset  # noqa: E402

RECORD, ENTRY = "pydantic_ai_conversation", "pydantic_ai_message"
"""Types of memories: the record of a conversation, and a message."""

_RECORDS: TypeAdapter[ConversationRecord] = TypeAdapter(ConversationRecord)


def memory_toolset(
    brain: Brain | str | Path | None = None, *, user: str = "default", agent: str = "pydantic-ai", k: int = 5
) -> FunctionToolset[Any]:
    """Make a toolset with `remember` and `recall` for one user."""
    return FunctionToolset(list(memory_functions(brain, user=user, agent=agent, k=k)), id="rmem")


class BrainConversationStore(ConversationStore):
    """Conversations in `brain`, a Brain or its address; each message is a memory.

    A save raises ConversationConflict if the conversation was changed meanwhile. Messages of a deleted conversation are
    deleted unless another conversation, such as a fork, still contains them.
    """

    def __init__(self, brain: Brain | str | Path | None = None, *, agent: str = "pydantic-ai") -> None:
        self.brain, self._owned = open_brain(brain)
        self._entries = Turns(self.brain, ENTRY, agent=agent)
        self._records = Turns(self.brain, RECORD, agent=agent)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        held = await asyncio.to_thread(self.brain.get, self._id_of(conversation_id))
        return None if held is None else self._record(held)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        chosen: dict[str, Any] = {} if scope is None else {"scope": scope}
        held = await asyncio.to_thread(self._records.memories, **chosen)
        records = sorted(map(self._record, held), key=lambda record: record.updated_at, reverse=True)
        return records[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        await asyncio.to_thread(self._write, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        await asyncio.to_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        held = await asyncio.to_thread(self.brain.get, self._entry_id(entry_id))
        if held is None:
            raise KeyError(entry_id)
        return self._entry(held)

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        if self._owned:
            self.brain.close()

    def _id_of(self, conversation_id: str) -> str:
        return id_of("pydantic-ai", self._records.agent, conversation_id)

    def _entry_id(self, entry_id: str) -> str:
        return id_of("pydantic-ai-entry", self._entries.agent, entry_id)

    def _record(self, memory: Memory) -> ConversationRecord:
        return _RECORDS.validate_python(self._records.value(memory))

    def _entry(self, memory: Memory) -> ConversationEntry:
        value = self._entries.value(memory)
        (message,) = ModelMessagesTypeAdapter.validate_python([value["message"]])
        return ConversationEntry(id=value["id"], parent_id=value["parent_id"], message=message)

    def _write(self, record: ConversationRecord, new: Sequence[ConversationEntry], expected: str | None) -> None:
        conflict = ConversationConflict(record.conversation_id)
        key = self._id_of(record.conversation_id)
        held = self.brain.get(key)
        if (None if held is None else self._record(held).revision) != expected:
            raise conflict
        if not self._has(record.head_id, new):
            raise conflict
        entries = self._entries.add([self._turn(entry) for entry in new], record.conversation_id)
        value = _RECORDS.dump_python(record, mode="json")
        scope = {} if record.scope is None else {"scope": record.scope}
        if held is None:
            text = f"conversation {record.conversation_id}"
            self._records.add([Turn("conversation", text, value, key)], record.conversation_id, **scope)
            return

        def unchanged(memory: Memory) -> None:
            if self._record(memory).revision != expected:
                raise conflict

        try:
            self.brain.update(key, only_if=unchanged, metadata={**scope, "value": json.dumps(value)})
        except (ConversationConflict, NotFoundError):
            for entry in entries:
                self.brain.forget(entry.id)
            raise conflict from None

    def _has(self, entry_id: str | None, new: Sequence[ConversationEntry]) -> bool:
        known = entry_id is None or entry_id in {entry.id for entry in new}
        return known or self.brain.get(self._entry_id(str(entry_id))) is not None

    def _delete(self, conversation_id: str, expected: str) -> None:
        held = self.brain.get(self._id_of(conversation_id))
        if held is None or self._record(held).revision != expected or not self.brain.forget(held.id):
            raise ConversationConflict(conversation_id)
        entries = {entry.id: entry for entry in map(self._entry, self._entries.memories())}
        others = map(self._record, self._records.memories())
        reachable: set[str] = set().union(*(self._chain(record, entries) for record in others))
        for entry_id in self._chain(self._record(held), entries) - reachable:
            self.brain.forget(self._entry_id(entry_id))

    @staticmethod
    def _chain(record: ConversationRecord, entries: dict[str, ConversationEntry]) -> set[str]:
        """Return the ids of the entries of a conversation, on all of its branches."""
        reached: set[str] = set()
        for tip in [record.head_id, *record.branches]:
            while tip is not None and tip in entries and tip not in reached:
                reached.add(tip)
                tip = entries[tip].parent_id
        return reached

    def _turn(self, entry: ConversationEntry) -> Turn:
        (value,) = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")
        contents = [part.get("content") for part in value["parts"]]
        pieces = [piece for content in contents for piece in (content if isinstance(content, list) else [content])]
        words = "\n".join(piece for piece in pieces if isinstance(piece, str))
        whole = {"id": entry.id, "parent_id": entry.parent_id, "message": value}
        return Turn(entry.message.kind, words, whole, self._entry_id(entry.id))
