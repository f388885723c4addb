"""The catalogue of all tenants' tables, in a schema `remanence` that no statement of a tenant can reach: schemas of
tenants, tables, and deleted rows.

Each tenant has a schema and, if the connecting user may create roles, a role without a login and without rights beyond
that schema. Otherwise the check of the parsed tree and schema-qualified names protect other tenants."""

from __future__ import annotations

import hashlib
import random
import re
from dataclasses import asdict, dataclass

import psycopg
from psycopg import errors as pg
from psycopg.types.json import Jsonb

from ... import receipts
from ...errors import StoreMovedError, StoreVersionError
from ..catalog import Table, table_from_json
from . import postgres_guards
from .postgres_link import Connection, Frame, TablesLink

LAYOUT = 2
"""2: checks and defaults are guarded, so that a statement which runs them can be stopped."""
OWN = Frame()
"""For our own statements, which write every name with its schema."""

_LAYOUT = """
CREATE SCHEMA IF NOT EXISTS remanence;
CREATE TABLE IF NOT EXISTS remanence.table_tenants (
    tenant text PRIMARY KEY,
    schema text NOT NULL UNIQUE,
    role text,
    version bigint NOT NULL DEFAULT 1,
    layout integer NOT NULL
);
CREATE TABLE IF NOT EXISTS remanence.table_catalog (
    tenant text NOT NULL REFERENCES remanence.table_tenants,
    name text NOT NULL,
    definition jsonb,                -- NULL once the table was dropped
    id bigint GENERATED ALWAYS AS IDENTITY,
    next_row bigint NOT NULL,        -- where numbers of rows begin: a number is never given again
    complete_from xid8 NOT NULL,     -- deletions are known since this transaction
    PRIMARY KEY (tenant, name)
);
CREATE TABLE IF NOT EXISTS remanence.table_deletions (
    tenant text NOT NULL,
    id bigint NOT NULL,
    xact xid8 NOT NULL,
    row_number bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS remanence.table_receipts (
    tenant text NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX IF NOT EXISTS table_deletions_key ON remanence.table_deletions (tenant, id, xact);
CREATE OR REPLACE FUNCTION remanence.table_row_changed() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog AS $$
BEGIN
    NEW.rmem_xact := pg_current_xact_id();
    RETURN NEW;
END $$;
CREATE OR REPLACE FUNCTION remanence.table_rows_deleted() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO remanence.table_deletions (tenant, id, xact, row_number)
        SELECT TG_ARGV[0], TG_ARGV[1]::bigint, pg_current_xact_id(), _row FROM gone;
    RETURN NULL;
END $$;
"""
_MOVED = -1  # the version of a catalogue that is on another server now
_LEFT = "_left"  # behind the name of its schema, so that no statement under way finds a table
_CLEANED = 1 / 64  # how often receipts that are too old are removed
_FIND = "SELECT schema, role, layout FROM remanence.table_tenants WHERE tenant = %s"
_COMPLETE = (  # an older database has neither the functions that guard statements nor the table of receipts
    "SELECT to_regclass('remanence.table_receipts') IS NOT NULL "
    "AND EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)"
)
_LOCK = "SELECT pg_advisory_xact_lock(7305787160187241057)"  # one process at a time makes schemas and roles
_AFTER_THIS = "(pg_current_xact_id()::text::bigint + 1)::text::xid8"  # who asks from this one's number did not see it


@dataclass(frozen=True, slots=True)
class Tenant:
    """The schema of a tenant's tables, and the role that may see it."""

    name: str
    schema: str
    role: str | None
    layout: int = LAYOUT


def tenant_of(link: TablesLink, name: str) -> Tenant:
    """Return the tenant of that name; create it if missing."""

    def find(connection: Connection) -> Tenant | None:
        row = connection.execute(_COMPLETE, [postgres_guards.SCHEMA]).fetchone()
        return _find_tenant(connection, name) if row is not None and row[0] else None

    return link.read(OWN, find) or link.write(OWN, lambda connection: _create_tenant(connection, name))


def _find_tenant(connection: Connection, name: str) -> Tenant | None:
    known = connection.execute("SELECT to_regclass('remanence.table_tenants') IS NOT NULL").fetchone()
    row = connection.execute(_FIND, [name]).fetchone() if known and known[0] else None
    if row is None:
        return None
    if row[2] > LAYOUT:
        raise StoreVersionError("these tables were written by a newer version of Remanence; install that one")
    return Tenant(name, *row)


