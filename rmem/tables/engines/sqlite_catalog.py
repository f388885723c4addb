"""The catalogue in the file, and its tables: `rt_<id>` with columns c1, c2 …, whatever their users call them. Keys are
unique indexes and NOT NULL is a trigger, so that ALTER TABLE never copies a table; writers check CHECKs. The schema
contains no function or collation of ours: any program can check or copy the file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict

from ...errors import ConstraintError, SqlUnsupportedError
from ..catalog import ROW, Column, Index, Reference, Table, table_from_json
from ..sql.define import SEARCH, bind_check
from ..sql.expression_types import NAMES
from .sqlite_compile import Compiler, Placed
from .sqlite_functions import Udf
from .sqlite_storage import Physical, column_type, index_key

VERSION = "tables"
"""The note that counts changes of the catalogue."""


def load(connection: sqlite3.Connection) -> tuple[int, dict[str, Physical]]:
    """Return the version of the catalogue and all tables."""
    found = {}
    for identifier, name, definition in connection.execute("SELECT id, name, definition FROM catalogue"):
        data = json.loads(definition)
        found[name] = Physical(identifier, table_from_json(data["table"]), data["columns"])
    return version(connection), found


def version(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT value FROM notes WHERE key = ?", (VERSION,)).fetchone()
    return int(row[0]) if row else 0


def bump_version(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO notes (key, value) VALUES (?, '1') ON CONFLICT (key) DO UPDATE SET value = value + 1", (VERSION,)
    )


def save(connection: sqlite3.Connection, physical: Physical) -> None:
    definition = json.dumps({"table": asdict(physical.table), "columns": physical.columns})
    connection.execute("UPDATE catalogue SET definition = ? WHERE id = ?", (definition, physical.id))
    bump_version(connection)


def create(connection: sqlite3.Connection, table: Table, others: dict[str, Physical]) -> Physical:
    cursor = connection.execute("INSERT INTO catalogue (name, definition) VALUES (?, '{}')", (table.name,))
    identifier = int(cursor.lastrowid or 0)
    names = {column.name: f"c{at}" for at, column in enumerate(table.columns, 1)}
    physical = Physical(identifier, table, names)
    if table.view is not None:
        save(connection, physical)
        return physical
    parts = [f"{ROW} INTEGER PRIMARY KEY AUTOINCREMENT"]
    parts += [f"{names[column.name]} {column_type(NAMES[column.type.kind])}" for column in table.columns]
    others = {**others, table.name: physical}
    for reference in table.references:
        own = ", ".join(names[name] for name in reference.columns)
        parts.append(f"FOREIGN KEY ({own}) {_reference(reference, others[reference.table])}")
    connection.execute(f"CREATE TABLE {physical.name} ({', '.join(parts)}) STRICT")
    if table.primary_key:
        columns = ", ".join(index_key(physical, name) for name in table.primary_key)
        connection.execute(f"CREATE UNIQUE INDEX rk_{physical.id} ON {physical.name} ({columns})")
    for index in table.indexes:
        create_index(connection, physical, index)
    guard(connection, physical)
    save(connection, physical)
    return physical


def _reference(reference: Reference, other: Physical) -> str:
    for name in reference.targets:
        if index_key(other, name) != other.columns[name]:
            raise SqlUnsupportedError(f'REFERENCES to "{name}", a NUMERIC without a scale, is not supported')
    targets = ", ".join(other.columns[name] for name in reference.targets)
    actions = f"ON DELETE {reference.on_delete} ON UPDATE {reference.on_update}"
    return f"REFERENCES {other.name} ({targets}) {actions}"


def index_name(physical: Physical, index: Index) -> str:
    return f"ri_{physical.id}_{index.name.encode().hex()}"


def create_index(connection: sqlite3.Connection, physical: Physical, index: Index) -> None:
    if index.method == SEARCH:
        return
    columns = ", ".join(index_key(physical, name) for name in index.columns)
    unique = "UNIQUE " if index.unique else ""
    connection.execute(f"CREATE {unique}INDEX {index_name(physical, index)} ON {physical.name} ({columns})")


def drop_index(connection: sqlite3.Connection, physical: Physical, index: Index) -> None:
    connection.execute(f"DROP INDEX IF EXISTS {index_name(physical, index)}")


def checks(physical: Physical) -> tuple[list[tuple[str, str]], list[Udf]]:
    """Return the CHECKs of a table as (name, SQL on NEW that is true if it is broken), and the functions they use."""
    compiler = Compiler({})
    found = []
    for check in physical.table.checks:
        try:
            node, source = bind_check(check.condition, physical.table)
        except SqlUnsupportedError as error:  # an older version took it
            raise SqlUnsupportedError(
                f'check constraint "{check.name}": {error}; drop its column, or copy the rows into a new table'
            ) from None
        compiler.placed[source.alias] = Placed("NEW", physical.columns)
        found.append((check.name, f"NOT {compiler.expressions.sql_as(node, 'bool')}"))
    return found, list(compiler.udfs.values())


def broken_check(
    connection: sqlite3.Connection, physical: Physical, where: str, values: Sequence[int] = ()
) -> ConstraintError | None:
    """Return the error of the first CHECK that the selected rows break, or None."""
    for name, broken in checks(physical)[0]:
        row = connection.execute(f"SELECT 1 FROM {physical.name} AS NEW WHERE ({where}) AND {broken} LIMIT 1", values)
        if row.fetchone() is not None:
            return ConstraintError(f'new row for relation "{physical.table.name}" violates check constraint "{name}"')
    return None


def guard(connection: sqlite3.Connection, physical: Physical) -> None:
    """Recreate the triggers of a table: those that refuse NULL, and those that log changes."""
    name = physical.name
    body = " ".join(
        f"SELECT RAISE(ABORT, 'rmem:null:{physical.columns[column.name]}') "
        f"WHERE NEW.{physical.columns[column.name]} IS NULL;"
        for column in physical.table.columns
        if not column.nullable
    )
    for event in ("INSERT", "UPDATE"):
        connection.execute(f"DROP TRIGGER IF EXISTS rg_{physical.id}_{event.lower()}")
        if body:
            connection.execute(
                f"CREATE TRIGGER rg_{physical.id}_{event.lower()} BEFORE {event} ON {name} BEGIN {body} END"
            )
    for event in ("UPDATE", "DELETE"):
        connection.execute(
            f"CREATE TRIGGER IF NOT EXISTS rl_{physical.id}_{event.lower()} AFTER {event} ON {name} BEGIN "
            f"INSERT INTO table_changes (table_id, row) VALUES ({physical.id}, OLD.{ROW}); END"
        )


def drop(connection: sqlite3.Connection, physical: Physical) -> None:
    for event in ("update", "delete"):
        connection.execute(f"DROP TRIGGER IF EXISTS rl_{physical.id}_{event}")
    if physical.table.view is None:
        connection.execute(f"DROP TABLE {physical.name}")
    for log in ("table_changes", "table_segments"):
        connection.execute(f"DELETE FROM {log} WHERE table_id = ?", (physical.id,))
    connection.execute("DELETE FROM table_sequences WHERE table_id = ?", (physical.id,))
    connection.execute("DELETE FROM catalogue WHERE id = ?", (physical.id,))
    bump_version(connection)


def alter(
    connection: sqlite3.Connection, physical: Physical, table: Table, others: dict[str, Physical]
) -> tuple[Physical, list[Column]]:
    """Add and drop columns, so that a table becomes `table`. Return the added columns, whose defaults the caller fills
    in."""
    old = physical.table
    for event in ("insert", "update"):
        connection.execute(f"DROP TRIGGER IF EXISTS rg_{physical.id}_{event}")
    names = dict(physical.columns)
    kept = {column.name for column in table.columns}
    for index in old.indexes:
        if index not in table.indexes:
            drop_index(connection, physical, index)
    if old.primary_key and not table.primary_key:
        connection.execute(f"DROP INDEX IF EXISTS rk_{physical.id}")
    referring = {name for reference in old.references for name in reference.columns}
    for name in [name for name in names if name not in kept]:
        place = names.pop(name)
        connection.execute("DELETE FROM table_segments WHERE table_id = ? AND place = ?", (physical.id, place))
        if name in referring:  # SQLite cannot drop a column of a foreign key; it stays, empty and unnamed
            connection.execute(f"UPDATE {physical.name} SET {place} = NULL")
        else:
            connection.execute(f"ALTER TABLE {physical.name} DROP COLUMN {place}")
    added = [column for column in table.columns if column.name not in names]
    places = [row[1] for row in connection.execute(f"PRAGMA table_info({physical.name})") if row[1] != ROW]
    highest = max((int(place[1:]) for place in places), default=0)
    for count, column in enumerate(added, highest + 1):
        names[column.name] = f"c{count}"
        words = f"{names[column.name]} {column_type(NAMES[column.type.kind])}"
        for reference in table.references:
            if reference.columns == (column.name,):
                other = others[reference.table] if reference.table != old.name else Physical(physical.id, table, names)
                words += f" {_reference(reference, other)}"
        connection.execute(f"ALTER TABLE {physical.name} ADD COLUMN {words}")
    return Physical(physical.id, table, names), added


def finish(connection: sqlite3.Connection, old: Physical, physical: Physical, added: Sequence[Column]) -> None:
    """Create indexes and check conditions, after the defaults of new columns are filled in."""
    for index in physical.table.indexes:
        if index not in old.table.indexes:
            create_index(connection, physical, index)
    for column in added:
        empty = f"SELECT 1 FROM {physical.name} WHERE {physical.columns[column.name]} IS NULL LIMIT 1"
        if not column.nullable and connection.execute(empty).fetchone():
            raise ConstraintError(f'column "{column.name}" of relation "{physical.table.name}" contains null values')
    broken = broken_check(connection, physical, "true")
    if broken is not None:
        raise broken
    guard(connection, physical)
    save(connection, physical)
