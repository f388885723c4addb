"""A plugin of pytest: BrainMemory in the place of AutoGen's ListMemory and ChromaDBVectorMemory, with the constructors
of these. Nothing of ChromaDB is used, so that it need not be installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import autogen_core.memory
import autogen_ext

from rmem import Brain
from rmem.integrations.autogen import BrainMemory


class ListMemory(BrainMemory):
    def __init__(self, name: str | None = None, memory_contents: Any = None) -> None:
        super().__init__(Brain(":memory:"), name=name or "default", k=100)


class ChromaDBVectorMemory(BrainMemory):
    def __init__(self, config: Any) -> None:
        self.collection_name = config.collection_name
        least = config.score_threshold
        super().__init__(config.persistence_path + ".db", name=config.collection_name, k=config.k, min_relevance=least)

    async def reset(self) -> None:
        await self.clear()


def _chroma() -> ModuleType:
    path = Path(autogen_ext.__path__[0]) / "memory" / "chromadb" / "_chroma_configs.py"
    spec = importlib.util.spec_from_file_location("autogen_ext.memory.chromadb", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.ChromaDBVectorMemory = ChromaDBVectorMemory  # type: ignore[attr-defined]
    return module


autogen_core.memory.ListMemory = ListMemory  # type: ignore[misc, assignment]
sys.modules.setdefault("chromadb", ModuleType("chromadb"))
_chroma()
