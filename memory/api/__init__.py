"""`from memory.api import AgentMemoryAPI`, as the document writes it."""

from remanence.agents import *  # noqa: F403
from remanence.agents import __all__ as _agents
from remanence.agents.types import *  # noqa: F403
from remanence.agents.types import __all__ as _types

__all__ = [*_agents, *_types]
