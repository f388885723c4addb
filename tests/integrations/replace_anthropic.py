"""A plugin of pytest: our memory tools in the place of the file system tools of Anthropic's SDK. Their tests look into
the folder `base_path`; here that is a folder into which all files are written when it is asked for."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anthropic.lib.tools._beta_builtin_memory_tool as theirs
import anyio

from rmem import Brain
from rmem.integrations.anthropic import BrainAsyncMemoryTool, BrainMemoryTool


def _written_out(brain: Brain) -> Path:
    folder = Path(tempfile.mkdtemp())
    (folder / "memories").mkdir()
    for memory in brain.memories(limit=None):
        path = folder / memory.contents["path"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(memory.contents.get("blank", memory.text).encode())
    return folder


class MemoryTool(BrainMemoryTool):
    def __init__(self, base_path: str) -> None:
        super().__init__(":memory:")

    @property
    def base_path(self) -> Path:
        return _written_out(self.brain)

    @property
    def memory_root(self) -> Path:
        return self.base_path / "memories"


class AsyncMemoryTool(BrainAsyncMemoryTool):
    def __init__(self, base_path: str) -> None:
        super().__init__(":memory:")

    @property
    def base_path(self) -> Path:
        return _written_out(self.brain)

    @property
    def memory_root(self) -> anyio.Path:
        return anyio.Path(self.base_path / "memories")


theirs.BetaLocalFilesystemMemoryTool = MemoryTool  # type: ignore[misc, assignment]
theirs.BetaAsyncLocalFilesystemMemoryTool = AsyncMemoryTool  # type: ignore[misc, assignment]
