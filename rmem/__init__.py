"""Remanence: the memory that stays when the session ends.

This module is the list of public names; each is loaded when it is first used, so that
`import rmem` costs a hook or a command line next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .old_names import adopt_environment

__version__ = "0.1.0"
adopt_environment()

_HOMES = {
    "AsyncBrain": "aio",
    "Brain": "brain",
    "Client": "tables.client",
    "Dataset": "tables.dataset",
    "Embedder": "embed.base",
    "Encryption": "crypto.encryption",
    "EnhancedAgentMemory": "conversation.enhanced",
    "Explanation": "recall.explain",
    "Filter": "filters",
    "Hit": "models",
    "Hits": "models",
    "InMemoryStore": "kv.memory",
    "Memory": "models",
    "MemoryStore": "stores.base",
    "RecallSettings": "recall.settings",
    "RecordStore": "stores.base",
    "RedisStore": "kv.redis",
    "RemanenceError": "errors",
    "SqliteStore": "kv.sqlite",
    "VectorMemoryStore": "kv.vector",
    "by_session": "recall.sessions",
    "errors": "errors",
    "open": "tables.dataset",
    "types": "tables.types",
}

__all__ = [
    "AsyncBrain",
    "Brain",
    "Client",
    "Dataset",
    "Embedder",
    "Encryption",
    "EnhancedAgentMemory",
    "Explanation",
    "Filter",
    "Hit",
    "Hits",
    "InMemoryStore",
    "Memory",
    "MemoryStore",
    "RecallSettings",
    "RecordStore",
    "RedisStore",
    "RemanenceError",
    "SqliteStore",
    "VectorMemoryStore",
    "__version__",
    "by_session",
    "errors",
    "types",
]

if TYPE_CHECKING:
    from . import errors
    from .aio import AsyncBrain
    from .brain import Brain
    from .conversation.enhanced import EnhancedAgentMemory
    from .crypto.encryption import Encryption
    from .embed.base import Embedder
    from .errors import RemanenceError
    from .filters import Filter
    from .kv.memory import InMemoryStore
    from .kv.redis import RedisStore
    from .kv.sqlite import SqliteStore
    from .kv.vector import VectorMemoryStore
    from .models import Hit, Hits, Memory
    from .recall.explain import Explanation
    from .recall.sessions import by_session
    from .recall.settings import RecallSettings
    from .stores.base import MemoryStore, RecordStore
    from .tables import types
    from .tables.client import Client
    from .tables.dataset import Dataset
    from .tables.dataset import open as open  # not in __all__: a star import must not replace the builtin


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'rmem' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"rmem.{home}")
    value = module if name == home.rpartition(".")[2] else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
