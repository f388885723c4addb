"""The Agent Memory API: agents that live in steps, with three tiers of memory. The names of `rmem.conversation` can be
imported from here too.

This module is the list of public names and nothing else; each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

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

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from ..conversation import AgentMemory as AgentMemory
    from ..conversation import ChatSummariser as ChatSummariser
    from ..conversation import EnhancedAgentMemory as EnhancedAgentMemory
    from ..conversation import ExtractiveSummariser as ExtractiveSummariser
    from ..errors import MemoryAPIException as MemoryAPIException
    from ..errors import MemoryConfigException as MemoryConfigException
    from ..errors import MemoryInputError as MemoryInputError
    from ..errors import MemoryMaintenanceException as MemoryMaintenanceException
    from ..errors import MemoryRetrievalException as MemoryRetrievalException
    from ..errors import MemoryStoreException as MemoryStoreException
    from .api import AgentMemoryAPI as AgentMemoryAPI
    from .api import AsyncAgentMemoryAPI as AsyncAgentMemoryAPI
    from .base_agent import BaseAgent as BaseAgent
    from .cache import QueryCache as QueryCache
    from .cache import cacheable as cacheable
    from .config import AutoencoderConfig as AutoencoderConfig
    from .config import IMConfig as IMConfig
    from .config import LTMConfig as LTMConfig
    from .config import MemoryConfig as MemoryConfig
    from .config import RedisIMConfig as RedisIMConfig
    from .config import RedisSTMConfig as RedisSTMConfig
    from .config import SQLiteLTMConfig as SQLiteLTMConfig
    from .config import STMConfig as STMConfig
    from .hooks import install_memory_hooks as install_memory_hooks
    from .hooks import with_memory as with_memory
    from .models import ActionData as ActionData
    from .models import ActionResult as ActionResult
    from .models import AgentState as AgentState
    from .space import MemorySpace as MemorySpace
else:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
