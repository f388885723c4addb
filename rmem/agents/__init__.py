"""The Agent Memory API: agents that live in steps, with three tiers of memory. The names of `rmem.conversation` can be
imported from here too.

This module is the list of public names and nothing else; each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

_HOMES = {
    "ActionData": "agents.models",
    "ActionResult": "agents.models",
    "AgentMemory": "conversation",
    "AgentMemoryAPI": "agents.api",
    "AgentState": "agents.models",
    "AsyncAgentMemoryAPI": "agents.api",
    "AutoencoderConfig": "agents.config",
    "BaseAgent": "agents.base_agent",
    "ChatSummariser": "conversation",
    "EnhancedAgentMemory": "conversation",
    "ExtractiveSummariser": "conversation",
    "IMConfig": "agents.config",
    "LTMConfig": "agents.config",
    "MemoryAPIException": "errors",
    "MemoryConfig": "agents.config",
    "MemoryConfigException": "errors",
    "MemoryInputError": "errors",
    "MemoryMaintenanceException": "errors",
    "MemoryRetrievalException": "errors",
    "MemorySpace": "agents.space",
    "MemoryStoreException": "errors",
    "QueryCache": "agents.cache",
    "RedisIMConfig": "agents.config",
    "RedisSTMConfig": "agents.config",
    "SQLiteLTMConfig": "agents.config",
    "STMConfig": "agents.config",
    "cacheable": "agents.cache",
    "install_memory_hooks": "agents.hooks",
    "with_memory": "agents.hooks",
}

__all__ = [
    "ActionData",
    "ActionResult",
    "AgentMemory",
    "AgentMemoryAPI",
    "AgentState",
    "AsyncAgentMemoryAPI",
    "AutoencoderConfig",
    "BaseAgent",
    "ChatSummariser",
    "EnhancedAgentMemory",
    "ExtractiveSummariser",
    "IMConfig",
    "LTMConfig",
    "MemoryAPIException",
    "MemoryConfig",
    "MemoryConfigException",
    "MemoryInputError",
    "MemoryMaintenanceException",
    "MemoryRetrievalException",
    "MemorySpace",
    "MemoryStoreException",
    "QueryCache",
    "RedisIMConfig",
    "RedisSTMConfig",
    "SQLiteLTMConfig",
    "STMConfig",
    "cacheable",
    "install_memory_hooks",
    "with_memory",
]

if TYPE_CHECKING:
    from ..conversation import AgentMemory, ChatSummariser, EnhancedAgentMemory, ExtractiveSummariser
    from ..errors import (
        MemoryAPIException,
        MemoryConfigException,
        MemoryInputError,
        MemoryMaintenanceException,
        MemoryRetrievalException,
        MemoryStoreException,
    )
    from .api import AgentMemoryAPI, AsyncAgentMemoryAPI
    from .base_agent import BaseAgent
    from .cache import QueryCache, cacheable
    from .config import (
        AutoencoderConfig,
        IMConfig,
        LTMConfig,
        MemoryConfig,
        RedisIMConfig,
        RedisSTMConfig,
        SQLiteLTMConfig,
        STMConfig,
    )
    from .hooks import install_memory_hooks, with_memory
    from .models import ActionData, ActionResult, AgentState
    from .space import MemorySpace


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'rmem.agents' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"rmem.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
