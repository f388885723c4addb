"""Looking after a store: re-embed it, back it up, examine it, repair what is derived.

Everything here works on a file that other processes may be using."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__, config
from .crypto.encryption import Encryption
from .embed import EmbedderSpec, embedder_for, spec_of, word_vectors
from .embed.state import MemoryVectors
from .errors import ConfigError, InputError, KeyMissingError, KeyWrongError, RemanenceError, StoreError
from .index.analyser import VERSION as ANALYSER
from .index.manner import SEALED
from .models import TIERS
from .stores import is_postgres, migrations, open_store
from .stores.packing import short_bytes
from .stores.sql import keys, reembed, rows
from .stores.sql.file import explained
from .stores.sql.records import SqlRecords
from .stores.sql.sqlite import SqliteRecordStore

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was examined."""

    name: str
    ok: bool
    detail: str


def _open(
    address: str | Path | None, *, must_exist: bool = True, encryption: Encryption | None = None
) -> SqliteRecordStore:
    address = config.default_store() if address is None else address
    if is_postgres(address):
        raise ConfigError("this is for SQLite files; PostgreSQL has pg_dump, its own checks, and `rmem reindex`")
    found = not must_exist or _exists(address)
    store = open_store(address, word_vectors=word_vectors, encryption=encryption) if found else None
    if not isinstance(store, SqliteRecordStore):
        raise StoreError(f"there is no store file at {address}")
    return store


def _open_sql(address: str | Path | None) -> SqlRecords:
    if address is None or not is_postgres(address):
        return _open(address)
    store = open_store(address, word_vectors=word_vectors)
    assert isinstance(store, SqlRecords)
    return store


def _reanalysed(store: SqlRecords) -> int:
    """Derive the terms of all memories again; how many were written anew."""
    if isinstance(store, SqliteRecordStore):
        return reembed.reanalyse(store)
    if store.note("analyser") in (None, str(ANALYSER)):
        return 0
    done = sum(store.change(key, lambda memory: memory) is not None for key in list(store))
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
    store = _open_sql(address)
    try:
        known, spec = store.note("embedder"), store.note("embedder_spec")
        if embedder is None and known == "none":
            raise ConfigError("this store's vectors were supplied by its users; name an embedder to replace them")
        if embedder is None and known is not None and spec is None:
            raise ConfigError(f"the store's embedder {known!r} cannot be loaded by name; pass an embedder")
        wanted = embedder if embedder is not None else spec
        chosen = embedder_for(wanted)
        reanalysed = _reanalysed(store)
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
    store = _open(address)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        with explained(path), store.connection() as source:
            source.execute("BEGIN")
            copy = sqlite3.connect(partial)
            try:
                (count,) = source.execute("SELECT count(*) FROM memories").fetchone()
                source.backup(copy, pages=1024, progress=_reported(on_progress))
                copy.execute("PRAGMA journal_mode = DELETE")
                (sound,) = copy.execute("PRAGMA quick_check").fetchone()
            finally:
                copy.close()
                source.execute("ROLLBACK")
        if sound != "ok":
            raise StoreError(f"the copy did not pass SQLite's check: {sound}")
        os.replace(partial, path)
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


def examine(address: str | Path | None = None) -> list[Finding]:
    """Check the file, the rows, and what is derived from them."""
    findings = [_versions()]
    try:
        store = _open(address)
    except RemanenceError as error:
        return [*findings, Finding("store", False, str(error))]
    try:
        findings.append(Finding("store", True, f"{store.path}, schema {migrations.HEAD}"))
        for check in (_file, _rows, _keys, _vectors, _terms, _index, _embedder):
            try:
                findings.append(check(store))
            except RemanenceError as error:
                findings.append(Finding(check.__name__.strip("_"), False, str(error)))
    finally:
        store.close()
    return findings


def _versions() -> Finding:
    features = {option for (option,) in sqlite3.connect(":memory:").execute("PRAGMA compile_options")}
    modern = sqlite3.sqlite_version_info >= (3, 35) and "OMIT_JSON" not in features
    return Finding(
        "versions",
        modern,
        f"remanence {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"numpy {np.__version__}, {sys.platform}" + ("" if modern else "; SQLite 3.35 or newer is needed"),
    )


def _file(store: SqliteRecordStore) -> Finding:
    with store.connection() as connection:
        problems = [text for (text,) in connection.execute("PRAGMA integrity_check(20)")]
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    sound = problems == ["ok"]
    return Finding("file", sound, f"SQLite finds it sound, journal {journal}" if sound else "; ".join(problems))


def _rows(store: SqliteRecordStore) -> Finding:
    unreadable, count, locked = [], 0, 0
    with store.connection() as connection:
        for row in connection.execute(rows.READ):
            count += 1
            try:
                rows.to_memory(row, store.codec)
            except (KeyMissingError, KeyWrongError):
                locked += 1
            except (ValueError, TypeError, StoreError) as error:
                unreadable.append(f"{row[1]}: {error}")
    told = f"{count:,} memories, all readable" + (f" but {locked:,} encrypted ones" if locked else "")
    return Finding("rows", not unreadable, "; ".join(unreadable[:5]) if unreadable else told)


