"""The store on PostgreSQL, for many processes and machines: the rows of the SQLite store, separated by tenant.

For a tenant of up to 20,000 rows each process holds a recall index in memory, as for an SQLite file. For larger ones
the database searches and returns the candidates of a question."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import local
from typing import Literal, TypeVar

from ... import checks
from ...crypto.encryption import Encryption
from ...errors import (
    ConfigError,
    KeyMissingError,
    KeyWrongError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreUnreachableError,
)
from ...facts import VERSION as FACTS
from ...filters import Filter
from ...forks import Forking, new_lock, watch
from ...index import bits
from ...index.analyser import VERSION as ANALYSER
from ...index.candidate_source import CandidateSource
from ...index.filtered_rows import FilteredRows, FilteredRowsCache
from ...index.recall_index import RecallIndex
from ...index.vocabulary import WordVectors
from ...models import Memory
from ..base import ORDERS, Order, Progress, ReplicaState, StoreStats
from ..indexed import Derived, derive_with_facts
from ..vectors import Vector, check_vectors
from . import audit, dictionaries, inserts, postgres_rows, postgres_search, postgres_storage
from . import keys as data_keys
from .base import StoreDialect
from .connection import Connection as AnyConnection
from .encrypted_rows import Seal
from .postgres_filters import Condition, condition
from .postgres_index import (
    SNAPSHOT_KEYS,
    TenantFollower,
    TenantSnapshot,
    TenantState,
    dimension_of,
    read_snapshot,
    state,
)
from .postgres_link import Address, PostgresConnection, PostgresLink
from .postgres_replicas import STALENESS, Replicas
from .postgres_schema import prepare
from .postgres_search import PostgresCandidates
from .postgres_vectors import HnswIndex
from .postgres_writer import PostgresWriter
from .receipts import put_once
from .records import SqlRecords

log = logging.getLogger(__name__)

Result = TypeVar("Result")

HELD_UP_TO = 20_000  # rows of a tenant that are indexed in memory
_MAX_RETRIES = 50  # of a read for which the index is already newer
_PRUNE_FROM, _CHANGES_KEPT = 2048, 8192  # writes between two prunings of the change log, and entries kept
_MAX_AGENT_INDEXES = 8  # of large tenants
_ORDERS: dict[Order, str] = {
    "oldest": "m.time, m.seq",
    "newest": "m.time DESC, m.seq DESC",
    "step": "m.step, m.time, m.seq",
    "last step": "m.step DESC, m.time DESC, m.seq DESC",
    "importance": "m.importance DESC, m.time DESC, m.seq DESC",
}


class _ReadTransaction(local):
    """The read transaction of a thread, and the state of the tenant in it."""

    connection: PostgresConnection | None = None
    snapshot: TenantSnapshot | None = None


class PostgresRecordStore(SqlRecords, Forking):
    """`PostgresRecordStore("postgresql://user@host/database", tenant="acme")`. A tenant sees nothing of others; the
    address may name it too, as `?tenant=acme`. `patience` is how many seconds to wait for a server that is away, and
    `held_up_to` how many rows are held in memory. `durability="normal"` leaves it to the server when a commit is on
    disk. `replicas` are addresses of streaming replicas that answer recalls while they are at most `staleness` seconds
    behind; the address may name them too, as `?replica=…&staleness=5`."""

    dialect = StoreDialect(
        touch="INSERT INTO access (born, last, count) SELECT m.born, t.last, t.count "
        "FROM unnest(?::float8[], ?::bigint[], ?::text[]) t(last, count, id), "
        "LATERAL (SELECT born FROM memories WHERE id = t.id LIMIT 1) m "  # LIMIT: look up each by the index
        "ON CONFLICT (tenant, born) DO UPDATE SET last = greatest(access.last, excluded.last), "
        "count = access.count + excluded.count",
        set_meta="INSERT INTO notes VALUES (?, ?) ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value",
        read=postgres_rows.READ,
    )
    changes_kept = _CHANGES_KEPT

    def __init__(
        self,
        address: str,
        *,
        tenant: str | None = None,
        durability: str = "full",
        patience: float = 5.0,
        held_up_to: int = HELD_UP_TO,
        word_vectors: WordVectors | None = None,
        encryption: Encryption | Literal[False] | None = None,
        replicas: Sequence[str] = (),
        staleness: float | None = None,
    ) -> None:
        super().__init__(word_vectors, encryption)
        checks.one_of("durability", durability, ("full", "normal"))
        self._held_up_to = checks.whole("held_up_to", held_up_to)
        self.address = Address.of(checks.text("address", address))
        self.tenant = _tenant(tenant, self.address.tenant)
        self._frame = prepare(self.address, self.tenant, durable=durability == "full")
        self._link = PostgresLink(self.address, patience=checks.number("patience", patience, low=0))
        self._replicas: Replicas | None = None
        if found := [Address.of(replica) for replica in (*self.address.replicas, *replicas)]:
            bound = next((given for given in (staleness, self.address.staleness) if given is not None), STALENESS)
            self._replicas = Replicas(self._link, self._frame, found, bound)
        self._reset_memory()
        watch(self)

    def _reset_memory(self) -> None:
        """Create the writer and the indexes in memory."""
        on_commit = None if self._replicas is None else self._replicas.on_commit
        self._writer = PostgresWriter(self._link, self._frame, self.touches, self.dialect.touch, on_commit)
        self._reading = _ReadTransaction()
        self._all_rows = TenantFollower(self.index)
        self._unpruned = 0  # writes since the change log was shortened
        self._agent_indexes: OrderedDict[tuple[str, ...] | None, tuple[TenantFollower, FilteredRowsCache]] = (
            OrderedDict()
        )
        self._agent_indexes_lock = new_lock()
        self.vocabulary = postgres_search.TenantVocabulary(self.word_vectors)
        self.hnsw = HnswIndex(self.address, self._frame)

    def after_fork_in_child(self) -> None:
        """Start with empty indexes: a thread of the parent may have been changing them. The parent writes its own
        pending counts."""
        super().__init__(self.word_vectors, self.encryption or False)
        self._reset_memory()

    # Transactions

    def read(self, work: Callable[[PostgresConnection], Result]) -> Result:
        connection = self._reading.connection
        return self._link.read(self._frame, work) if connection is None else work(connection)

    def read_transaction(self, work: Callable[[], Result]) -> Result:
        if self._reading.connection is not None:
            return work()
        for _ in range(_MAX_RETRIES):
            try:
                return self._read_once(self._link, work)
            except _IndexIsNewer:  # retry in a newer transaction
                continue
        raise StoreBusyError("other threads read newer states of this store all the time; try again")

    def recall_transaction(self, work: Callable[[], Result]) -> Result:
        replica = self._replicas.choose() if self._replicas and self._reading.connection is None else None
        if replica is not None:
            assert self._replicas is not None
            try:
                return self._read_once(replica.link, work)
            except _IndexIsNewer:
                pass  # the index has newer rows than the replica
            except (StoreUnreachableError, StoreBusyError) as error:
                self._replicas.fail(replica, error)
        return self.read_transaction(work)

    def _read_once(self, link: PostgresLink, work: Callable[[], Result]) -> Result:
        """Run `work` in one read transaction of a server."""

        def inside(connection: PostgresConnection) -> Result:
            self._reading.connection, self._reading.snapshot = connection, None
            try:
                return work()
            finally:
                self._reading.connection = self._reading.snapshot = None

        return link.read(self._frame, inside)

    @property
    def write_mark(self) -> int:
        return 0 if self._replicas is None else self._replicas.write_mark

    @write_mark.setter
    def write_mark(self, mark: int) -> None:
        if self._replicas is not None:
            self._replicas.write_mark = max(self._replicas.write_mark, mark)

    def replica_states(self) -> Sequence[ReplicaState]:
        return () if self._replicas is None else self._replicas.states()

    def _snapshot(self, connection: PostgresConnection) -> TenantSnapshot:
        """Return the state of the tenant; read once in the read transaction of this thread."""
        snapshot = self._reading.snapshot
        if snapshot is None:
            snapshot = read_snapshot(connection)
            if self._reading.connection is connection:
                self._reading.snapshot = snapshot
        return snapshot

    def get_meta(self, key: str) -> str | None:
        if key in SNAPSHOT_KEYS and self._reading.connection is not None:
            return self.read(self._snapshot).meta.get(key)
        return super().get_meta(key)

    def write(self, work: Callable[[PostgresConnection], Result]) -> Result:
        return self._writer.run(work)

    def flush(self) -> None:
        if self.touches:
            self.write(lambda connection: None)

    # Writing

    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        if not memories:
            return []
        checked = [memory.copied() for memory in memories]
        check_vectors(checked)
        derived = derive_with_facts(checked)

        held = 0

        def work(connection: PostgresConnection) -> list[Memory]:
            nonlocal held
            kept = self.insert(connection, [memory.copied() for memory in checked], derived)[0]  # it may be repeated
            assert connection.seen is not None
            held = connection.seen.state.rows
            return kept

        kept = put_once(self.write, work, checked)
        if held > self._held_up_to:
            self.hnsw.build_in_background()
        return kept

    def append(
        self, connection: AnyConnection, memories: Sequence[Memory], derived: Sequence[Derived], seal: Seal | None
    ) -> bool:
        assert isinstance(connection, PostgresConnection)
        snapshot = connection.seen
        if snapshot is None or snapshot.dimension is None:  # it may just have been set
            snapshot = read_snapshot(connection)
        hides = inserts.append(
            connection,
            memories,
            derived,
            self.codec,
            seal,
            snapshot.state.row,
            lambda waiting: postgres_rows.insert(connection, waiting, snapshot.dimension),
        )
        connection.seen = snapshot.after(len(memories))
        return hides

    def vector_metadata(self, connection: AnyConnection) -> Mapping[str, str]:
        assert isinstance(connection, PostgresConnection)
        connection.seen = read_snapshot(connection)
        return connection.seen.meta

    @property
    def row_estimate(self) -> int:
        return self._state().rows

    def rewrite(self, connection: AnyConnection, seq: int, memory: Memory, seal: Seal, derived: Derived) -> None:
        assert isinstance(connection, PostgresConnection)
        super().rewrite(connection, seq, memory, seal, derived)
        postgres_rows.insert_again(connection, seq, dimension_of(connection))

    def read_state(self, connection: AnyConnection) -> tuple[int, int, int]:
        assert isinstance(connection, PostgresConnection)
        return state(connection)[:3]

    def new_generation(self, connection: AnyConnection) -> None:
        connection.execute("UPDATE heads SET generation = generation + 1")

    def on_rows_rewritten(self, connection: AnyConnection, *, vectors: bool = True) -> None:
        assert isinstance(connection, PostgresConnection)
        self.new_generation(connection)
        if vectors:
            postgres_rows.embed(connection, dimension_of(connection))
            self.hnsw.refresh()

    def before_reembed(self) -> None:
        self.hnsw.drop()

    def rebuild(self) -> None:
        self.hnsw.refresh()
        self.compact()

    def derive_terms(self, on_progress: Progress | None = None, *, all_rows: bool = False) -> int:
        """Derive the terms of every row again, if the analyser has changed or on request: this rewrites all rows."""
        known = self.get_meta("analyser"), self.get_meta("facts")
        if not all_rows and known in ((None, None), (str(ANALYSER), str(FACTS))):
            return 0
        sql = "SELECT id FROM memories ORDER BY seq"
        ids = self.read(lambda connection: [key for (key,) in connection.execute(sql)])
        done = 0
        for number, key in enumerate(ids, 1):
            with suppress(KeyMissingError, KeyWrongError, StoreCorruptError):  # unreadable rows stay as they are
                done += self.change(key, lambda memory: memory) is not None
            if on_progress is not None:
                on_progress(number, len(ids))
        self.set_meta("analyser", str(ANALYSER))
        self.set_meta("facts", str(FACTS))
        return done

    def describe(self) -> str:
        return self.read(postgres_storage.describe)

    def check_storage(self) -> tuple[str, bool, str]:
        return self.read(postgres_storage.check_counters)

    def compact(self) -> None:
        """Update statistics and indexes for the newest rows."""
        if not self._is_held():
            self.hnsw.build()

    def scrub(self, *, rewrite: bool = False) -> None:
        """Rewrite the tables without the removed rows, or only vacuum them if they are large and others would wait. The
        server's write-ahead log and backups are the responsibility of its operator."""
        postgres_storage.scrub(self._link, self._frame)
        self._unscrubbed = False

    def broken_audit(self) -> list[int]:
        def work(connection: PostgresConnection) -> list[int]:
            found = connection.execute("SELECT audit FROM heads").fetchone()
            return list(audit.broken(connection, 0 if found is None else found[0], self.audit_chain))

        return self.read(work)

    def on_write(self, number: int) -> None:
        """Prune the change log from time to time. Indexes that missed pruned entries are rebuilt."""
        self._unpruned += number
        if self._unpruned < _PRUNE_FROM:
            return
        self._unpruned = 0
        try:
            self.write(
                lambda connection: connection.execute(
                    "DELETE FROM changes WHERE n <= (SELECT change FROM heads) - ?", (_CHANGES_KEPT,)
                )
            )
        except StoreError as error:
            log.warning("the change log was not shortened: %s", error)

    # Reading

    def _state(self) -> TenantState:
        return self.read(state)

    def _is_held(self) -> bool:
        """Whether all rows are indexed in memory."""
        return self._state().rows <= self._held_up_to

    def version(self) -> object:
        return self._state()[:3]

    def refresh(self) -> None:
        self._follow(self._all_rows)

    def _update_if_held(self) -> bool:
        """Return whether all rows are indexed in memory, after updating that index."""

        def work(connection: PostgresConnection) -> bool:
            now = self._snapshot(connection)
            held = now.state.rows <= self._held_up_to
            if held:
                self._catch_up(connection, self._all_rows, now)
                self.check_keys(self.index)
            return held

        return self.read(work)

    def _follow(self, follower: TenantFollower) -> None:
        self.read(lambda connection: self._catch_up(connection, follower, self._snapshot(connection)))

    def _catch_up(self, connection: PostgresConnection, follower: TenantFollower, now: TenantSnapshot) -> None:
        if not follower.is_behind(now.state):
            return
        with follower.index.lock:
            if self._reading.connection is not None and follower.is_ahead(now.state):
                raise _IndexIsNewer
            self.vault.follow(data_keys.read(connection))
            follower.follow(connection, now)
            self.use_keys(follower.index)

    def filtered_rows(self, where: Filter) -> FilteredRows:
        """Return all rows that match a filter. For a large tenant, index the rows of the filter's agents, or all."""
        with self.index.lock:  # so that no other thread updates the index beyond this transaction
            if self._update_if_held():
                return self._filtered.take(where)
        with self._agent_indexes_lock:
            key = tuple(sorted(where.agent)) if where.agent else None
            found = self._agent_indexes.pop(key, None)
            if found is None:
                index = RecallIndex(self.word_vectors)
                found = TenantFollower(index, key), FilteredRowsCache(index, self)
            self._agent_indexes[key] = found  # most recently used last
            if len(self._agent_indexes) > _MAX_AGENT_INDEXES:
                self._agent_indexes.popitem(last=False)
        follower, filtered = found
        with follower.index.lock:
            self._follow(follower)
            self.check_keys(follower.index)
            return filtered.take(where)

    def candidates(self, where: Filter) -> FilteredRows | CandidateSource:
        with self.index.lock:
            if self._update_if_held():
                return self._filtered.take(where)
        return PostgresCandidates(self, where)

    def condition(self, connection: PostgresConnection, where: Filter) -> Condition:
        """Translate a filter to SQL, without encrypted rows that cannot be read."""
        wrapped = data_keys.read(connection)
        self.vault.follow(wrapped)
        self.vault.check()
        hidden = bool(wrapped) and not self.vault.opens
        return condition(where, hides_sealed=hidden, blind_term_lookup=self.vault.blind_term_lookup())

    def select(
        self, where: Filter | None = None, *, order: Order = "oldest", limit: int | None = None, offset: int = 0
    ) -> list[Memory]:
        checks.one_of("order", order, ORDERS)
        offset = checks.whole("offset", offset)
        if limit is not None:
            checks.whole("limit", limit)
        if self._is_held():
            return super().select(where, order=order, limit=limit, offset=offset)

        def work(connection: PostgresConnection) -> list[int]:
            inside = self.condition(connection, where or Filter())
            sql = f"SELECT m.seq FROM memories m{inside.where} ORDER BY {_ORDERS[order]} LIMIT ? OFFSET ?"
            return [seq for (seq,) in connection.execute(sql, (*inside.values, limit, offset))]

        return self.read_transaction(lambda: [memory for _, memory in self.memories_at(self.read(work))])

    def count(self, where: Filter | None = None) -> int:
        def work(connection: PostgresConnection) -> int:
            inside = self.condition(connection, where or Filter())
            found = connection.execute(f"SELECT count(*) FROM memories m{inside.where}", inside.values).fetchone()
            return 0 if found is None else int(found[0])

        return self.read(work)

    def match(self, query: str, where: Filter | None = None, k: int = 10) -> list[tuple[Memory, float]]:
        if self._is_held():
            return super().match(query, where, k)
        checks.whole("k", k, low=1)
        if not isinstance(query, str):
            raise checks.refuse("query", "a text", query)
        return self.read_transaction(
            lambda: self._scored(PostgresCandidates(self, where or Filter()).best_words(query, k))
        )

    def nearest(self, vector: Vector, where: Filter | None = None, k: int = 10) -> list[tuple[Memory, float]]:
        if self._is_held():
            return super().nearest(vector, where, k)
        checks.whole("k", k, low=1)

        def read() -> list[tuple[Memory, float]]:
            candidates = PostgresCandidates(self, where or Filter())
            query = checks.vector("vector", vector, dimension=candidates.dimension)
            if candidates.dimension is None:
                return []
            return self._scored(candidates.best_vectors(bits.unit(query[None, :])[0], k))

        return self.read_transaction(read)

    def _scored(self, scores: dict[int, float]) -> list[tuple[Memory, float]]:
        return [(memory, scores[seq]) for seq, memory in self.memories_at(list(scores))]

    def stats(self) -> StoreStats:
        def work(connection: PostgresConnection) -> StoreStats:
            self.vault.follow(data_keys.read(connection))
            return postgres_storage.read_stats(connection)

        return self.read(work)

    def close(self) -> None:
        if self._link.closed:
            return
        try:
            self.flush()
            if self._encrypted:
                dictionaries.replace(self)
        except StoreError as error:
            log.info("not everything was tidied up: %s", error)
        self.hnsw.close()
        if self._replicas is not None:
            self._replicas.close()
        self._link.close()


class _IndexIsNewer(Exception):
    """The index is newer than this thread's transaction, because of another thread."""


def _tenant(option: str | None, written: str | None) -> str:
    """Return the tenant, given by the option or by the address."""
    if option is not None and written is not None and option != written:
        raise ConfigError(f"two tenants are given: {option!r} and, in the address, {written!r}")
    given = option if option is not None else written
    return "default" if given is None else checks.name("tenant", given)
