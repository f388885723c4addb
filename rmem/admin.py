"""Administer a store: re-embed it, back it up, change its keys. Examining and repairing it is in doctor.py.

Everything here works on a store that other processes may be using."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import config, stores
from .crypto.encryption import Encryption
from .embed import EmbedderSpec, embedder_for, spec_of, word_vectors
from .embed.state import MemoryVectors
from .errors import ConfigError, InputError, StoreError
from .private_files import make_file
from .stores.base import Progress
from .stores.sql import audit, keys, reembed
from .stores.sql.file import translate_errors
from .stores.sql.records import SqlRecords
from .stores.sql.sqlite import SqliteRecordStore
from .tiers.forgetting import refuse_unreadable
from .vectors.engine import VectorEngine


def open_file(address: str | Path | None) -> SqliteRecordStore:
    return stores.open_file(_address(address), word_vectors=word_vectors)


def open_sql(address: str | Path | None, *, encryption: Encryption | None = None) -> SqlRecords:
    """Open the store of an existing file or of a PostgreSQL database."""
    return stores.open_sql(_address(address), word_vectors=word_vectors, encryption=encryption)


def _address(address: str | Path | None) -> str | Path:
    return config.default_store() if address is None else address


def reindex(
    address: str | Path | None = None,
    embedder: EmbedderSpec = None,
    on_progress: Progress | None = None,
    *,
    vectors: str | None = None,
) -> dict[str, Any]:
    """Embed every memory again, with `embedder` or the store's own, and rebuild terms and index. The engine of its
    vectors, its own or the one at the address `vectors`, is emptied and filled.

    An interrupted run goes on where it stopped. Others may use the store meanwhile. Encrypted memories need their key.
    """
    store = open_sql(address)
    try:
        refuse_unreadable(store, "embedded")
        known, spec = store.get_meta("embedder"), store.get_meta("embedder_spec")
        if embedder is None and known == "none":
            raise ConfigError("this store's vectors were supplied by its users; name an embedder to replace them")
        if embedder is None and known is not None and spec is None:
            raise ConfigError(f"the store's embedder {known!r} cannot be loaded by name; pass an embedder")
        wanted = embedder if embedder is not None else spec
        chosen = embedder_for(wanted)
        reanalysed = store.derive_terms()
        embedded = reembed.reembed(store, MemoryVectors(chosen), spec_of(wanted), on_progress)
        store.rebuild()
        engine = VectorEngine(store, vectors)
        filled = engine.rebuild()
        engine.close()
        return {
            "memories": len(store),
            "embedder": chosen.name,
            "dimension": chosen.dimension,
            "embedded": embedded,
            "reanalysed": reanalysed,
        } | ({} if filled is None else {"vectors": filled})
    finally:
        store.close()


def backup(address: str | Path | None, target: str | Path, on_progress: Progress | None = None) -> dict[str, Any]:
    """Write a consistent copy of a store that may be in use. The target must not exist."""
    path = Path(target).expanduser()
    if path.exists():
        raise InputError(f"target must not exist yet, but {path} does", field="target")
    partial = path.with_name(path.name + ".partial")
    store = open_file(address)
    try:
        partial.unlink(missing_ok=True)
        make_file(partial)
        with translate_errors(path), store.connection() as source:
            source.execute("BEGIN")
            copy = sqlite3.connect(partial)
            try:
                (count,) = source.execute("SELECT count(*) FROM memories").fetchone()
                source.backup(copy, pages=1024, progress=_report_progress(on_progress))
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


def _report_progress(on_progress: Progress | None) -> Callable[[int, int, int], object] | None:
    if on_progress is None:
        return None
    return lambda status, remaining, total: on_progress(total - remaining, total)


def data_keys(address: str | Path | None = None) -> list[dict[str, Any]]:
    """List the data keys of a store, without the keys themselves. `opens` is None without a master key."""
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
    """Wrap the data keys with a new master key, or generate new data keys and encrypt all encrypted memories again, or
    both.

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
