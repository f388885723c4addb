"""`from memory.api.hooks import install_memory_hooks`."""

from rmem.agents.base_agent import BaseAgent
from rmem.agents.hooks import install_memory_hooks, with_memory

__all__ = ["BaseAgent", "install_memory_hooks", "with_memory"]
