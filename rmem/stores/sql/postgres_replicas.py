"""Read replicas of a PostgreSQL database: choose one that is fresh enough for a recall.

A thread for each server polls its position in the write-ahead log. The position of a replica is compared with earlier
positions of the primary: no clocks are compared, and the replica of an idle primary does not count as late."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from threading import Event, Thread
from typing import NamedTuple

import psycopg

from ... import checks
from ...errors import StoreError, StoreUnreachableError
from ...forks import Forking, new_lock, watch
from ..base import ReplicaState
from .postgres_link import Address, PostgresConnection, PostgresLink, TenantFrame
from .postgres_pool import Raw, line

log = logging.getLogger(__name__)

STALENESS = 5.0  # seconds
_POLL = 1.0  # seconds at most between two polls of a server
_KEPT = 64  # positions of a server
_SYSTEM = "(SELECT system_identifier FROM pg_control_system())"
_PRIMARY = f"SELECT (pg_current_wal_lsn() - '0/0')::bigint, {_SYSTEM}"
_REPLAYED = "CASE WHEN pg_is_in_recovery() THEN (pg_last_wal_replay_lsn() - '0/0')::bigint END"
_REPLICA = f"SELECT {_REPLAYED}, {_SYSTEM}"


class Position(NamedTuple):
    """The least position of a server at a time of this machine's monotonic clock."""

    at: float
    lsn: int
    system: int


class _Watcher(Forking):
    """Polls the position of one server in its own thread, so that a server that hangs does not delay others."""

    def __init__(self, address: Address, sql: str, pause: float) -> None:
        self.address, self._sql, self._pause = address, sql, pause
        self.users = 0
        self.positions: deque[Position] = deque(maxlen=_KEPT)
        self.problem: str | None = None
        self._ended = Event()
        self._lock = new_lock()
        self._thread: Thread | None = None
        watch(self)

    def ensure(self) -> None:
        """Start the thread unless it runs, as after a fork."""
        with self._lock:
            if self._thread is None:
                self._ended = Event()
                self._thread = Thread(target=self._run, args=(self._ended,), name="rmem-replicas", daemon=True)
                self._thread.start()

    def after_fork_in_child(self) -> None:
        self._thread = None

    def end(self) -> None:
        self._ended.set()

    def _run(self, ended: Event) -> None:
        raw: Raw | None = None
        while not ended.is_set():
            try:
                if raw is None:
                    raw = Raw.connect(self.address.url, autocommit=True, connect_timeout=2)
                at = time.monotonic()  # before the query: the position was reached at this time or earlier
                found = raw.execute(self._sql.encode()).fetchone()
                assert found is not None
                if found[0] is None:
                    self.problem = "it is no replica, or none any more"
                else:
                    self.add(Position(at, *found))
            except psycopg.Error as error:
                self.problem = line(error)
                if raw is not None:
                    raw.close()
                raw = None
            ended.wait(self._pause)
        if raw is not None:
            raw.close()

    def add(self, position: Position) -> None:
        self.positions.append(position)
        self.problem = None


_WATCHERS: dict[tuple[str, str], _Watcher] = {}
_LOCK = new_lock()


def _join_watcher(address: Address, sql: str, pause: float) -> _Watcher:
    """Return the watcher of a server; all stores of a process share it."""
    with _LOCK:
        found = _WATCHERS.setdefault((address.url, sql), _Watcher(address, sql, pause))
        found.users += 1
    found.ensure()
    return found


def _leave_watcher(watcher: _Watcher, sql: str) -> None:
    with _LOCK:
        watcher.users -= 1
        if not watcher.users:
            watcher.end()
            _WATCHERS.pop((watcher.address.url, sql), None)


class Replica:
    """A replica with its connections and its watcher."""

    def __init__(self, address: Address, pause: float) -> None:
        self.address = address
        self.watcher = _join_watcher(address, _REPLICA, pause)
        self.link = PostgresLink(address, patience=0)  # do not wait: the primary can answer
        self.failed = 0.0  # time of the last failure

    def poll(self, frame: TenantFrame) -> None:
        """Read its position now."""
        at = time.monotonic()

        def read_position(connection: PostgresConnection) -> tuple[int | None, int]:
            found = connection.execute(_REPLICA).fetchone()
            assert found is not None
            return found[0], found[1]

        lsn, system = self.link.read(frame, read_position)
        if lsn is not None:
            self.watcher.add(Position(at, lsn, system))

    def close(self) -> None:
        _leave_watcher(self.watcher, _REPLICA)
        self.link.close()