def _create_tenant(connection: Connection, name: str) -> Tenant:
    connection.execute(_LOCK)
    connection.execute(_LAYOUT)
    connection.execute(postgres_guards.create_functions().encode())
    if found := _find_tenant(connection, name):
        return found
    schema = schema_name(name)
    connection.execute(f'CREATE SCHEMA "{schema}"'.encode())
    role = _role(connection, schema)
    connection.execute(
        "INSERT INTO remanence.table_tenants (tenant, schema, role, layout) VALUES (%s, %s, %s, %s)",
        [name, schema, role, LAYOUT],
    )
    return Tenant(name, schema, role)


def claim(connection: Connection, tenant: Tenant, key: str) -> str | None:
    """Take the key of a receipt, or return its stored value; wait for another transaction that took it."""
    if random.random() < _CLEANED:
        connection.execute(
            "DELETE FROM remanence.table_receipts WHERE tenant = %s AND key > %s AND key < %s",
            [tenant.name, receipts.PREFIX, receipts.oldest_kept()],
        )
    made = connection.execute(
        "INSERT INTO remanence.table_receipts VALUES (%s, %s, '') ON CONFLICT DO NOTHING", [tenant.name, key]
    )
    if made.rowcount:
        return None
    sql = "SELECT value FROM remanence.table_receipts WHERE tenant = %s AND key = %s"
    row = connection.execute(sql, [tenant.name, key]).fetchone()
    return None if row is None else str(row[0])


def keep(connection: Connection, tenant: Tenant, key: str, value: str) -> None:
    sql = "UPDATE remanence.table_receipts SET value = %s WHERE tenant = %s AND key = %s"
    connection.execute(sql, [value, tenant.name, key])


def schema_name(tenant: str) -> str:
    """Return a readable part and a hash, so that two tenants never share a schema."""
    readable = re.sub(r"[^a-z0-9]+", "_", tenant.lower()).strip("_")[:20]
    return f"rmem_{readable}_{hashlib.sha256(tenant.encode()).hexdigest()[:24]}"


def _role(connection: Connection, schema: str) -> str | None:
    """Create a role of the same name for the schema; None if the user may not create roles."""
    row = connection.execute("SELECT rolcreaterole, rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    creates, superuser = row or (False, False)
    if not (creates or superuser):
        return None
    known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [schema]).fetchone()
    try:
        with connection.transaction():
            if not known:  # roles belong to all databases of a server
                connection.execute(f'CREATE ROLE "{schema}" NOLOGIN NOINHERIT'.encode())
            if not superuser:
                connection.execute(f'GRANT "{schema}" TO CURRENT_USER WITH SET TRUE'.encode())
            connection.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO "{schema}"'.encode())
    except pg.InsufficientPrivilege:
        return None
    return schema