def _keys(store: SqliteRecordStore) -> Finding:
    with store.connection() as connection:
        held, wrapped = keys.count(connection), keys.read(connection)
    if not wrapped:
        return Finding("keys", not held, f"{sum(held.values()):,} encrypted memories" + " without keys" * bool(held))
    versions = sorted({key.version for key in wrapped})
    told = f"{sum(held.values()):,} encrypted memories, data keys of version {' and '.join(map(str, versions))}"
    if len(versions) > 1:
        told += " (a rotation waits to be finished: rmem keys rotate --data)"
    if store.encryption is None:
        return Finding("keys", True, f"{told}, not checked for want of the master key")
    lost = sorted(set(held) - set(versions))
    if lost:
        return Finding("keys", False, f"{told}; the keys of version {lost[0]} are gone")
    for version in versions:
        store.vault.keys(version)
    return Finding("keys", True, f"{told}, opened by the master key")


def _vectors(store: SqliteRecordStore) -> Finding:
    dimension = store.note("dimension")
    with store.connection() as connection:
        sizes = {
            (size, level): number
            for size, level, number in connection.execute(
                "SELECT length(vector), level, count(*) FROM memories GROUP BY length(vector), level"
            )
        }
    missing = sum(number for (size, _), number in sizes.items() if size is None)
    sizes = {key: number for key, number in sizes.items() if key[0] is not None}
    wrong = sum(
        number
        for (size, level), number in sizes.items()
        if dimension is None or size != short_bytes(int(dimension), level)
    )
    detail = f"{sum(sizes.values()):,} of {dimension or 0} numbers, {missing:,} memories without"
    return Finding("vectors", wrong == 0, detail if wrong == 0 else f"{wrong:,} of a wrong size among {detail}")


def _terms(store: SqliteRecordStore) -> Finding:
    version = store.note("analyser")
    if version not in (None, str(ANALYSER)):
        return Finding("terms", False, f"derived by analyser {version}, not {ANALYSER}")
    with store.connection() as connection:
        (bad,) = connection.execute(
            "SELECT count(*) FROM memories WHERE length(terms) % 10 OR length(marks) % 8"
        ).fetchone()
    return Finding("terms", bad == 0, f"analyser {ANALYSER}" if bad == 0 else f"{bad:,} rows with damaged terms")


def _index(store: SqliteRecordStore) -> Finding:
    """The index as loaded from its segments, against the rows."""
    store.refresh()
    with store.connection() as connection:
        (segments,) = connection.execute("SELECT count(*) FROM segments").fetchone()
        held = np.fromiter((seq for (seq,) in connection.execute("SELECT seq FROM memories ORDER BY seq")), np.int64)
        columns = store.index.columns
        indexed = columns["seq"][columns["alive"]]
        if not np.array_equal(indexed, held):
            extra, missing = np.setdiff1d(indexed, held).size, np.setdiff1d(held, indexed).size
            return Finding("index", False, f"{missing:,} rows missing from it, {extra:,} that no longer exist")
        rotating = len({key.version for key in keys.read(connection)}) > 1
        for seq in held[:: max(1, held.size // 200)].tolist():
            row = rows.to_index_row(connection.execute(rows.READ_INDEX, (seq - 1, seq, 1)).fetchone(), None)
            at = int(np.searchsorted(columns["seq"], seq))
            if TIERS[columns["tier"][at]] != row.tier:
                return Finding("index", False, f"row {seq} is not in its tier")
            if rotating and row.manner.flags & SEALED:
                continue  # found under its old blind terms as well until the rotation is done
            for term, count in zip(row.terms.hashes.tolist(), row.terms.counts.tolist(), strict=True):
                found, counts, _ = store.index.postings.lookup([term])
                place = int(np.searchsorted(found, at))
                if place == found.size or found[place] != at or counts[place] != count:
                    return Finding("index", False, f"row {seq} is not under all of its words")
    return Finding("index", True, f"{held.size:,} rows in {segments} segments and the tail, as in the file")


def _embedder(store: SqliteRecordStore) -> Finding:
    known, spec = store.note("embedder"), store.note("embedder_spec")
    if known is None or known == "none":
        return Finding("embedder", True, "none yet" if known is None else "vectors are supplied by users")
    if spec is None:
        return Finding("embedder", True, f"{known}, to be passed to Brain(embedder=…)")
    name = embedder_for(spec).name
    if name != known:
        return Finding("embedder", False, f"vectors are of {known!r}, but {spec!r} is {name!r} here: rmem reindex")
    return Finding("embedder", True, known)


def repair(address: str | Path | None = None, on_progress: Progress | None = None) -> list[str]:
    """Derive everything derived anew: terms, missing or misshapen vectors, the index. What was done, in words."""
    store = _open(address)
    done = []
    try:
        changed = reembed.reanalyse(store, on_progress)
        done.append(f"derived the terms of {changed:,} memories again" if changed else "the terms were right")
        if not _vectors(store).ok:
            spec, known = store.note("embedder_spec"), store.note("embedder")
            if spec is None:
                done.append(f"vectors of a wrong size remain: {known!r} cannot be loaded by name; use rmem reindex")
            else:
                number = reembed.reembed(store, MemoryVectors(embedder_for(spec)), spec, on_progress)
                done.append(f"embedded {number:,} memories again")
        store.rebuild()
        done.append("rebuilt the recall index from the rows")
    finally:
        store.close()
    return done


def data_keys(address: str | Path | None = None) -> list[dict[str, Any]]:
    """The data keys of a store, without the keys themselves. `opens` is None where there is no master key to try."""
    store = _open(address)
    try:
        with store.connection() as connection:
            held, wrapped = keys.count(connection), keys.read(connection)
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
    store = _open(address)
    try:
        if master is not None:
            done["rewrapped"] = keys.rewrap(store, master)
            if data:  # go on with the key that counts now
                store.close()
                store = _open(address, encryption=master)
        if data:
            done |= keys.rotate(store, on_progress)
    finally:
        store.close()
    return done
