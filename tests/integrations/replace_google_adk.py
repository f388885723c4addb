"""A plugin of pytest: BrainMemoryService in the place of Google ADK's InMemoryMemoryService."""

from __future__ import annotations

import google.adk.memory.in_memory_memory_service as replaced

from rmem import Brain
from rmem.integrations.google_adk import BrainMemoryService


class InMemoryMemoryService(BrainMemoryService):
    def __init__(self) -> None:
        super().__init__(Brain(":memory:"), mode="lexical")  # its tests expect nothing where no word matches


replaced.InMemoryMemoryService = InMemoryMemoryService  # type: ignore[misc, assignment]