def add(connection: Connection, tenant: Tenant, table: Table) -> tuple[int, int]:
    """A new table in the catalogue: its number there, and the number of its first row. The numbers go on where those
    of a table that had this name before ended, so that an index of that one mistakes no row for another."""
    row = connection.execute(
        "INSERT INTO remanence.table_catalog AS c (tenant, name, definition, next_row, complete_from) "
        f"VALUES (%(tenant)s, %(name)s, %(definition)s, 1, {_AFTER_THIS}) ON CONFLICT (tenant, name) DO UPDATE "
        "SET definition = excluded.definition, complete_from = excluded.complete_from RETURNING id, next_row".encode(),
        {"tenant": tenant.name, "name": table.name, "definition": Jsonb(asdict(table))},
    ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def remove(connection: Connection, tenant: Tenant, name: str) -> None:
    """Remove a table from the catalogue before it is dropped; keep the row number at which a new one continues."""
    connection.execute(
        "WITH dropped AS (UPDATE remanence.table_catalog SET definition = NULL, next_row = greatest(next_row, "
        "1 + coalesce(pg_sequence_last_value(format('%%I.rmem_rows_%%s', %(schema)s::text, id)::regclass), 0)) "
        "WHERE tenant = %(tenant)s AND name = %(name)s RETURNING id) "
        "DELETE FROM remanence.table_deletions AS d USING dropped WHERE d.tenant = %(tenant)s AND d.id = dropped.id",
        {"schema": tenant.schema, "tenant": tenant.name, "name": name},
    )


def remove_view(connection: Connection, tenant: Tenant, name: str) -> None:
    sql = "UPDATE remanence.table_catalog SET definition = NULL WHERE tenant = %s AND name = %s"
    connection.execute(sql, [tenant.name, name])


def forget_changes(connection: Connection, tenant: Tenant, name: str) -> None:
    """Make indexes read a table again, after a column was dropped."""
    connection.execute(
        f"UPDATE remanence.table_catalog SET complete_from = {_AFTER_THIS} WHERE tenant = %s AND name = %s".encode(),
        [tenant.name, name],
    )


def save(connection: Connection, tenant: Tenant, table: Table) -> None:
    """Replace the catalogue entry of a table."""
    connection.execute(
        "UPDATE remanence.table_catalog SET definition = %s WHERE tenant = %s AND name = %s",
        [Jsonb(asdict(table)), tenant.name, table.name],
    )


def touch(connection: Connection, tenant: Tenant) -> None:
    """Raise the catalogue version for every process. Holding the row serialises changes."""
    sql = "UPDATE remanence.table_tenants SET version = version + 1 WHERE tenant = %s RETURNING version - 1"
    _check_here(connection.execute(sql, [tenant.name]).fetchone())


def set_layout(connection: Connection, tenant: Tenant) -> None:
    """Record that all tables of a tenant have the newest layout."""
    sql = "UPDATE remanence.table_tenants SET layout = %s WHERE tenant = %s"
    connection.execute(sql, [LAYOUT, tenant.name])


def version(connection: Connection, tenant: Tenant) -> int:
    sql = "SELECT version FROM remanence.table_tenants WHERE tenant = %s"
    return _check_here(connection.execute(sql, [tenant.name]).fetchone())


def _check_here(row: tuple[int, ...] | None) -> int:
    """Return the version of a catalogue; StoreMovedError if its tables were moved to another server."""
    number = int(row[0]) if row else 0
    if number < 0:
        raise StoreMovedError("these tables are on another server now; try again")
    return number


def lock(connection: Connection, name: str) -> Tenant | None:
    """Lock a tenant's tables against changes until the transaction ends; None if it has none."""
    tenant = _find_tenant(connection, name)
    if tenant is None:
        return None
    connection.execute("SELECT 1 FROM remanence.table_tenants WHERE tenant = %s FOR UPDATE", [name])
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [tenant.schema]).fetchall()
    for (table,) in rows:
        connection.execute(
            psycopg.sql.SQL("LOCK TABLE {} IN SHARE MODE").format(psycopg.sql.Identifier(tenant.schema, table))
        )
    return tenant


def leave(connection: Connection, tenant: Tenant) -> None:
    """Mark a tenant's tables as moved to another server; nobody can use them here."""
    connection.execute("UPDATE remanence.table_tenants SET version = %s WHERE tenant = %s", [_MOVED, tenant.name])
    connection.execute(f'ALTER SCHEMA "{tenant.schema}" RENAME TO "{tenant.schema}{_LEFT}"'.encode())


def is_known(connection: Connection, name: str) -> bool:
    """Return whether there are, or were, tables of a tenant in this database."""
    return _find_tenant(connection, name) is not None


def erase_left(connection: Connection, name: str) -> None:
    """Remove the tables that `leave` marked. The tenant stays known as moved."""
    tenant = _find_tenant(connection, name)
    if tenant is None:
        return
    connection.execute(f'DROP SCHEMA IF EXISTS "{tenant.schema}{_LEFT}" CASCADE'.encode())
    for table in ("table_catalog", "table_deletions", "table_receipts"):
        connection.execute(f"DELETE FROM remanence.{table} WHERE tenant = %s".encode(), [name])


def erase_moved(connection: Connection, name: str) -> None:
    """Remove the mark of `leave`, before the tables come back."""
    sql = "SELECT 1 FROM remanence.table_tenants WHERE tenant = %s AND version < 0"
    if is_known(connection, name) and connection.execute(sql, [name]).fetchone():
        erase_left(connection, name)
        connection.execute("DELETE FROM remanence.table_tenants WHERE tenant = %s", [name])


def receipts_of(connection: Connection, name: str) -> list[tuple[str, str]]:
    sql = "SELECT key, value FROM remanence.table_receipts WHERE tenant = %s"
    return list(connection.execute(sql, [name]).fetchall())


def adopt_receipts(connection: Connection, name: str, given: list[tuple[str, str]]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO remanence.table_receipts VALUES (%s, %s, %s) ON CONFLICT (tenant, key) "
            "DO UPDATE SET value = excluded.value",
            [(name, key, value) for key, value in given],
        )


def load(connection: Connection, tenant: Tenant) -> dict[str, Table]:
    rows = connection.execute(
        "SELECT definition FROM remanence.table_catalog WHERE tenant = %s AND definition IS NOT NULL ORDER BY name",
        [tenant.name],
    ).fetchall()
    tables = (table_from_json(definition) for (definition,) in rows)
    return {table.name: table for table in tables}
