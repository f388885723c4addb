"""Key-value stores of the Advanced Memory System Guide: texts and other JSON values by key, with search. All behave
alike, so that one can replace another.

This module is the list of public names and nothing else; each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

_HOMES = {
    "InMemoryStore": "kv.memory",
    "KeyedStore": "kv.base",
    "PostgresStore": "kv.postgres",
    "RedisStore": "kv.redis",
    "SqliteStore": "kv.sqlite",
    "VectorMemoryStore": "kv.vector",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from .base import KeyedStore as KeyedStore
    from .memory import InMemoryStore as InMemoryStore
    from .postgres import PostgresStore as PostgresStore
    from .redis import RedisStore as RedisStore
    from .sqlite import SqliteStore as SqliteStore
    from .vector import VectorMemoryStore as VectorMemoryStore
else:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
