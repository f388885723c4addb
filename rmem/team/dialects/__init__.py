"""Translate each coding agent's events, and the context that goes back to it: one module for each agent, with the same
two functions. Only light modules are imported; a hook has no time."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

from ..events import AGENTS, Event


class Dialect(Protocol):
    """What a module of this package offers."""

    def read(self, name: str, payload: dict[str, Any]) -> Event | None:
        """The event in our words; None for one that tells us nothing."""

    def answer(self, name: str, context: str) -> str:
        """What to print so that the agent takes `context` in; empty where the tool cannot."""


def dialect(agent: str) -> Dialect:
    if agent not in AGENTS:
        raise ValueError(f"agent must be one of {', '.join(AGENTS)}, got {agent!r}")
    return cast(Dialect, import_module(f"{__name__}.{agent.replace('-', '_')}"))
