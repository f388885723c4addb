"""Stores: where memories are kept. `base` is the contract; `open_store` finds the store for an address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..crypto.encryption import Encryption
from ..errors import ConfigError

if TYPE_CHECKING:
    from .base import RecordStore


def open_store(address: str | Path, **options: Any) -> RecordStore:
    """The store behind ":memory:", a path, "sqlite:///path", "postgresql://…" or a plugin's "name://…". Options are
    the store's own."""
    if str(address) == ":memory:":
        from .memory import InMemoryRecordStore

        options.pop("durability", None)
        Encryption.of(options.pop("encryption", None) or False)  # checked; nothing of it comes to a disk
        return InMemoryRecordStore(**options)
    path = str(address)
    scheme, separator, rest = path.partition("://")
    if separator:
        if is_postgres(path):
            from .sql.postgres import PostgresRecordStore

            return PostgresRecordStore(path, **options)
        if scheme != "sqlite":
            return _from_plugin(scheme, path, options)
        if rest in ("", "/"):
            raise ConfigError(f"{path!r} names no file; write sqlite:///relative.db or sqlite:////absolute.db")
        path = rest.removeprefix("/")
    from .sql.sqlite import SqliteRecordStore

    return SqliteRecordStore(Path(path).expanduser(), **options)


def is_postgres(address: str | Path) -> bool:
    """Whether an address leads to PostgreSQL."""
    scheme, separator, _ = str(address).partition("://")
    return bool(separator) and scheme.partition("+")[0] in ("postgresql", "postgres")


def _from_plugin(scheme: str, address: str, options: dict[str, Any]) -> RecordStore:
    from ..plugins import installed, plugin

    found = plugin("store", scheme)
    if found is None:
        others = "".join(f", {one.name}://…" for one in installed("store") if one.problem is None)
        raise ConfigError(
            f"no store for {scheme}:// addresses; known: a path, sqlite:///path/to/file.db, postgresql://…, "
            f":memory:{others}"
        )
    from .plugins import open_record_plugin

    if Encryption.of(options.pop("encryption", None)) is not None:
        raise ConfigError(
            f"a master key is given, but stores at {scheme}:// addresses do not encrypt, only SQLite files do; "
            "encryption=False keeps memories there in the clear"
        )
    return open_record_plugin(found, address, **options)