class Replicas:
    """The replicas of one store. `write_mark` is the position of the last commit of this process: replicas that have
    not replayed it are not used."""

    def __init__(
        self, primary: PostgresLink, frame: TenantFrame, addresses: Sequence[Address], staleness: float
    ) -> None:
        self._primary, self._frame = primary, frame
        self.bound = checks.number("staleness", staleness, low=0.1)
        pause = min(_POLL, self.bound / 4)
        self._watcher = _join_watcher(primary.address, _PRIMARY, pause)
        self._all = [Replica(address, pause) for address in addresses]
        self._turn = 0
        self._excluded: dict[str, str] = {}  # replicas that are not used, and the logged reason
        self._unknown_since: float | None = None  # since when the position of a commit is unknown
        self.write_mark = 0
        self.on_commit()

    def on_commit(self) -> None:
        """Read the position of the primary after a commit; must not fail."""
        sql = "pg_current_wal_lsn()" if self._frame.durable else "pg_current_wal_insert_lsn()"

        def read_position(connection: PostgresConnection) -> int:
            found = connection.execute(f"SELECT ({sql} - '0/0')::bigint").fetchone()
            assert found is not None
            return int(found[0])

        try:
            self.write_mark = max(self.write_mark, self._primary.read(self._frame, read_position))
        except StoreError as error:
            self._unknown_since = time.monotonic()  # until it is known, only the primary is certain to have this commit
            log.warning("recalls go to the primary until it tells its position: %s", error)

    def choose(self) -> Replica | None:
        """Return a replica that is fresh enough, in turns; None if the primary must answer."""
        self._watcher.ensure()
        if self._unknown_since is not None:
            known = self._watcher.positions
            if not known or known[-1].at <= self._unknown_since:
                return None
            self.write_mark, self._unknown_since = max(self.write_mark, known[-1].lsn), None
        self._turn += 1
        start = self._turn % len(self._all)
        for replica in [*self._all[start:], *self._all[:start]]:
            replica.watcher.ensure()
            state = self._state(replica)
            self._log_change(state)
            if state.problem is None and self._has_replayed(replica):
                return replica
        return None

    def _has_replayed(self, replica: Replica) -> bool:
        """Whether a replica has the writes of this process; poll it if that is not known yet."""
        if replica.watcher.positions[-1].lsn >= self.write_mark:
            return True
        try:
            replica.poll(self._frame)
        except StoreError as error:
            self.fail(replica, error)
            return False
        return replica.watcher.positions[-1].lsn >= self.write_mark

    def fail(self, replica: Replica, error: StoreError) -> None:
        """Do not use a replica that failed until it answers again."""
        if isinstance(error, StoreUnreachableError):
            replica.failed = time.monotonic()
            replica.watcher.problem = str(error)
        log.info("a recall was answered by the primary: %s", error)

    def states(self) -> list[ReplicaState]:
        return [self._state(replica) for replica in self._all]

    def _state(self, replica: Replica) -> ReplicaState:
        shown, watcher, now = replica.address.shown, replica.watcher, time.monotonic()
        if watcher.problem is not None:
            return ReplicaState(shown, None, watcher.problem)
        primary, known = list(self._watcher.positions), list(watcher.positions)
        if not known or not primary:
            return ReplicaState(shown, None, "nothing is known of it yet")
        replayed = known[-1]
        if replayed.system != primary[-1].system:
            return ReplicaState(shown, None, "it is the replica of another server")
        if replayed.at <= replica.failed:
            return ReplicaState(shown, None, "it did not answer")
        reached = max((position.at for position in primary if position.lsn <= replayed.lsn), default=None)
        if reached is None:
            return ReplicaState(shown, None, f"it is more than {now - primary[0].at:.1f} s behind")
        staleness = now - reached
        late = None if staleness <= self.bound else f"it may be {staleness:.1f} s behind, {self.bound:g} s are allowed"
        return ReplicaState(shown, staleness, late)

    def _log_change(self, state: ReplicaState) -> None:
        """Log when a replica is no longer used, and when it is used again."""
        if state.problem is None:
            if self._excluded.pop(state.server, None) is not None:
                log.info("recalls go to the replica %s again", state.server)
        elif state.server not in self._excluded:
            self._excluded[state.server] = state.problem
            log.warning("recalls do not go to the replica %s: %s", state.server, state.problem)

    def close(self) -> None:
        _leave_watcher(self._watcher, _PRIMARY)
        for replica in self._all:
            replica.close()
