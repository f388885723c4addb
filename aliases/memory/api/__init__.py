"""`from memory.api import AgentMemoryAPI`, as the document writes it."""

from rmem.agents import *  # noqa: F403
from rmem.agents import __all__ as _agents
from rmem.agents.types import *  # noqa: F403
from rmem.agents.types import __all__ as _types

__all__ = [*_agents, *_types]
