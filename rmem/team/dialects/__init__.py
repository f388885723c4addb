"""Translate each coding agent's events, and the context that goes back to it: one module for each agent, with the same
two functions. Only light modules are imported; a hook has no time."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

from ..events import AGENTS, Event


class AgentDialect(Protocol):
    """The interface of each module of this package."""

    def read(self, name: str, payload: dict[str, Any]) -> Event | None:
        """Convert a payload to an Event; None if it is not relevant."""

    def answer(self, name: str, context: str) -> str:
        """Format `context` as the agent expects it on standard output; empty if it accepts none."""


def dialect(agent: str) -> AgentDialect:
    if agent not in AGENTS:
        raise ValueError(f"agent must be one of {', '.join(AGENTS)}, got {agent!r}")
    return cast(AgentDialect, import_module(f"{__name__}.{agent.replace('-', '_')}"))
