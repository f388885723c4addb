"""The audit log: who did what with which memory. It is append-only; each entry is sealed with a keyed hash over itself
and the previous seal, so that a changed, missing or inserted entry is detected. It holds ids, never contents."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

from ..capabilities import AuditEntry, AuditLog
from .audit_chain import AuditChain, AuditHead
from .base import SqlStore
from .connection import Connection
from .receipts import once

_FIRST_SEAL = "0" * 32
_KEYED = "k:"  # prefix of a seal that was made with a key
_ALL = 1 << 62  # entries


def append(
    connection: Connection, key: bytes | None, who: str, action: str, memories: Sequence[str | None], **detail: Any
) -> AuditHead:
    """Append an entry for each memory, in the caller's transaction; return the new head of the log."""
    last = connection.execute("SELECT n, seal FROM audit ORDER BY n DESC LIMIT 1").fetchone() or (0, _FIRST_SEAL)
    number, seal = last
    now, details = time.time(), json.dumps(detail, sort_keys=True, ensure_ascii=False)
    rows = []
    for memory in memories:
        number += 1
        seal = _seal(key, seal, number, now, who, action, memory, details)
        rows.append((number, now, who, action, memory, details, seal))
    connection.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    return AuditHead(number, seal)


def entries(
    connection: Connection,
    *,
    memory: str | None = None,
    since: float | None = None,
    limit: int | None = None,
    before: int | None = None,
) -> list[AuditEntry]:
    """Return the newest entries (of those before a number), newest first."""
    sql = "SELECT n, time, who, action, memory, detail FROM audit WHERE time >= ?"
    values: list[Any] = [since if since is not None else 0.0]
    if memory is not None:
        sql, values = f"{sql} AND memory = ?", [*values, memory]
    if before is not None:
        sql, values = f"{sql} AND n < ?", [*values, before]
    sql, values = f"{sql} ORDER BY n DESC LIMIT ?", [*values, _ALL if limit is None else limit]
    return [
        AuditEntry(number, when, who, action, about, json.loads(detail))
        for number, when, who, action, about, detail in connection.execute(sql, values)
    ]


def after(connection: Connection, number: int, actions: Sequence[str], limit: int) -> list[AuditEntry]:
    """Return the entries of some actions after a number, oldest first."""
    sql = (
        f"SELECT n, time, who, action, memory, detail FROM audit WHERE n > ? AND action IN "
        f"({', '.join('?' * len(actions))}) ORDER BY n LIMIT ?"
    )
    return [
        AuditEntry(n, when, who, action, memory, json.loads(detail))
        for n, when, who, action, memory, detail in connection.execute(sql, [number, *actions, limit])
    ]


def broken(connection: Connection, last: int, chain: AuditChain) -> Iterator[int]:
    """Yield the numbers of entries that were changed, or whose predecessor is missing. `last` is the highest number
    that was ever used. Entries without a key are accepted up to the first one with a key."""
    seal, expected, keyed, key, head = _FIRST_SEAL, 1, False, chain.key(), chain.head()
    rows = connection.execute("SELECT n, time, who, action, memory, detail, seal FROM audit ORDER BY n")
    for number, when, who, action, memory, detail, written in rows:
        keyed |= written.startswith(_KEYED)
        unchecked = keyed and key is None and chain.place is None  # the key of this database is elsewhere
        wanted = seal if unchecked else _seal(key if keyed else None, seal, number, when, who, action, memory, detail)
        replaced = head is not None and number == head.n and head.seal != written
        if number != expected or replaced or (not unchecked and wanted != written):
            yield number
        seal, expected = written, number + 1
    if max(last, 0 if head is None else head.n) >= expected:
        yield expected  # entries are missing at the end


def last_head(connection: Connection) -> AuditHead | None:
    """Return the last entry of the log."""
    row = connection.execute("SELECT n, seal FROM audit ORDER BY n DESC LIMIT 1").fetchone()
    return None if row is None else AuditHead(*row)


def _seal(key: bytes | None, before: str, *parts: object) -> str:
    data = json.dumps([before, *parts], ensure_ascii=False).encode()
    digest = blake2b(data, digest_size=16, key=key or b"").hexdigest()
    return digest if key is None else _KEYED + digest


class SqlAuditLog(AuditLog, SqlStore):
    """The audit log as a capability of a store."""

    def record(self, who: str, action: str, memories: Sequence[str | None] = (None,), **detail: Any) -> None:
        key, ids = self.audit_chain.key(make=True), list(memories)

        def work(connection: Connection) -> AuditHead | None:
            return append(connection, key, who, action, ids, **detail)

        self.audit_chain.save(once(self.write, "record", work, lambda _: None, lambda *_: None))

    def audit(
        self,
        *,
        memory: str | None = None,
        since: float | None = None,
        limit: int | None = None,
        before: int | None = None,
    ) -> list[AuditEntry]:
        return self.read(lambda connection: entries(connection, memory=memory, since=since, limit=limit, before=before))

    def changed_after(self, number: int, actions: Sequence[str], limit: int) -> list[AuditEntry]:
        return self.read(lambda connection: after(connection, number, actions, limit))

    def accept_audit(self, who: str) -> None:
        self.audit_chain.save(self.read(last_head), back=True)
        self.record(who, "accept audit log")
