"""Looking after a store: re-embed it, back it up, change its keys. Examining and repairing it is in doctor.py.

Everything here works on a store that other processes may be using."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import config
from .crypto.encryption import Encryption
from .embed import EmbedderSpec, embedder_for, spec_of, word_vectors
from .embed.state import MemoryVectors
from .errors import ConfigError, InputError, KeyMissingError, KeyWrongError, StoreCorruptError, StoreError
from .index.analyser import VERSION as ANALYSER
from .private_files import make_file
from .stores import is_postgres, open_store
from .stores.base import Progress
from .stores.sql import audit, keys, reembed
from .stores.sql.file import explained
from .stores.sql.records import SqlRecords
from .stores.sql.sqlite import SqliteRecordStore


def open_file(address: str | Path | None) -> SqliteRecordStore:
    """The store of a file that exists."""
    address = config.default_store() if address is None else address
    if is_postgres(address):
        raise ConfigError("this is for SQLite files; for PostgreSQL use pg_dump, or `rmem serve backup` for a server")
    store = open_sql(address)
    assert isinstance(store, SqliteRecordStore)
    return store


def open_sql(address: str | Path | None, *, encryption: Encryption | None = None) -> SqlRecords:
    """The store of a file that exists, or of a PostgreSQL database."""
    address = config.default_store() if address is None else address
    found = is_postgres(address) or _exists(address)
    store = open_store(address, word_vectors=word_vectors, encryption=encryption) if found else None
    if not isinstance(store, SqlRecords):
        raise StoreError(f"there is no store file at {address}")
    return store


def derive_terms(store: SqlRecords, on_progress: Progress | None = None, *, all_rows: bool = False) -> int:
    """Derive the terms of all memories again; how many were written anew. PostgreSQL writes every row anew for it, so
    there it is done for another analyser only, or on request."""
    if isinstance(store, SqliteRecordStore):
        return reembed.reanalyse(store, on_progress)
    if not all_rows and store.note("analyser") in (None, str(ANALYSER)):
        return 0
    sql = "SELECT id FROM memories ORDER BY seq"
    ids = store.read(lambda connection: [key for (key,) in connection.execute(sql)])
    done = 0
    for number, key in enumerate(ids, 1):
        with suppress(KeyMissingError, KeyWrongError, StoreCorruptError):  # what cannot be read stays as it is
            done += store.change(key, lambda memory: memory) is not None
        if on_progress is not None:
            on_progress(number, len(ids))
    store.note("analyser", str(ANALYSER))
    return done


def _exists(address: str | Path) -> bool:
    text = str(address)
    path = Path(text.split("://", 1)[1].removeprefix("/") if "://" in text else text).expanduser()
    return path.is_file()


def reindex(
    address: str | Path | None = None, embedder: EmbedderSpec = None, on_progress: Progress | None = None
) -> dict[str, Any]:
    """Embed every memory anew, with `embedder` or the store's own, and derive terms and index again.

    An interrupted run goes on where it stopped. Others may use the store meanwhile.
    """
    store = open_sql(address)
    try:
        known, spec = store.note("embedder"), store.note("embedder_spec")
        if embedder is None and known == "none":
            raise ConfigError("this store's vectors were supplied by its users; name an embedder to replace them")
        if embedder is None and known is not None and spec is None:
            raise ConfigError(f"the store's embedder {known!r} cannot be loaded by name; pass an embedder")
        wanted = embedder if embedder is not None else spec
        chosen = embedder_for(wanted)
        reanalysed = derive_terms(store)
        embedded = reembed.reembed(store, MemoryVectors(chosen), spec_of(wanted), on_progress)
        store.rebuild()
        return {
            "memories": len(store),
            "embedder": chosen.name,
            "dimension": chosen.dimension,
            "embedded": embedded,
            "reanalysed": reanalysed,
        }
    finally:
        store.close()


def backup(address: str | Path | None, target: str | Path, on_progress: Progress | None = None) -> dict[str, Any]:
    """A consistent copy of a store that may be in use. The target must not exist."""
    path = Path(target).expanduser()
    if path.exists():
        raise InputError(f"target must not exist yet, but {path} does", field="target")
    partial = path.with_name(path.name + ".partial")
    store = open_file(address)
    try:
        partial.unlink(missing_ok=True)
        make_file(partial)
        with explained(path), store.connection() as source:
            source.execute("BEGIN")
            copy = sqlite3.connect(partial)
            try:
                (count,) = source.execute("SELECT count(*) FROM memories").fetchone()
                source.backup(copy, pages=1024, progress=_reported(on_progress))
                copy.execute("PRAGMA journal_mode = DELETE")
                (sound,) = copy.execute("PRAGMA quick_check").fetchone()
                head = audit.last_head(copy)
            finally:
                copy.close()
                source.execute("ROLLBACK")
        if sound != "ok":
            raise StoreError(f"the copy did not pass SQLite's check: {sound}")
        os.replace(partial, path)
        store.audit_chain.copy_to(path, head)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        store.close()
    return {"target": str(path), "memories": count, "bytes": path.stat().st_size}


def _reported(on_progress: Progress | None) -> Callable[[int, int, int], object] | None:
    if on_progress is None:
        return None
    return lambda status, remaining, total: on_progress(total - remaining, total)


def data_keys(address: str | Path | None = None) -> list[dict[str, Any]]:
    """The data keys of a store, without the keys themselves. `opens` is None where there is no master key to try."""
    store = open_sql(address)
    try:
        held, wrapped = store.read(lambda connection: (keys.count(connection), keys.read(connection)))
        store.vault.follow(wrapped)
        opens = store.vault.versions
        return [
            {
                "kind": key.kind,
                "version": key.version,
                "created": key.created,
                "memories": held.get(key.version, 0),
                "master": key.master,
                "opens": None if store.encryption is None else key.version in opens,
            }
            for key in wrapped
        ]
    finally:
        store.close()


def rotate_keys(
    address: str | Path | None = None,
    master: Encryption | None = None,
    *,
    data: bool = False,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Let a new master key open the data keys, or make new data keys and encrypt all encrypted memories again, or both.

    The present master key is the environment's. An interrupted run goes on where it stopped.
    """
    done: dict[str, Any] = {}
    store = open_sql(address)
    try:
        if master is not None:
            done["rewrapped"] = keys.rewrap(store, master)
            if data:  # go on with the key that counts now
                store.close()
                store = open_sql(address, encryption=master)
        if data:
            done |= keys.rotate(store, on_progress)
    finally:
        store.close()
    return done
