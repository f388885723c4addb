"""Measure the disk use of organisations: the bytes of their files, and an estimate for a shared database."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from cachetools import LRUCache
from fastapi import HTTPException

from .settings import ServerSettings

if TYPE_CHECKING:
    from ..stores.sql.postgres_pool import Raw

_MEASURED_EVERY = 2.0
_SPARED = 50  # times as long as measuring took, until it is done again
_POINTS, _AT_EACH = 200, 5
"""Where a sample of memories is taken, and how many at each place; fewer memories are counted one by one."""
_MEMORY, _TERM, _FACT, _ENTRY = 400, 110, 330, 300
"""Bytes with their indexes: of a memory beside its long columns, of a posting, a fact and an entry of the audit log."""
_LONG_COLUMNS = (
    "id", "position", "place", "tags", "text", "contents", "words", "terms", "marks", "vector", "numbers", "packed",
    "sealed", "lexemes", "counts", "embedding",
)  # fmt: skip
# pg_column_size does not read what is kept apart from the row
_BYTES = " + ".join(f"coalesce(pg_column_size({name}), 0)" for name in _LONG_COLUMNS)
_BYTES += f" + {_MEMORY} + cardinality(lexemes) * {_TERM}"
_BYTES += f" + {_FACT} * (SELECT count(*) FROM remanence.facts f WHERE f.tenant = m.tenant AND f.seq = m.seq)"
_OF_TENANT = "tenant = hashtextextended(%(tenant)s, 0)"  # said too where the login sees every tenant's rows
_HEAD = f"SELECT seq, rows, audit FROM remanence.heads WHERE {_OF_TENANT}"
_ALL = f"SELECT sum({_BYTES}) FROM remanence.memories m WHERE {_OF_TENANT}"
_SAMPLE = (
    f"SELECT avg(bytes) FROM (SELECT (random() * %(seq)s)::bigint AS seq FROM generate_series(1, {_POINTS})) at, "
    f"LATERAL (SELECT {_BYTES} AS bytes FROM remanence.memories m WHERE {_OF_TENANT} AND m.seq >= at.seq "
    f"ORDER BY m.seq LIMIT {_AT_EACH}) one"
)
_TRASH = f"SELECT coalesce(sum(pg_column_size(data) + 100), 0) FROM remanence.trash WHERE {_OF_TENANT}"
_TABLES = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c JOIN pg_namespace n ON n.oid = "
    "c.relnamespace JOIN remanence.table_tenants t ON t.schema = n.nspname WHERE t.tenant = ANY(%s) AND c.relkind = 'r'"
)


class _Measured(NamedTuple):
    bytes: int
    until: float


class DiskUse:
    """The disk use of the organisations of a server, measured at most every two seconds, less often if that takes
    long."""

    def __init__(self, settings: ServerSettings) -> None:
        self._data, self._store, self._most = settings.data, settings.store, settings.limits.disk_bytes
        self._lock = Lock()
        self._known: LRUCache[str, _Measured] = LRUCache(100_000)
        self._under_way: set[str] = set()

    def check(self, org: str) -> None:
        """Refuse to write for an organisation that has used up its space."""
        used = self._used(org)
        if used >= self._most:
            message = f"the organisation uses {used:,} bytes on disk and may use {self._most:,} (disk_bytes)"
            raise HTTPException(507, f"{message}; forget memories or drop tables first")

    def _used(self, org: str) -> int:
        started = time.monotonic()
        with self._lock:
            known = self._known.get(org)
            if known is not None and (started < known.until or org in self._under_way):
                return known.bytes
            self._under_way.add(org)
        try:
            used = used_bytes(self._data / org)
            if self._store is not None:
                used += database_bytes(self._store, org)
        finally:
            with self._lock:
                self._under_way.discard(org)
        now = time.monotonic()
        with self._lock:
            self._known[org] = _Measured(used, now + max(_MEASURED_EVERY, _SPARED * (now - started)))
        return used


def used_bytes(folder: Path) -> int:
    """Return the bytes used by the files of a folder, without free pages of SQLite."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
            if path.suffix == ".db":
                with path.open("rb") as file:
                    head = file.read(40)
                page = int.from_bytes(head[16:18], "big")
                total -= int.from_bytes(head[36:40], "big") * (65536 if page == 1 else page)
        except FileNotFoundError:
            continue  # a write-ahead log that was just removed
    return total


def database_bytes(address: str, org: str) -> int:
    """Return the bytes of the workspaces of an organisation in a PostgreSQL database: tables as the database measures
    them, memories by a sample of them."""
    import psycopg

    from ..stores.sql.postgres_link import Address, connect, explain

    place = Address.of(address)
    with connect(place) as raw:
        try:
            found = raw.execute("SELECT id FROM control_workspaces WHERE org = %s", [org]).fetchall()
            tenants = [f"{org}/{id}" for (id,) in found]
            used = _number(raw, _TABLES, [tenants]) if _exists(raw, "remanence.table_tenants") else 0
            if _exists(raw, "remanence.facts"):
                used += sum(_bytes_of_memories(raw, tenant) for tenant in tenants)
            return used
        except psycopg.Error as error:
            raise explain(error, place) from error


def _bytes_of_memories(raw: Raw, tenant: str) -> int:
    raw.execute("SELECT set_config('remanence.tenant', %s, false)", [tenant])  # for a login that sees one tenant's rows
    head = raw.execute(_HEAD, {"tenant": tenant}).fetchone()
    if head is None:
        return 0
    seq, rows, entries = head
    if rows <= _POINTS * _AT_EACH:
        memories = _number(raw, _ALL, {"tenant": tenant})
    else:
        memories = rows * _number(raw, _SAMPLE, {"tenant": tenant, "seq": seq})
    return int(memories + _number(raw, _TRASH, {"tenant": tenant}) + entries * _ENTRY)


def _exists(raw: Raw, table: str) -> bool:
    return raw.execute("SELECT to_regclass(%s) IS NOT NULL", [table]).fetchone() == (True,)


def _number(raw: Raw, sql: str, values: list[list[str]] | dict[str, object]) -> int:
    row = raw.execute(sql.encode(), values).fetchone()
    return 0 if row is None or row[0] is None else int(row[0])
