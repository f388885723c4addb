"""Move the memories of one tenant from one PostgreSQL server to another while they are in use.

Rows are compared and copied in chunks. Each pass copies, from one snapshot of the source, the chunks that changed since
the last one (a chunk is marked by the transactions that wrote its rows), and compares digests of both sides. The last
pass runs while the head of the tenant is locked, which every writer locks first. The source then says in its head that
the rows are elsewhere, in the transaction that held the lock: that commit is the move. All state is in the two
databases, so a move that was killed is begun again and goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg

from ...errors import ConfigError, StoreBusyError, StoreError
from . import facts
from .postgres_link import ARRIVING, Address, TenantFrame, connect, explain
from .postgres_pool import Raw
from .postgres_schema import memory_columns, prepare
from .postgres_vectors import HnswIndex

_SHIFT = 10  # a chunk has 1024 numbers
_LOCK_SECONDS = 10
_SETTINGS = b"SET bytea_output = hex; SET extra_float_digits = 1; SET jit = off"


class _Part(NamedTuple):
    """A table: its columns, the expression that says in which chunk a row is, and the number that it is made of."""

    columns: tuple[str, ...]
    chunk: str
    number: str | None = None

    def inside(self, chunk: int) -> str:
        if self.number is None:
            return f"{self.chunk} = {chunk}"
        return f"{self.number} >= {chunk << _SHIFT} AND {self.number} < {chunk + 1 << _SHIFT}"

    @property
    def compared(self) -> str:
        """The columns as texts that are the same on both sides."""
        return ", ".join("halfvec_send(embedding)" if name == "embedding" else name for name in self.columns)


def _numbered(columns: Iterable[str], number: str) -> _Part:
    return _Part(tuple(columns), f"({number} >> {_SHIFT})", number)


def _hashed(columns: str, key: str) -> _Part:
    return _Part(tuple(columns.split(", ")), f"(get_byte(sha256(convert_to({key}, 'UTF8')), 0) & 63)")


_PARTS = {  # in the order in which rows are added; postings, words and counters follow memories by triggers
    "keys": _Part(("kind", "version", "wrapped", "master", "created"), "0"),
    "dictionaries": _Part(("data",), "0"),
    "notes": _hashed("key, value", "key"),
    "memories": _numbered(memory_columns(), "seq"),
    "facts": _numbered(facts.COLUMNS, "seq"),
    "staged": _numbered(("seq", "vector"), "seq"),
    "access": _numbered(("born", "last", "count"), "born"),
    "audit": _numbered(("n", "time", "who", "action", "memory", "detail", "seal"), "n"),
    "trash": _hashed("id, removed, until, data", "id"),
    "judgements": _hashed("recall, memory, question, agent, type, rank, score, useful, time", "recall"),
}
_DERIVED = ("postings", "words", "changes")
_Chunks = dict[int, Any]
Progress = Callable[[int, int], None]


class _Side:
    """One of the two servers."""

    def __init__(self, address: str, tenant: str) -> None:
        self.address = Address.of(address)
        self.frame: TenantFrame = prepare(self.address, tenant)

    @contextmanager
    def session(self) -> Iterator[Raw]:
        with connect(self.address) as raw:
            try:
                raw.execute(_SETTINGS)
                yield raw
            except psycopg.Error as error:
                raise explain(error, self.address) from error

    @contextmanager
    def transaction(self, raw: Raw, kind: str = "") -> Iterator[None]:
        raw.execute(f"BEGIN {kind}".encode())
        try:
            self.frame.apply(raw, writing=True)
            yield
        except BaseException:
            if not raw.closed:
                raw.execute("ROLLBACK")
            raise
        raw.execute("COMMIT")

    def head(self) -> str | None:
        """Return `moved` of the tenant's head: NULL, ARRIVING or the name of another server."""
        with self.session() as raw, self.transaction(raw):
            return str(found) if (found := _one(raw, "SELECT moved FROM heads")[0]) is not None else None


