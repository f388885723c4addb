"""The table of data keys, and their rotation while other processes use the store.

A rotation adds a new version of the keys, encrypts the rows again in small transactions, and deletes the old version
together with the last row that needed it. A process that finds two versions continues an interrupted rotation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...crypto.encryption import Encryption
from ...crypto.vault import Vault, WrappedKey, fingerprint, new_keys, unwrap, wrap
from ...errors import KeyMissingError, KeyWrongError, StoreCorruptError
from ...facts import facts_of
from ..base import Progress
from ..indexed import derive
from . import dictionaries, encrypted_rows, removal, rows
from .connection import Connection
from .encrypted_rows import Seal

if TYPE_CHECKING:
    from .records import SqlRecords


_BATCH = 64
_OUTDATED = "{} WHERE m.seq > ? AND m.key_version < ? ORDER BY m.seq LIMIT ?"


def read(connection: Connection) -> list[WrappedKey]:
    found = connection.execute("SELECT kind, version, wrapped, master, created FROM keys ORDER BY version, kind")
    return [WrappedKey(*row) for row in found]


def _add(connection: Connection, keys: Sequence[WrappedKey]) -> None:
    connection.executemany("DELETE FROM keys WHERE kind = ? AND version = ?", [key[:2] for key in keys])
    connection.executemany("INSERT INTO keys (kind, version, wrapped, master, created) VALUES (?, ?, ?, ?, ?)", keys)


def seal_for_writing(connection: Connection, vault: Vault) -> Seal | None:
    """Return the seal for the next memory, creating the store's first keys; None for no encryption, which a store with
    keys refuses."""
    if vault.encryption is None:
        if connection.execute("SELECT 1 FROM keys LIMIT 1").fetchone():
            raise KeyMissingError(
                "this store is encrypted, so nothing is written to it without its key; set RMEM_MASTER_KEY or "
                "RMEM_MASTER_KEY_FILE, or pass Brain(encryption=…)"
            )
        return None
    vault.follow(read(connection))
    if vault.latest is None:
        if connection.execute("SELECT 1 FROM memories WHERE key_version IS NOT NULL LIMIT 1").fetchone():
            raise StoreCorruptError("the keys of this store's encrypted memories are gone; restore a backup")
        _add(connection, new_keys(vault.encryption.master_key(), 1, time.time()))
        vault.follow(read(connection))
    assert vault.latest is not None
    vault.keys(vault.latest)
    return Seal(vault.latest, vault.encryption.fields)


def replaces_readable(connection: Connection, held: Sequence[int]) -> bool:
    """Whether any of these rows is not encrypted."""
    sql = "SELECT 1 FROM memories WHERE seq = ? AND key_version IS NULL"
    return any(connection.execute(sql, (seq,)).fetchone() for seq in held)


def count(connection: Connection) -> dict[int, int]:
    """Return how many memories are encrypted with each version of the keys."""
    sql = "SELECT key_version, count(*) FROM memories WHERE key_version IS NOT NULL GROUP BY key_version"
    return dict(connection.execute(sql).fetchall())


# Rotation


def rewrap(store: SqlRecords, new: Encryption) -> int:
    """Wrap the data keys with a new master key; return how many. Doing it twice changes nothing."""
    master = new.master_key()

    def work(connection: Connection) -> int:
        held = read(connection)
        if not held:
            raise KeyMissingError("this store has no keys yet: nothing in it is encrypted")
        if all(unwrap(master, key) is not None for key in held):
            return len(held)
        if store.vault.encryption is None:
            raise KeyMissingError("the present master key is needed to rotate it; set RMEM_MASTER_KEY")
        present, master_id = store.vault.encryption.master_key(), fingerprint(master)
        fresh = []
        for key in held:
            raw = unwrap(present, key)
            if raw is None:
                raise KeyWrongError(
                    f"the present master key does not open the key {key.kind} {key.version} of this store, so nothing "
                    "was rotated; set RMEM_MASTER_KEY to the key that it was made or last rotated with"
                )
            fresh.append(key._replace(wrapped=wrap(master, key.kind, key.version, raw), master=master_id))
        _add(connection, fresh)
        return len(fresh)

    return store.write(work)


def rotate(store: SqlRecords, on_progress: Progress | None = None) -> dict[str, Any]:
    """Encrypt every encrypted memory again with new data keys, or continue an interrupted rotation."""
    version, resumed = store.write(lambda connection: _begin(connection, store))
    held = store.read(count)
    total = sum(held.values())
    left = sum(number for used, number in held.items() if used < version)
    done, last = total - left, 0
    while True:
        if on_progress is not None:
            on_progress(done, total)
        moved, last = store.write(lambda connection, last=last: _rotate_batch(connection, store, version, last))  # type: ignore[misc]
        if not last:
            break
        done += moved
    late, unreadable = store.write(lambda connection: _finish(connection, store, version))
    if on_progress is not None:
        on_progress(total, total)
    return {
        "version": version,
        "memories": done - (total - left) + late,
        "resumed": resumed,
        "unreadable": unreadable,
    }


def _begin(connection: Connection, store: SqlRecords) -> tuple[int, bool]:
    """Create new keys, unless an interrupted rotation has, and publish them to all processes."""
    vault = store.vault
    if vault.encryption is None:
        raise KeyMissingError("rotating data keys needs the master key; set RMEM_MASTER_KEY")
    held = read(connection)
    if not held:
        raise KeyMissingError("this store has no keys yet: nothing in it is encrypted")
    vault.follow(held)
    versions = sorted({key.version for key in held})
    for version in versions:
        vault.keys(version)
    if len(versions) > 1:
        return versions[-1], True
    version = versions[-1] + 1
    _add(connection, new_keys(vault.encryption.master_key(), version, time.time()))
    vault.follow(read(connection))
    store.new_generation(connection)
    return version, False


def _rotate_batch(connection: Connection, store: SqlRecords, version: int, last: int) -> tuple[int, int]:
    """Encrypt a batch of rows with the new keys; return how many, and the last row. 0 if none is left."""
    dictionaries.use_newest(store, connection)
    batch = connection.execute(_OUTDATED.format(store.dialect.read), (last, version, _BATCH)).fetchall()
    return sum(_reencrypt(connection, store, row, version) for row in batch), batch[-1][0] if batch else 0


def _reencrypt(connection: Connection, store: SqlRecords, row: tuple[Any, ...], version: int) -> bool:
    """Encrypt one row with the new keys; leave a row that cannot be decrypted as it is."""
    memory = rows.readable(row, store.codec)
    old = None if memory is None else rows.seal_of(row)
    if memory is None or old is None:
        return False
    seal = Seal(version, old.fields)
    hidden = encrypted_rows.blind(derive(memory, facts_of(memory)), seal, store.vault)
    store.rewrite(connection, row[0], memory, seal, hidden)
    return True


def _finish(connection: Connection, store: SqlRecords, version: int) -> tuple[int, int]:
    """Encrypt the remaining rows and the trash with the new keys, then delete the old keys, unless a row that cannot be
    decrypted may need them. Return (rows encrypted again, rows that cannot be decrypted)."""
    dictionaries.use_newest(store, connection)
    late = unreadable = last = 0
    while batch := connection.execute(_OUTDATED.format(store.dialect.read), (last, version, _BATCH)).fetchall():
        for row in batch:
            again = _reencrypt(connection, store, row, version)
            late, unreadable = late + again, unreadable + (not again)
        last = batch[-1][0]
    unreadable += removal.seal_again(connection, store.codec, version)
    if not unreadable:
        connection.execute("DELETE FROM keys WHERE version < ?", (version,))
    store.on_rows_rewritten(connection, vectors=False)
    return late, unreadable
