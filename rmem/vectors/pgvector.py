"""Vectors in a table of PostgreSQL with pgvector and an HNSW index: for SQLite files, or on another server. A store on
PostgreSQL needs none of this: it keeps its vectors itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ConfigError
from ..extras import require
from ..forks import new_lock
from .base import (
    NAME_FIELDS,
    EngineAddress,
    FieldFilter,
    Fields,
    Matrix,
    Vector,
    VectorIndex,
    check_batch,
    check_dimension,
    read_token,
    translate_errors,
)

_MAX_INDEXED = 4000  # dimensions that an index of half precision supports
_BATCH = 512  # rows in one statement


class PgvectorIndex(VectorIndex):
    """`PgvectorIndex("pgvector://user@host:5432/database?collection=notes")`. A password is RMEM_VECTORS_TOKEN or
    whatever libpq finds; `socket=/folder` is for a server without a port."""

    def __init__(self, address: str, collection: str = "rmem") -> None:
        require("pgvector", "pgvector")
        parsed = EngineAddress(address, collection, ["socket"])
        if not parsed.path:
            raise ConfigError("pgvector:// must name a database: pgvector://user@host/database")
        self.name = parsed.shown
        self._table = f"rmem_vectors_{parsed.collection.lower()}"
        self._options: dict[str, Any] = {
            "host": parsed.options.get("socket") or parsed.host or None,
            "port": parsed.port,
            "user": parsed.parts.username,
            "dbname": parsed.path,
            "password": read_token(),
        }
        self._lock = new_lock()
        self._pool: Any = None
        self._dimension: int | None = None

    def _connection(self) -> Any:
        """Borrow a connection that knows pgvector's types. The pool is opened at first use."""
        with self._lock:
            if self._pool is None:
                from psycopg_pool import ConnectionPool

                given = {key: value for key, value in self._options.items() if value is not None}
                given |= {"autocommit": True, "connect_timeout": 5}
                self._pool = ConnectionPool(
                    kwargs=given, min_size=0, max_size=4, timeout=10, open=True, configure=_configure
                )
            return self._pool.connection()

    def _get_dimension(self, connection: Any) -> int | None:
        if self._dimension is None:
            found = connection.execute(
                "SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'embedding'",
                [self._table],
            ).fetchone()
            self._dimension = None if found is None else int(found[0])
        return self._dimension

    def upsert(self, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields]) -> None:
        with translate_errors(self.name), self._connection() as connection:
            dimension = check_batch(self.name, ids, vectors, fields, self._get_dimension(connection))
            if not len(ids):
                return
            if self._get_dimension(connection) is None:
                self._create(connection, dimension)
            rows = [
                (
                    number,
                    np.asarray(vector, np.float32),
                    *(getattr(row_fields, name) for name in NAME_FIELDS),
                    row_fields.time,
                )
                for number, vector, row_fields in zip(ids, vectors, fields, strict=True)
            ]
            columns = ("id", "embedding", *NAME_FIELDS, "time")
            changed = ", ".join(f"{name} = excluded.{name}" for name in columns[1:])
            sql = (
                f"INSERT INTO {self._table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))}) "
                f"ON CONFLICT (id) DO UPDATE SET {changed}"
            )
            with connection.transaction(), connection.cursor() as cursor:
                for start in range(0, len(rows), _BATCH):
                    cursor.executemany(sql, rows[start : start + _BATCH])

    def _create(self, connection: Any, dimension: int) -> None:
        texts = ", ".join(f"{name} text NOT NULL" for name in NAME_FIELDS)
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [self._table])
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} (id bigint PRIMARY KEY, embedding vector({dimension}) "
                f"NOT NULL, {texts}, time float8 NOT NULL)"
            )
            connection.execute(f"CREATE INDEX IF NOT EXISTS {self._table}_agent ON {self._table} (agent)")
            if dimension <= _MAX_INDEXED:
                connection.execute(
                    f"CREATE INDEX IF NOT EXISTS {self._table}_near ON {self._table} USING hnsw "
                    f"((embedding::halfvec({dimension})) halfvec_cosine_ops)"
                )
        self._dimension = dimension

    def delete(self, ids: Sequence[int]) -> None:
        with translate_errors(self.name), self._connection() as connection:
            if len(ids) and self._get_dimension(connection) is not None:
                connection.execute(f"DELETE FROM {self._table} WHERE id = ANY(%s)", [list(ids)])

    def search(self, vector: Vector, k: int, where: FieldFilter | None = None) -> list[tuple[int, float]]:
        with translate_errors(self.name), self._connection() as connection:
            if self._get_dimension(connection) is None:
                return []
            check_dimension(self.name, vector.size, self._dimension)
            tests, values = _condition(where or FieldFilter())
            kind = f"halfvec({self._dimension})"
            sql = (
                f"SELECT id, 1 - (embedding <=> %s) FROM {self._table}{tests} "
                f"ORDER BY embedding::{kind} <=> %s::vector::{kind} LIMIT %s"
            )
            with connection.transaction():
                connection.execute("SELECT set_config('hnsw.ef_search', %s, true)", [str(min(1000, max(40, k)))])
                connection.execute("SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true)")
                found = connection.execute(sql, [vector, *values, vector, k]).fetchall()
            return sorted(((int(number), float(score)) for number, score in found), key=lambda hit: -hit[1])

    def clear(self, known: Sequence[int] = ()) -> None:
        with translate_errors(self.name), self._connection() as connection:
            connection.execute(f"DROP TABLE IF EXISTS {self._table}")
            self._dimension = None

    def count(self) -> int:
        with translate_errors(self.name), self._connection() as connection:
            if self._get_dimension(connection) is None:
                return 0
            return int(connection.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0])

    def close(self) -> None:
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None


def _configure(connection: Any) -> None:
    from pgvector.psycopg import register_vector

    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    register_vector(connection)


def _condition(where: FieldFilter) -> tuple[str, list[Any]]:
    tests = [f"{name} = ANY(%s)" for name in where.names]
    values: list[Any] = list(where.names.values())
    for test, value in (("time >= %s", where.since), ("time <= %s", where.until)):
        if value is not None:
            tests.append(test)
            values.append(value)
    return (f" WHERE {' AND '.join(tests)}" if tests else ""), values
