"""Values by key: the stores of the Advanced Memory System Guide. Texts in the first place, any JSON value where it is
natural; each with a search, and all with one behaviour, so that one can stand for another.

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
        raise AttributeError(f"module 'rmem.keyed' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"rmem.keyed.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
