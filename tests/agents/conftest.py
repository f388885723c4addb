"""A real AgentMemoryAPI on a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rmem.agents import AgentMemoryAPI, MemoryConfig


@pytest.fixture
def new_api(tmp_path: Path) -> Iterator[Callable[..., AgentMemoryAPI]]:
    """A function that makes an API; the same name gives the same file."""
    with ExitStack() as stack:

        def make(name: str = "agents", **options: Any) -> AgentMemoryAPI:
            ltm = {"path": tmp_path / f"{name}.db", "durability": "normal"}
            return stack.enter_context(AgentMemoryAPI(MemoryConfig(ltm_config=ltm, **options)))

        yield make


@pytest.fixture
def api(new_api: Callable[..., AgentMemoryAPI]) -> AgentMemoryAPI:
    return new_api()
