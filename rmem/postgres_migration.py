"""Copy an SQLite file into PostgreSQL, row by row and unchanged: tiers, packed and encrypted bodies, vectors, access
counts, feedback, the trash, the audit log, keys, metadata, and the tables of users.

The target records which file it is filled from until everything was compared, so that an interrupted run continues
where it stopped, and nothing is mixed into a store that holds something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import ConfigError, StoreError
from .extras import require
from .stores import is_postgres, open_file, open_postgres
from .stores.base import Progress
from .stores.sql import facts, rows
from .stores.sql.connection import Connection
from .stores.sql.records import SqlRecords
from .stores.sql.sqlite import SqliteRecordStore

if TYPE_CHECKING:
    from .stores.sql.postgres import PostgresRecordStore
    from .tables.move import TableMove


_BATCH = 512
_MIGRATING = "migrating from"
_READ = f"SELECT {', '.join(rows.COLUMNS)} FROM memories WHERE seq > ? ORDER BY seq LIMIT ?"
_COPIED_WHOLE = {  # tables copied in one piece, and the columns that order them
    "access": ("born, last, count", "born"),
    "judgements": ("recall, memory, question, agent, type, rank, score, useful, time", "recall, memory"),
    "trash": ("id, removed, until, data", "id"),
    "audit": ("n, time, who, action, memory, detail, seal", "n"),
    "keys": ("kind, version, wrapped, master, created", "kind, version"),
    "dictionaries": ("data", "data"),
    "notes": ("key, value", "key"),
    "facts": (", ".join(facts.COLUMNS), "seq, number"),
}
_NOT_COPIED = (_MIGRATING, "reembedding", "tables")  # metadata


def migrate(
    source: str | Path, target: str, *, dry_run: bool = False, on_progress: Progress | None = None
) -> dict[str, Any]:
    """Copy all memories and tables of a file into an empty tenant, or continue; return the number of rows by table."""
    if not is_postgres(target):
        raise ConfigError("the target must be postgresql://…; to copy an SQLite file use `rmem backup`")
    if is_postgres(source):
        raise ConfigError("the source must be an SQLite file")
    require("postgres", "rmem migrate")
    from .tables.move import move

    old, new = open_file(source, encryption=False), open_postgres(target, encryption=False)
    tables = None
    try:
        tables = move(old.path, new.address.url, new.tenant)
        return _migrate_stores(old, new, tables, dry_run, on_progress)
    finally:
        if tables is not None:
            tables.close()
        old.close()
        new.close()


def _migrate_stores(
    old: SqliteRecordStore,
    new: PostgresRecordStore,
    tables: TableMove | None,
    dry_run: bool,
    on_progress: Progress | None,
) -> dict[str, Any]:
    name = blake2b(str(old.path.resolve()).encode(), digest_size=16).hexdigest()
    begun = new.get_meta(_MIGRATING)
    if begun != name and (begun is not None or new.read(_holds)):
        raise ConfigError("the target is not empty; choose another database or tenant, as in ?tenant=new")
    counts = {table: _count(old, table) for table in ("memories", *_COPIED_WHOLE)}
    tabled = {} if tables is None else tables.counts
    if dry_run:
        return {"dry_run": True, "resumed": begun == name, **counts, "tables": tabled}
    total = counts["memories"] + sum(tabled.values())

    def report(done: int) -> None:
        if on_progress is not None:
            on_progress(min(done, total), total)

    if begun is None:
        new.set_meta(_MIGRATING, name)
    for table in ("keys", "dictionaries", "notes"):
        _copy_whole(old, new, table)
    copied = _copy_memories(old, new, report)
    for table in ("access", "judgements", "trash", "audit", "facts"):
        _copy_whole(old, new, table)
    sums = {} if tables is None else tables.copy(lambda done: report(counts["memories"] + done))
    checksums = _compare_stores(old, new)
    new.write(lambda connection: connection.execute("DELETE FROM notes WHERE key = ?", (_MIGRATING,)))
    new.compact()
    return {
        "dry_run": False,
        "resumed": begun == name,
        "copied": copied,
        **counts,
        "checksum": checksums["memories"],
        "tables": tabled,
        "table_checksums": sums,
    }


def _holds(connection: Connection) -> bool:
    return any(
        connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in ("memories", *_COPIED_WHOLE)
    )


def _count(store: SqlRecords, table: str) -> int:
    sql = f"SELECT count(*) FROM {table}"
    if table == "notes":
        sql += f" WHERE key NOT IN ({', '.join(repr(key) for key in _NOT_COPIED)})"
    return int(store.read(lambda connection: connection.execute(sql).fetchone())[0])


def _copy_memories(old: SqliteRecordStore, new: PostgresRecordStore, report: Callable[[int], None]) -> int:
    """Copy the rows after the last one in the target, and remove those that the file no longer has."""
    from .stores.sql import postgres_rows
    from .stores.sql.postgres_link import PostgresConnection

    known = old.get_meta("dimension")
    dimension = None if known is None else int(known)
    (last,) = new.read(
        lambda connection: connection.execute("SELECT coalesce(max(seq), 0) FROM memories").fetchone()
    ) or (0,)
    copied, done = 0, _count(new, "memories")
    while batch := old.read(lambda connection, last=last: connection.execute(_READ, (last, _BATCH)).fetchall()):  # type: ignore[misc]

        def work(connection: PostgresConnection, batch: list[tuple[Any, ...]] = batch) -> None:
            postgres_rows.copy(connection, batch, dimension)

        new.write(work)
        copied, last = copied + len(batch), batch[-1][0]
        report(done + copied)
    sql = "SELECT seq FROM memories"
    held = {seq for (seq,) in old.read(lambda connection: connection.execute(sql).fetchall())}
    there = {seq for (seq,) in new.read(lambda connection: connection.execute(sql).fetchall())}
    for gone in there - held:
        new.write(lambda connection, gone=gone: connection.execute("DELETE FROM memories WHERE seq = ?", (gone,)))  # type: ignore[misc]
    return copied


def _copy_whole(old: SqliteRecordStore, new: PostgresRecordStore, table: str) -> None:
    columns, _ = _COPIED_WHOLE[table]
    found = list(_rows(old, table))
    kept = f" WHERE key NOT IN ({', '.join(repr(key) for key in _NOT_COPIED)})" if table == "notes" else ""

    def work(connection: Connection) -> None:
        connection.execute(f"DELETE FROM {table}{kept}")
        marks = ", ".join("?" * len(columns.split(",")))
        connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", found)

    new.write(work)


def _rows(store: SqlRecords, table: str) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a small table, in the same order and with the same types for both databases."""
    columns, order = _COPIED_WHOLE[table]
    sql = (
        f"SELECT {columns} FROM {table}"
        if table == "dictionaries"
        else f"SELECT {columns} FROM {table} ORDER BY {order}"
    )
    for row in store.read(lambda connection: connection.execute(sql).fetchall()):
        if table == "judgements":
            row = (*row[:7], bool(row[7]), row[8])
        if table != "notes" or row[0] not in _NOT_COPIED:
            yield tuple(row)


def _memories(store: SqlRecords) -> Iterator[tuple[Any, ...]]:
    last = 0
    while batch := store.read(lambda connection, last=last: connection.execute(_READ, (last, _BATCH)).fetchall()):  # type: ignore[misc]
        yield from batch
        last = batch[-1][0]


def _compare_stores(old: SqliteRecordStore, new: PostgresRecordStore) -> dict[str, str]:
    """Compare the checksums of every table of source and target; StoreError if one differs."""
    from .tables.move import Checksum

    found = {}
    for table in ("memories", *_COPIED_WHOLE):
        sums = [
            str(Checksum().add(_memories(store) if table == "memories" else _rows(store, table)))
            for store in (old, new)
        ]
        if sums[0] != sums[1]:
            raise StoreError(
                f"the {table} of source and target differ, perhaps because the source was written to meanwhile; it is "
                "as it was. Empty the target and migrate again while nobody writes"
            )
        found[table] = sums[0]
    return found
