"""Remanence: the memory that stays when the session ends.

This module is the list of public names; each is loaded when it is first used, so that
`import rmem` costs a hook or a command line next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy_names import lazy_names
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

__all__ = ["__version__", *(name for name in _HOMES if name != "open")]  # a star import must not replace the builtin

if TYPE_CHECKING:
    from . import errors as errors
    from .aio import AsyncBrain as AsyncBrain
    from .brain import Brain as Brain
    from .conversation.enhanced import EnhancedAgentMemory as EnhancedAgentMemory
    from .crypto.encryption import Encryption as Encryption
    from .embed.base import Embedder as Embedder
    from .errors import RemanenceError as RemanenceError
    from .filters import Filter as Filter
    from .kv.memory import InMemoryStore as InMemoryStore
    from .kv.redis import RedisStore as RedisStore
    from .kv.sqlite import SqliteStore as SqliteStore
    from .kv.vector import VectorMemoryStore as VectorMemoryStore
    from .models import Hit as Hit
    from .models import Hits as Hits
    from .models import Memory as Memory
    from .recall.explain import Explanation as Explanation
    from .recall.sessions import by_session as by_session
    from .recall.settings import RecallSettings as RecallSettings
    from .stores.base import MemoryStore as MemoryStore
    from .stores.base import RecordStore as RecordStore
    from .tables import types as types
    from .tables.client import Client as Client
    from .tables.dataset import Dataset as Dataset
    from .tables.dataset import open as open
else:
    __getattr__, __dir__ = lazy_names(__name__, {**_HOMES, "__version__": ""})
