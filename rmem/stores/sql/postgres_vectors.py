"""The HNSW index over the vectors of a large tenant. Each tenant has its own, so that a search reads no other rows and
its cost depends on the tenant, not on the database. It is built in the background; until then all vectors are
compared."""

from __future__ import annotations

import logging
from threading import Thread

import psycopg

from ...errors import RemanenceError
from ...forks import new_lock
from .postgres_index import dimension_of
from .postgres_link import Address, PostgresConnection, TenantFrame, connect, lock_maintenance
from .postgres_pool import Raw

log = logging.getLogger(__name__)

_MAX_DIMENSION = 4000  # of such an index


class HnswIndex:
    """The index of one tenant, whose number is `number`."""

    def __init__(self, address: Address, frame: TenantFrame) -> None:
        self._address, self._frame = address, frame
        self.number = frame.number
        self._turn, self._lock = new_lock(), new_lock()
        self._built = self._closed = False
        self._thread: Thread | None = None
        self._raw: Raw | None = None

    def build_in_background(self) -> None:
        """Start to build the index in a thread, if there is none."""
        with self._lock:
            if not self._built and self._thread is None:
                self._thread = Thread(target=self.build, name="rmem-hnsw", daemon=True)
                self._thread.start()

    def build(self) -> None:
        """Build the index if there is none, or if it has another dimension or is unfinished; log failures, after which
        all vectors are compared."""
        with self._turn:
            if self._built or self._closed:
                return
            try:
                with connect(self._address) as raw:
                    self._raw = raw
                    self._build(raw)
            except (RemanenceError, psycopg.Error) as error:
                log.warning("no index of vectors was built: %s", str(error).strip())
            finally:
                self._raw = None

    def _build(self, raw: Raw) -> None:
        with raw.transaction():
            self._frame.apply(raw, writing=False)
            dimension = dimension_of(PostgresConnection(raw))
        if dimension is None or dimension > _MAX_DIMENSION:
            return
        self._frame.stay(raw)
        lock_maintenance(raw)
        wanted, held = f"{self._name}_{dimension}", self._held(raw)
        for found, valid in held:
            if found != wanted or not valid:
                raw.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{found}"'.encode())
        if (wanted, True) not in held:
            raw.execute("SET maintenance_work_mem = '256MB'")
            raw.execute(
                f'CREATE INDEX CONCURRENTLY "{wanted}" ON memories USING hnsw ((embedding::halfvec({dimension})) '
                f"halfvec_cosine_ops) WHERE tenant = {self.number} AND embedding IS NOT NULL".encode()
            )
        raw.execute("ANALYZE memories, postings, words")
        self._built = True

    @property
    def _name(self) -> str:
        return f"memories_near_{self.number & 0xFFFFFFFFFFFFFFFF:016x}"

    def _held(self, raw: Raw) -> list[tuple[str, bool]]:
        """Return the indexes of this tenant, and whether they can be used."""
        return raw.execute(
            "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "WHERE i.indrelid = 'memories'::regclass AND c.relname LIKE %s",
            [f"{self._name}%"],
        ).fetchall()

    def drop(self) -> None:
        """Drop the index, before vectors of another dimension are written."""
        with self._turn, connect(self._address) as raw:
            self._frame.stay(raw)
            lock_maintenance(raw)
            for name, _ in self._held(raw):
                raw.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"'.encode())
            self._built = False

    def refresh(self) -> None:
        """Check again whether there is an index."""
        self._built = False

    def close(self) -> None:
        self._closed = True
        raw, thread = self._raw, self._thread
        if raw is not None:
            raw.cancel_safe()
        if thread is not None:
            thread.join(5)
