"""`from memory.api.hooks import install_memory_hooks`."""

from remanence.agents.base import BaseAgent
from remanence.agents.hooks import install_memory_hooks, with_memory

__all__ = ["BaseAgent", "install_memory_hooks", "with_memory"]
