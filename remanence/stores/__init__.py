"""Stores: where memories are kept. `base` is the contract; `open_store` finds the store for an address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError

if TYPE_CHECKING:
    from .base import RecordStore


def open_store(address: str | Path, **options: Any) -> RecordStore:
    """The store behind ":memory:", a path or "sqlite:///path". Options are the store's own."""
    if str(address) == ":memory:":
        from .memory import InMemoryRecordStore

        options.pop("durability", None)
        return InMemoryRecordStore(**options)
    path = str(address)
    scheme, separator, rest = path.partition("://")
    if separator:
        if scheme != "sqlite":
            raise ConfigError(f"no store for {scheme}:// addresses; known: a path, sqlite:///path/to/file.db, :memory:")
        if rest in ("", "/"):
            raise ConfigError(f"{path!r} names no file; write sqlite:///relative.db or sqlite:////absolute.db")
        path = rest.removeprefix("/")
    from .sql.sqlite import SqliteRecordStore

    return SqliteRecordStore(Path(path).expanduser(), **options)
