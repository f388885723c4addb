"""Stores of memories. `base` is the contract; `open_store` opens the store of an address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..crypto.encryption import Encryption
from ..errors import ConfigError, StoreError
from ..extras import require

if TYPE_CHECKING:
    from .base import RecordStore
    from .sql.postgres import PostgresRecordStore
    from .sql.records import SqlRecords
    from .sql.sqlite import SqliteRecordStore


def open_store(address: str | Path, **options: Any) -> RecordStore:
    """Open the store at ":memory:", a path, "sqlite:///path", "postgresql://…", "redis://…" or a plugin's "name://…".
    `options` are those of the store."""
    if str(address) == ":memory:":
        from .memory import InMemoryRecordStore

        options.pop("durability", None)
        Encryption.of(options.pop("encryption", None) or False)  # only checked: nothing is written to disk
        return InMemoryRecordStore(**options)
    path = str(address)
    scheme, separator, rest = path.partition("://")
    if separator:
        if is_postgres(path):
            return open_postgres(path, **options)
        if scheme in ("redis", "rediss"):
            return _open_redis(path, options)
        if scheme != "sqlite":
            return _from_plugin(scheme, path, options)
        if rest in ("", "/"):
            raise ConfigError(f"{path!r} names no file; write sqlite:///relative.db or sqlite:////absolute.db")
    return _open_sqlite(path, **options)


def open_file(address: str | Path, **options: Any) -> SqliteRecordStore:
    """Open an SQLite file that exists."""
    if is_postgres(address):
        raise ConfigError("this is for SQLite files; for PostgreSQL use pg_dump, or `rmem serve backup` for a server")
    scheme, separator, _ = str(address).partition("://")
    if scheme in ("http", "https"):
        raise ConfigError(f"{address} is a server; do this on its own machine, where the store is")
    if (separator and scheme != "sqlite") or not sqlite_path(address).is_file():
        raise StoreError(f"there is no store file at {address}")
    return _open_sqlite(address, **options)


def open_sql(address: str | Path, **options: Any) -> SqlRecords:
    """Open an SQLite file that exists, or a PostgreSQL database."""
    return open_postgres(str(address), **options) if is_postgres(address) else open_file(address, **options)


def open_postgres(address: str, **options: Any) -> PostgresRecordStore:
    require("postgres", "PostgreSQL")
    from .sql.postgres import PostgresRecordStore

    return PostgresRecordStore(address, **options)


def _open_sqlite(address: str | Path, **options: Any) -> SqliteRecordStore:
    from .sql.sqlite import SqliteRecordStore

    return SqliteRecordStore(sqlite_path(address), **options)


def sqlite_path(address: str | Path) -> Path:
    """Return the path in "sqlite:///path", or a plain path."""
    text = str(address)
    return Path(text.removeprefix("sqlite://").removeprefix("/") if "://" in text else text).expanduser()


def is_postgres(address: str | Path) -> bool:
    scheme, separator, _ = str(address).partition("://")
    return bool(separator) and scheme.partition("+")[0] in ("postgresql", "postgres")


def _open_redis(address: str, options: dict[str, Any]) -> RecordStore:
    require("redis", "Redis")
    from .redis import RedisRecordStore
    from .redis_link import RedisAddress

    _refuse_encryption("redis", options)
    options.pop("durability", None)  # Redis is as durable as it is set up to be
    return RedisRecordStore(**RedisAddress.options(address), **options)


def _refuse_encryption(scheme: str, options: dict[str, Any]) -> None:
    if Encryption.of(options.pop("encryption", None)) is not None:
        raise ConfigError(
            f"a master key is given, but stores at {scheme}:// addresses do not encrypt, only SQLite files and "
            "PostgreSQL do; encryption=False keeps memories there in the clear"
        )


def _from_plugin(scheme: str, address: str, options: dict[str, Any]) -> RecordStore:
    from ..plugins import installed, plugin

    found = plugin("store", scheme)
    if found is None:
        others = "".join(f", {plugin.name}://…" for plugin in installed("store") if plugin.problem is None)
        raise ConfigError(
            f"no store for {scheme}:// addresses; known: a path, sqlite:///path/to/file.db, postgresql://…, "
            f"redis://…, :memory:{others}"
        )
    from .plugins import open_plugin
    from .value_records import as_records

    _refuse_encryption(scheme, options)
    return as_records(open_plugin(found, address, **options))