class TenantMove:
    """Moves one tenant from the server `source` to the server `target`."""

    def __init__(self, source: str, target: str, tenant: str) -> None:
        self._old, self._new = _Side(source, tenant), _Side(target, tenant)
        self._marks: dict[str, _Chunks] = {}
        """The marks of the source's chunks when both sides were last compared."""

    @property
    def left_for(self) -> str | None:
        """Return the name of the server to which the rows were moved, if so."""
        return self._old.head()

    def begin(self) -> None:
        """Lock the target for the move; refuse if it already has rows."""
        with self._new.session() as raw, self._new.transaction(raw):
            (moved,) = _one(raw, "SELECT moved FROM heads FOR UPDATE")
            if moved is None and any(_one(raw, f"SELECT EXISTS (SELECT 1 FROM {table})")[0] for table in _PARTS):
                raise ConfigError(
                    f"{self._new.address.shown} holds other memories of this workspace; remove them first"
                )
            raw.execute("UPDATE heads SET moved = %s", [ARRIVING])

    def copy(self, on_progress: Progress | None = None) -> int:
        """Copy what differs from the source to the target; return the number of copied chunks."""
        before, self._marks = self._marks, {}
        with self._old.session() as old, self._new.session() as new:
            with self._old.transaction(old, "ISOLATION LEVEL REPEATABLE READ READ ONLY"):
                now = {table: _marks(old, table) for table in _PARTS}
                if before:
                    changed = {table: _changed_chunks(before[table], now[table]) for table in _PARTS}
                else:
                    with self._new.transaction(new):
                        changed = {
                            table: _changed_chunks(_digests(old, table), _digests(new, table)) for table in _PARTS
                        }
                changed["facts"] |= changed["memories"]  # facts are removed with their memories
                self._replace(old, new, changed, on_progress)
            self._marks = now
        return sum(map(len, changed.values()))

    def _replace(self, old: Raw, new: Raw, changed: Mapping[str, set[int]], on_progress: Progress | None) -> None:
        with self._new.transaction(new):
            for table in reversed(_PARTS):
                for chunk in changed[table]:
                    new.execute(f"DELETE FROM {table} WHERE {_PARTS[table].inside(chunk)}".encode())
        total, done = sum(map(len, changed.values())), 0
        for table, chunks in changed.items():
            for chunk in sorted(chunks):
                with self._new.transaction(new):
                    _copy_chunk(old, new, table, chunk)
                    if _digests(old, table, chunk) != _digests(new, table, chunk):
                        raise StoreError(f"some {table} did not arrive as they are; nothing was moved. Try again")
                done += 1
                if on_progress is not None:
                    on_progress(done, total)

    def build_index(self, held_up_to: int) -> None:
        """Build the index of vectors on the target before it is used, if the tenant is large."""
        with self._new.session() as raw, self._new.transaction(raw):
            (rows,) = _one(raw, "SELECT rows FROM heads")
        if rows > held_up_to:
            neighbours = HnswIndex(self._new.address, self._new.frame)
            neighbours.build()
            neighbours.close()

    @contextmanager
    def locked(self) -> Iterator[Raw]:
        """Block all writers of the source. The transaction of the connection is committed at the end, with `leave`."""
        with self._old.session() as raw:
            try:
                with self._old.transaction(raw):
                    raw.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'".encode())
                    raw.execute("SELECT 1 FROM heads FOR UPDATE")
                    raw.execute("SET LOCAL ROLE NONE")
                    yield raw
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
                raise StoreBusyError("writers did not let the workspace be locked; run the move again") from error

    def leave(self, raw: Raw, to: str) -> None:
        """Check that the target has everything, and mark the source as moved to `to`, in the transaction of
        `locked`."""
        self._old.frame.apply(raw, writing=True)
        counters = "seq, audit, generation, rows, length"
        seq, audit, generation, *counted = _one(raw, f"SELECT {counters} FROM heads")
        with self._new.session() as new, self._new.transaction(new):
            there = _one(new, "SELECT rows, length FROM heads")
            if list(there) != counted:
                raise StoreError(
                    f"{there[0]:,} memories arrived, {counted[0]:,} were sent; nothing was moved. Try again"
                )
            sql = "UPDATE heads SET seq = %s, audit = %s, generation = greatest(generation, %s) + 1"
            new.execute(sql, [seq, audit, generation])
        raw.execute("UPDATE heads SET moved = %s", [to])

    def arrive(self) -> None:
        """Open the target for use."""
        with self._new.session() as raw, self._new.transaction(raw):
            raw.execute("UPDATE heads SET moved = NULL WHERE moved = %s", [ARRIVING])

    def erase_source(self) -> None:
        """Remove the moved rows from the source. Its head stays, with the new place."""
        if self.left_for is None:
            raise StoreError("the source still has the only copy of these memories; nothing was removed")
        with self._old.session() as raw:
            for table, part in reversed(_PARTS.items()):
                with self._old.transaction(raw):
                    chunks = _marks(raw, table)
                for chunk in chunks:
                    with self._old.transaction(raw):
                        raw.execute(f"DELETE FROM {table} WHERE {part.inside(chunk)}".encode())
            with self._old.transaction(raw):
                for table in _DERIVED:
                    raw.execute(f"DELETE FROM {table}".encode())
        neighbours = HnswIndex(self._old.address, self._old.frame)
        neighbours.drop()
        neighbours.close()


