"""`from memory.api import AgentMemoryAPI`, as the document writes it."""

from remanence.agents import *  # noqa: F403
from remanence.agents import __all__ as __all__
