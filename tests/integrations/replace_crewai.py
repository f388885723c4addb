"""A plugin of pytest: BrainStorage in the place of CrewAI's storages, with the constructors of those. Nothing of
LanceDB or Qdrant is used."""

from __future__ import annotations

import importlib.machinery
import sys
from types import ModuleType
from typing import Any

import crewai.memory.storage.lancedb_storage

from rmem.integrations.crewai import BrainStorage


class Storage(BrainStorage):
    def __init__(self, path: Any = None, vector_dim: int | None = None, **options: Any) -> None:
        super().__init__(":memory:" if path is None else f"{path}.db")


def _stub(name: str, **names: Any) -> None:
    module = ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__dict__.update(names)
    sys.modules[name] = module


crewai.memory.storage.lancedb_storage.LanceDBStorage = Storage  # type: ignore[misc, assignment]
_stub("qdrant_edge")
_stub("crewai.memory.storage.qdrant_edge_storage", QdrantEdgeStorage=Storage)
