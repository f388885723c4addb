"""Remove memories: move them to the trash, restore them, or delete them permanently, with an entry in the audit log in
the same transaction."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from struct import Struct
from typing import Any
from zlib import compress, decompress

from ... import config
from ...errors import KeyMissingError, KeyWrongError, StoreError
from ...models import Memory
from ..base import Progress, SetAside, Trace, counted
from ..capabilities import Trash
from ..indexed import derive_with_facts
from ..packing import Codec
from . import audit, encrypted_rows, feedback, rows
from .audit_chain import AuditHead
from .base import SqlStore
from .connection import Connection
from .receipts import forget_ids, once

log = logging.getLogger(__name__)

_PART = 500
_SEALED = b"\x01"  # first byte of an encrypted memory in the trash; zlib data never starts with it
_VERSION = Struct("<I")


def read_traces(connection: Connection, codec: Codec) -> Iterator[Trace]:
    """Yield the data of every memory that the forgetting curve needs."""
    newest = dict(connection.execute("SELECT agent, max(step) FROM memories GROUP BY agent").fetchall())
    found = connection.execute(
        "SELECT m.id, m.importance, m.time, coalesce(a.last, m.time), m.agent, m.step, "
        "CASE WHEN a.count > coalesce(j.useless, 0) THEN a.count - coalesce(j.useless, 0) ELSE 0 END, m.tags, "
        "m.sealed, m.key_version, "
        "length(m.text) + coalesce(length(m.contents), 0) + coalesce(length(m.packed), 0) + length(m.words) "
        "+ length(m.terms) + length(m.marks) + coalesce(length(m.vector), 0) + coalesce(length(m.numbers), 0) "
        "+ coalesce(length(m.sealed), 0) "
        "FROM memories m LEFT JOIN access a ON a.born = m.born LEFT JOIN "
        "(SELECT memory, count(*) AS useless FROM judgements WHERE NOT useful AND rank >= 0 GROUP BY memory) j "
        "ON j.memory = m.id"
    )
    for memory_id, importance, when, last, agent, step, recalls, tags, sealed, version, size in found:
        pinned = bool(tags) and "pinned" in json.loads(tags)
        if sealed is not None:
            pinned |= _pinned(codec, memory_id, sealed, version)
        yield Trace(memory_id, importance, when, max(last, when), recalls, pinned, size, newest[agent] - step)


def _pinned(codec: Codec, memory_id: str, sealed: bytes, version: int) -> bool:
    """Whether an encrypted memory is pinned. One that cannot be read counts as pinned."""
    try:
        opened = codec.vault.open(memory_id, sealed, version)
    except StoreError:
        return True
    return "tags" in opened and "pinned" in encrypted_rows.tags_of(opened)


def remove(connection: Connection, keys: Sequence[str]) -> list[str]:
    """Delete rows and everything that refers to them; return the ids that existed."""
    gone = []
    for key in keys:
        row = connection.execute("SELECT seq, born FROM memories WHERE id = ?", (key,)).fetchone()
        if row is not None:
            connection.execute("DELETE FROM memories WHERE seq = ?", (row[0],))
            connection.execute("INSERT INTO changes (seq) VALUES (?)", (row[0],))
            connection.execute("DELETE FROM access WHERE born = ?", (row[1],))
            feedback.forget(connection, key)
            gone.append(key)
    return gone


def move_to_trash(connection: Connection, codec: Codec, keys: Sequence[str], now: float, until: float) -> list[str]:
    kept: list[tuple[str, float, float, bytes]] = []
    for start in range(0, len(keys), _PART):
        part = list(keys[start : start + _PART])
        sql = f"{rows.READ} WHERE m.id IN ({', '.join('?' * len(part))})"
        for row in connection.execute(sql, part):
            memory, seal = rows.to_memory(row, codec), rows.seal_of(row)
            kept.append((memory.memory_id, now, until, _written(memory, None if seal is None else seal.version, codec)))
    empty(connection, None, [values[0] for values in kept])
    connection.executemany("INSERT INTO trash VALUES (?, ?, ?, ?)", kept)
    return remove(connection, keys)


def list_trash(connection: Connection, codec: Codec) -> list[SetAside]:
    found = []
    for key, removed, until, data in connection.execute("SELECT id, removed, until, data FROM trash ORDER BY 2, 1"):
        try:
            found.append(SetAside(_read(key, data, codec), removed, until))
        except (KeyMissingError, KeyWrongError) as error:
            log.warning("memory %r was passed over: %s", key, error)
    return found


def restore(connection: Connection, codec: Codec, keys: Sequence[str]) -> list[Memory]:
    """Restore memories from the trash; those whose id is in use again stay there."""
    taken = []
    for key in keys:
        row = connection.execute(
            "SELECT data FROM trash WHERE id = ? AND id NOT IN (SELECT id FROM memories WHERE id = ?)", (key, key)
        ).fetchone()
        if row is not None:
            taken.append(_read(key, row[0], codec))
            connection.execute("DELETE FROM trash WHERE id = ?", (key,))
    return taken


def empty(connection: Connection, now: float | None, keys: Sequence[str] | None = None) -> list[str]:
    """Delete expired memories from the trash, or those with these ids."""
    if keys is None:
        keys = [key for (key,) in connection.execute("SELECT id FROM trash WHERE until <= ?", (now,))]
    return [key for key in keys if connection.execute("DELETE FROM trash WHERE id = ?", (key,)).rowcount]


def seal_again(connection: Connection, codec: Codec, version: int) -> int:
    """Encrypt memories in the trash with new keys; return how many could not be read."""
    unreadable = 0
    for key, data in connection.execute("SELECT id, data FROM trash").fetchall():
        if data[:1] == _SEALED and _VERSION.unpack_from(data, 1)[0] < version:
            try:
                again = _written(_read(key, data, codec), version, codec)
            except StoreError:
                unreadable += 1
                continue
            connection.execute("UPDATE trash SET data = ? WHERE id = ?", (again, key))
    return unreadable


def _written(memory: Memory, version: int | None, codec: Codec) -> bytes:
    data = compress(json.dumps(memory.to_dict()).encode())
    if version is None:
        return data
    return _SEALED + _VERSION.pack(version) + codec.vault.seal_whole(memory.memory_id, data, version)


def _read(memory_id: str, data: bytes, codec: Codec) -> Memory:
    if data[:1] == _SEALED:
        (version,) = _VERSION.unpack_from(data, 1)
        data = codec.vault.open_whole(memory_id, data[1 + _VERSION.size :], version)
    return Memory.from_dict(json.loads(decompress(data)))


def log_removal(
    connection: Connection,
    seal: bytes | None,
    who: str,
    action: str,
    keys: Sequence[str],
    *,
    named: bool = True,
    **detail: Any,
) -> AuditHead:
    """Add entries to the audit log; with `named=False`, with hashes instead of ids, which may reveal a person."""
    ids = keys if named else [f"erased-{blake2b(key.encode(), digest_size=8).hexdigest()}" for key in keys]
    return audit.append(connection, seal, who, action, list(ids), **detail)


class SqlRemoval(Trash, SqlStore):
    """Forgetting and the trash as capabilities of a store."""

    def forget_many(self, keys: Sequence[str]) -> int:
        return len(self.erase(keys, who="store", reason="forget")) if keys else 0

    def erase(self, keys: Sequence[str], *, who: str, reason: str, named: bool = True) -> list[str]:
        detail, key = _because(reason), self.audit_chain.key(make=True)

        def work(connection: Connection) -> tuple[list[str], AuditHead | None]:
            gone = remove(connection, keys)
            trashed = empty(connection, None, keys)
            removed = [*gone, *trashed]
            if not named:
                forget_ids(connection, removed)
            return removed, log_removal(connection, key, who, "forget", removed, named=named, **detail)

        found: list[str]
        if named:  # a receipt contains ids
            found, head = once(self.write, "erase", work, lambda done: done[0], lambda _, kept: (kept, None))
        else:
            found, head = self.write(work)
        self.audit_chain.save(head)
        self._unscrubbed |= bool(found)
        self.on_write(len(found))
        return found

    def set_aside(self, keys: Sequence[str], *, until: float, who: str, reason: str) -> list[str]:
        detail, key = _because(reason), self.audit_chain.key(make=True)

        def work(connection: Connection) -> tuple[list[str], AuditHead]:
            gone = move_to_trash(connection, self.codec, keys, time.time(), until)
            return gone, log_removal(connection, key, who, "set aside", gone, **detail)

        found, head = self.write(work)
        self.audit_chain.save(head)
        self._unscrubbed |= bool(found)
        self.on_write(len(found))
        return found

    def put_back(self, keys: Sequence[str], *, who: str) -> list[Memory]:
        detail, key = _because("restore"), self.audit_chain.key(make=True)

        def work(connection: Connection) -> tuple[list[Memory], AuditHead | None]:
            memories = restore(connection, self.codec, keys)
            ids = [memory.memory_id for memory in memories]
            head = log_removal(connection, key, who, "restore", ids, **detail)
            derived = derive_with_facts(memories)
            return self.insert(connection, memories, derived)[0] if memories else [], head

        found, head = once(
            self.write,
            "put back",
            work,
            lambda done: [memory.memory_id for memory in done[0]],
            lambda connection, kept: (self._read_back(connection, kept), None),
        )
        self.audit_chain.save(head)
        self.on_write(len(found))
        return found

    def aside(self) -> list[SetAside]:
        return self.read(lambda connection: list_trash(connection, self.codec))

    def empty_trash(self, now: float, *, who: str) -> list[str]:
        detail, key = _because("grace period over"), self.audit_chain.key(make=True)

        def work(connection: Connection) -> tuple[list[str], AuditHead]:
            gone = empty(connection, now)
            return gone, log_removal(connection, key, who, "forget", gone, **detail)

        found, head = self.write(work)
        self.audit_chain.save(head)
        return found

    def traces(self, on_progress: Progress | None = None) -> Iterator[Trace]:
        self.flush()

        def work(connection: Connection) -> list[Trace]:
            found = connection.execute("SELECT count(*) FROM memories").fetchone()
            total = 0 if found is None else int(found[0])
            return list(counted(read_traces(connection, self.codec), total, on_progress))

        yield from self.read(work)


def _because(reason: str) -> dict[str, Any]:
    """Return the details of a removal for the audit log: reason and token. Call it before the transaction, which
    another thread may run."""
    token = config.token()
    return {"reason": reason, "token": token} if token else {"reason": reason}