def _marks(raw: Raw, table: str) -> _Chunks:
    """Return a mark of each chunk that changes with its rows, from their positions and transactions."""
    part = _PARTS[table]
    sql = f"SELECT {part.chunk}, count(*), sum(hashtextextended(xmin::text || ctid::text, 0)) FROM {table} GROUP BY 1"
    return {chunk: (count, mark) for chunk, count, mark in raw.execute(sql.encode())}


def _digests(raw: Raw, table: str, chunk: int | None = None) -> _Chunks:
    """Return the number of rows of each chunk, and a digest of all their values."""
    part = _PARTS[table]
    where = "" if chunk is None else f" WHERE {part.inside(chunk)}"
    sql = (
        "SELECT chunk, count(*), sha256(string_agg(digest, ''::bytea ORDER BY digest)) FROM "
        f"(SELECT {part.chunk} AS chunk, sha256(convert_to(ROW({part.compared})::text, 'UTF8')) AS digest "
        f"FROM {table}{where}) AS _ GROUP BY 1"
    )
    return {chunk: (count, digest) for chunk, count, digest in raw.execute(sql.encode())}


def _changed_chunks(before: _Chunks, now: _Chunks) -> set[int]:
    return {chunk for chunk in before.keys() | now.keys() if before.get(chunk) != now.get(chunk)}


def _copy_chunk(old: Raw, new: Raw, table: str, chunk: int) -> None:
    """Copy a chunk through a temporary table: COPY cannot write to tables with row-level security."""
    part = _PARTS[table]
    names = ", ".join(part.columns)
    new.execute(f"CREATE TEMP TABLE incoming ON COMMIT DROP AS SELECT {names} FROM {table} WITH NO DATA".encode())
    sent = f"COPY (SELECT {names} FROM {table} WHERE {part.inside(chunk)}) TO STDOUT (FORMAT binary)".encode()
    with (
        old.cursor() as reading,
        new.cursor() as writing,
        reading.copy(sent) as out,
        writing.copy(b"COPY pg_temp.incoming FROM STDIN (FORMAT binary)") as into,
    ):
        for data in out:
            into.write(data)
    new.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM pg_temp.incoming ORDER BY 1".encode())


def _one(raw: Raw, sql: str) -> tuple[Any, ...]:
    row = raw.execute(sql.encode()).fetchone()
    assert row is not None
    return row
