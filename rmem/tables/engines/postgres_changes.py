"""Read what changed in a table since a search index read it, without missing a row and without a lock.

`rmem_xact` of each row and of each deletion names the transaction that wrote it. A reader takes what its snapshot sees
and remembers the oldest transaction still running: whatever commits later has that number or a higher one, so reading
from there misses nothing. A row may be returned twice; a reader replaces what it had. Only writing transactions count,
so a long read delays nothing.

Old deletions are removed once there are many. A reader from before that time gets the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from psycopg import RawCursor

from ...errors import NoSuchTableError
from ..catalog import ROW
from .base import NO_ROWS, TableChanges
from .postgres_catalog import OWN, Tenant
from .postgres_ddl import XACT, quote
from .postgres_link import SNAPSHOT, Connection, TablesLink
from .postgres_values import VECTOR, VectorLoader

KEPT = 100_000
"""Deletions that are remembered for each table, at least."""

_STATE = """
SELECT id, complete_from::text::bigint, pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
       pg_snapshot_xmax(pg_current_snapshot())::text::bigint
FROM remanence.table_catalog WHERE tenant = $1 AND name = $2 AND definition IS NOT NULL
"""
_DELETED = "remanence.table_deletions WHERE tenant = $1 AND id = $2 AND xact >= $3::text::xid8"


class _ChangeState(NamedTuple):
    id: int
    complete_from: int
    running: int
    """The oldest transaction that is not finished; all before it are seen by this snapshot."""
    next: int


def changes(link: TablesLink, tenant: Tenant, name: str, columns: Sequence[str], since: int) -> TableChanges:
    place = f"{quote(tenant.schema)}.{quote(name)}"

    def read(connection: Connection) -> TableChanges:
        state = _state(connection, tenant, name)
        names = "".join(f", {quote(name)}" for name in columns)
        whole = not state.complete_from <= since <= state.next
        cursor = RawCursor(connection)
        cursor.adapters.register_loader(VECTOR, VectorLoader)
        if whole:
            cursor.execute(f"SELECT {ROW}{names} FROM {place}".encode(), binary=True)
        else:
            cursor.execute("SET LOCAL enable_seqscan = off")  # what is new is little
            cursor.execute(
                f"SELECT {ROW}{names} FROM {place} WHERE {XACT} >= $1::text::xid8".encode(), [str(since)], binary=True
            )
        found = cursor.fetchall()
        rows = np.fromiter((row[0] for row in found), np.int64, len(found))
        values = [row[1:] for row in found]
        if whole:
            return TableChanges(state.running, NO_ROWS, rows, values, whole=True)
        cursor.execute(f"SELECT DISTINCT row_number FROM {_DELETED}".encode(), [tenant.name, state.id, str(since)])
        deleted = np.fromiter((row[0] for row in cursor), np.int64)
        return TableChanges(state.running, np.union1d(deleted, rows), rows, values)

    if since and (quiet := link.read_directly(lambda connection: _quiet(connection, tenant, name, place, since))):
        return TableChanges(quiet, NO_ROWS, NO_ROWS, [])
    return link.read(OWN, read, kind=SNAPSHOT)


def _state(connection: Connection, tenant: Tenant, name: str) -> _ChangeState:
    row = RawCursor(connection).execute(_STATE, [tenant.name, name]).fetchone()
    if row is None:
        raise NoSuchTableError(f"no table {name!r} in this workspace")
    return _ChangeState(*row)


def _quiet(connection: Connection, tenant: Tenant, name: str, place: str, since: int) -> int | None:
    """Return the next version if nothing happened since; nearly always one message to the server."""
    # The last of each index is found without statistics, which PostgreSQL has none of for numbers of transactions.
    text = (
        f"SELECT s.*, (SELECT t.{XACT}::text::bigint FROM {place} AS t ORDER BY t.{XACT} DESC LIMIT 1), "
        f"(SELECT d.xact::text::bigint FROM remanence.table_deletions AS d WHERE d.tenant = $1 AND d.id = s.id "
        f"ORDER BY d.xact DESC LIMIT 1) FROM ({_STATE}) AS s"
    )
    row = RawCursor(connection).execute(text.encode(), [tenant.name, name]).fetchone()
    if row is None:
        raise NoSuchTableError(f"no table {name!r} in this workspace")
    state = _ChangeState(*row[:4])
    fresh = state.complete_from <= since <= state.next
    return state.running if fresh and max(row[4] or 0, row[5] or 0) < since else None


def forget(link: TablesLink, tenant: Tenant, name: str, *, kept: int = KEPT) -> None:
    """Keep only the latest deletions, once there are twice as many as are kept."""

    def work(connection: Connection) -> None:
        state = _state(connection, tenant, name)
        cursor = RawCursor(connection)
        at = "SELECT d.xact::text::bigint FROM remanence.table_deletions AS d WHERE d.tenant = $1 AND d.id = $2 "
        at += "ORDER BY d.xact DESC OFFSET $3 LIMIT 1"
        if cursor.execute(at.encode(), [tenant.name, state.id, 2 * kept]).fetchone() is None:
            return
        row = cursor.execute(at.encode(), [tenant.name, state.id, kept]).fetchone()
        complete_from = str(min(int(row[0]) + 1, state.running) if row else state.running)
        cursor.execute(
            "DELETE FROM remanence.table_deletions WHERE tenant = $1 AND id = $2 AND xact < $3::text::xid8",
            [tenant.name, state.id, complete_from],
        )
        cursor.execute(
            "UPDATE remanence.table_catalog SET complete_from = greatest(complete_from, $3::text::xid8) "
            "WHERE tenant = $1 AND id = $2",
            [tenant.name, state.id, complete_from],
        )

    link.write(OWN, work)
