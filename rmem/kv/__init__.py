"""Key-value stores of the Advanced Memory System Guide: texts and other JSON values by key, with search. All behave
alike, so that one can replace another.

This module is the list of public names and nothing else; each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

_HOMES = {
    "InMemoryStore": "memory",
    "KeyedStore": "base",
    "PostgresStore": "postgres",
    "RedisStore": "redis",
    "SqliteStore": "sqlite",
    "VectorMemoryStore": "vector",
}

__all__ = ["InMemoryStore", "KeyedStore", "PostgresStore", "RedisStore", "SqliteStore", "VectorMemoryStore"]

if TYPE_CHECKING:
    from .base import KeyedStore
    from .memory import InMemoryStore
    from .postgres import PostgresStore
    from .redis import RedisStore
    from .sqlite import SqliteStore
    from .vector import VectorMemoryStore


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'rmem.kv' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"rmem.kv.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
