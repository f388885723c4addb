"""The Redis store, for many processes. Redis holds the rows; each process builds its own recall index from them and
updates it by their changes, agent by agent, so that a query reads only the rows of its answer.

A write is atomic for each agent. A memory whose id moves to another agent is written there first: a process that dies
meanwhile leaves it with both, which writing it again repairs. The next step of an agent is one after the highest it
ever had here: its older memories may have moved to the archive."""

from __future__ import annotations

import logging
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import checks
from ..errors import StoreError
from ..filters import Filter
from ..forks import new_lock
from ..index.filtered_rows import FilteredRows
from ..index.vocabulary import WordVectors
from ..models import TIERS, Memory
from . import redis_rows as rows
from .base import Edit, StoreStats
from .capabilities import Counters, HotStore
from .indexed import Derived, IndexedStore, derive
from .packing import move_to_tier, tier_vector
from .redis_ids import Ids, Reply, decode, encode
from .redis_link import Command, Keys, RedisAddress, RedisLink, script
from .redis_mirror import START, Mirror, ReadPosition, Update
from .redis_rows import StoredRow
from .redis_scripts import FOLLOW, FORGET, PUT, SCRUB, TOUCH
from .touches import Touches
from .vectors import Vector, check_vector_format, check_vectors, first_vector

log = logging.getLogger(__name__)

_READ_AHEAD = 1000  # rows in one answer
_LISTED = 1000  # removals that are listed; a process that missed more reads the agent again


class _VectorFormat(NamedTuple):
    """The embedder and the dimension of the vectors of a namespace, None if it has none."""

    embedder: str | None
    dimension: int | None


class _SteadyPositions(local):
    """The positions up to which this thread has read agents, inside `steady`."""

    at: dict[str, ReadPosition] | None = None

    def of(self, agents: Sequence[str] | None) -> dict[str, ReadPosition] | None:
        """Return those of some agents, if all are known."""
        if self.at is None or agents is None or any(agent not in self.at for agent in agents):
            return None
        return {agent: self.at[agent] for agent in agents}


class RedisRecordStore(HotStore, Counters, IndexedStore):
    """`RedisRecordStore(host="localhost", port=6379, namespace="agents")`. Stores with different namespaces never see
    each other. It connects at the first call; while the server does not answer, calls raise StoreUnreachableError.

    `tls` encrypts the connection and checks the server's certificate, against the file `ca` if one is given.
    `cluster=True` means that host and port are a node of a Redis Cluster. `client` may be a client of the redis
    library, to be used instead of an own connection."""

    def __init__(
        self,
        *,
        host: str = "localhost",
        port: int = 6379,
        db: int = 0,
        username: str | None = None,
        password: str | None = None,
        tls: bool = False,
        ca: str | Path | None = None,
        cluster: bool = False,
        connect_timeout: float = 2.0,
        socket_timeout: float = 5.0,
        namespace: str = "remanence",
        client: Any = None,
        word_vectors: WordVectors | None = None,
    ) -> None:
        super().__init__(word_vectors)
        address = RedisAddress(host, port, db, username, password, tls, ca, cluster, connect_timeout, socket_timeout)
        self.place = {**address.place(), "namespace": namespace}
        self._keys = Keys(namespace)
        self._link = RedisLink(address, client)
        self._ids = Ids(self._keys, self._link)
        self._mirror = Mirror(self.index)
        self._vector_format: _VectorFormat | None = None
        self._server = ""  # whose rows the mirror has
        self._following = new_lock()
        self._touches = Touches()
        self._steady = _SteadyPositions()

    def __repr__(self) -> str:
        return f"RedisRecordStore({self._link}, {self._keys})"

    # Writing

    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        if not memories:
            return []
        memories = [memory.copied() for memory in memories]
        holder: dict[str, str] = {}
        if any(holder.setdefault(m.memory_id, m.agent_id) != m.agent_id for m in memories if m.memory_id):
            self._check_vector_format(memories)  # raises before anything is written
            return [self.put([memory])[0] for memory in memories]  # the batch gives one id to two agents
        return [memory for memory in self._write(memories, [], {}) if memory is not None]

    def _write(
        self, memories: Sequence[Memory], derived: Sequence[Derived], expected: Mapping[str, float]
    ) -> list[Memory | None]:
        """Write memories; return None for those of an agent whose rows are not all at their `expected` clocks."""
        self._check_server()
        if self._touches.due(memories):
            self.flush()
        dimension = self._check_vector_format(memories)
        derived = derived or [derive(memory) for memory in memories]
        agents: dict[str, list[int]] = defaultdict(list)
        for at, memory in enumerate(memories):
            agents[memory.agent_id].append(at)
        ids = [memory.memory_id for memory in memories if memory.memory_id]
        commands: list[Command] = [self._ids.lookup_command(ids)] if ids else []
        commands += self._ids.listing_commands(memories)
        commands.append(("SADD", self._keys.agents, *map(encode, agents)))
        for agent, places in agents.items():
            parts = [rows.arguments(memories[at], derived[at], expected.get(memories[at].memory_id)) for at in places]
            arguments = [argument for part in parts for argument in part]
            keys = self._keys.all_of(agent)
            commands.append(script(PUT, keys, secrets.token_bytes(8), encode(agent), *arguments))
        answers = self._link.run(commands)

        kept: list[Memory | None] = [None] * len(memories)
        for (agent, places), answer in zip(agents.items(), answers[-len(agents) :], strict=True):
            if answer is None:
                continue
            epoch, before, *filled = answer
            written = []
            for at, name, step, original_seq in zip(places, filled[::3], filled[1::3], filled[2::3], strict=True):
                memory = memories[at]
                memory.memory_id, memory.step_number = decode(name), int(step)
                written.append(rows.RedisRow(memory, derived[at], int(original_seq)))
                kept[at] = memory
            with self.index.lock:
                flushed = before == 0 and self._mirror.seen(agent) != START
                self._mirror.add_written(agent, epoch, before, written, dimension)
            if flushed:
                self._vector_format = None
                self._check_vector_format(memories)  # the metadata was flushed, too
        listed = {name: decode(agent) for name, agent in zip(ids, answers[0], strict=True) if agent} if ids else {}
        others = self._ids.other_holders([memory for memory in kept if memory is not None], listed)
        self._apply_removals(self._ids.query(others.ids, self._removal))
        self._ids.remove_listed(others.unlisted)
        return kept

    def _check_vector_format(self, memories: Sequence[Memory]) -> int | None:
        """Refuse vectors of another format, and set the format with the first ones; return the dimension."""
        given = first_vector(memories)
        some = given is not None or any(tier_vector(memory) is not None for memory in memories)
        kind = self._vector_format
        if kind is None or not self._describes(kind, given, some) or not self._have_rows(memories):
            kind = self._read_vector_format()
            if kind.dimension is None and given is not None and self.index.vectors is not None:
                with self.index.lock:  # Redis was flushed
                    self._mirror.reset()
        check_vectors(memories, None if self.index.vectors is None else self.index.vectors.dimension)
        known = {name: str(value) for name, value in kind._asdict().items() if value is not None}
        facts = check_vector_format(given, known, self.embedder_identity) if some else {}
        if not self._describes(kind, given, some):
            self._link.run([("HSETNX", self._keys.meta, key, value) for key, value in facts.items()])
            return self._check_vector_format(memories)  # another process may have set another format
        self._vector_format = kind
        return kind.dimension

    def _describes(self, kind: _VectorFormat, given: Vector | None, some: bool) -> bool:
        """Whether a format has the dimension, if a full vector is given, and the embedder, if there is any vector."""
        return (given is None or kind.dimension == given.size) and (
            not some or self.embedder_identity is None or kind.embedder is not None
        )

    def _have_rows(self, memories: Sequence[Memory]) -> bool:
        """Whether rows of all these agents were read before."""
        with self.index.lock:
            return all(self._mirror.seen(agent) != START for agent in {memory.agent_id for memory in memories})

    def _read_vector_format(self) -> _VectorFormat:
        ((embedder, dimension),) = self._link.run([("HMGET", self._keys.meta, "embedder", "dimension")])
        return _VectorFormat(
            None if embedder is None else decode(embedder), None if dimension is None else int(dimension)
        )

    def edit(self, memory_id: str, edit: Edit) -> Memory | None:
        """Edit a memory; `edit` is called again if another process changed it meanwhile. If two processes create the
        same memory, the last one wins."""
        while True:
            held = self._stored_rows([memory_id], clocks=True).get(memory_id)
            old = None if held is None else rows.to_memory(memory_id, held)
            edited = edit(old)
            if edited is None:
                return old
            memory = edited.memory
            if memory is None:
                self.forget_many([memory_id])
                return None
            memory.memory_id = memory_id
            guarded = held is not None and memory.agent_id == held.agent
            kept = self._write([memory], [], {memory_id: held.clock or 0.0} if held and guarded else {})[0]
            if kept is not None:
                return kept

    def move(self, keys: Sequence[str], tier: str, vectors: Mapping[str, Vector] | None = None) -> int:
        checks.one_of("tier", tier, TIERS)
        given = vectors or {}
        waiting, moved = list(dict.fromkeys(keys)), 0
        while waiting:
            held = self._stored_rows(waiting, clocks=True)
            read = [rows.unpack(row.agent, key, row.value) for key, row in held.items()]
            memories = [
                move_to_tier(
                    rows.with_access(row.memory, held[row.memory.memory_id]), tier, given.get(row.memory.memory_id)
                )
                for row in read
            ]
            if not memories:
                break
            clocks = {key: row.clock or 0.0 for key, row in held.items()}
            kept = self._write(memories, [row.derived for row in read], clocks)
            waiting = [memory.memory_id for memory, done in zip(memories, kept, strict=True) if done is None]
            moved += len(memories) - len(waiting)
        return moved

    def forget_many(self, keys: Sequence[str]) -> int:
        wanted = list(dict.fromkeys(keys))
        if not wanted:
            return 0
        self._touches.drop(wanted)
        replies, strangers = self._ids.query_holders(wanted, self._removal)
        self._ids.remove_listed(strangers)
        return self._apply_removals(replies)

    def _removal(self, agent: str, ids: Sequence[str]) -> list[Command]:
        return [script(FORGET, self._keys.all_of(agent), _LISTED, *map(encode, ids))]

    def _apply_removals(self, replies: Iterable[Reply]) -> int:
        gone = 0
        for agent, _, ((epoch, before, *names),) in replies:
            gone += len(names)
            if names:
                with self.index.lock:
                    self._mirror.add_removed(agent, epoch, before, list(map(decode, names)))
        return gone

    def scrub(self, *, rewrite: bool = False) -> None:
        """Delete the ids of removed memories, and the names of agents without memories. Files that Redis writes are the
        responsibility of its operator."""
        agents = self._agents()
        self._link.run([script(SCRUB, self._keys.all_of(agent)) for agent in agents])
        counts = self._link.run([("EXISTS", self._keys.of(agent, "epoch")) for agent in agents])
        without = [agent for agent, count in zip(agents, counts, strict=True) if not count]
        if without:
            self._link.run([("SREM", self._keys.agents, *map(encode, without))])

    def _agents(self) -> list[str]:
        """Return all agents that have a key in this namespace."""
        (agents,) = self._link.run([("SMEMBERS", self._keys.agents)])
        return list(dict.fromkeys([*map(decode, agents), *self._ids.agents_with_lent_ids()]))

    def clear(self) -> None:
        """Remove everything of this namespace."""
        commands: list[Command] = [("DEL", *self._keys.all_of(agent)) for agent in self._agents()]
        whole = self._keys.agents, self._keys.strangers, self._keys.meta
        self._link.run([*commands, *(("DEL", key) for key in whole)])
        self._vector_format = None
        with self.index.lock:
            self._mirror.reset()

    def touch(self, keys: Sequence[str], when: float) -> None:
        if self._touches.add(keys, when):
            self.flush()

    def flush(self) -> None:
        """Write pending access counts."""
        waiting = self._touches.take()

        def counts(agent: str, ids: Sequence[str]) -> list[Command]:
            arguments = (part for key in ids for part in (encode(key), waiting[key][1], repr(waiting[key][0])))
            return [script(TOUCH, self._keys.all_of(agent), *arguments)]

        try:
            self._ids.query_holders(list(waiting), counts)
        except StoreError:
            self._touches.put_back(waiting)
            raise

    def get_meta(self, key: str) -> str | None:
        (found,) = self._link.run([("HGET", self._keys.meta, encode(key))])
        return None if found is None else decode(found)

    def set_meta(self, key: str, value: str) -> None:
        self._vector_format = None
        self._link.run([("HSET", self._keys.meta, encode(key), encode(value))])

    def next_number(self, stem: str) -> int:
        while True:
            (number,) = self._link.run([("HINCRBY", self._keys.meta, encode(f"next {stem}"), 1)])
            if self.get(f"{stem}{number - 1}") is None:
                return int(number) - 1

    # Reading

    def get_many(self, keys: Sequence[str]) -> list[Memory | None]:
        held = self._stored_rows(list(dict.fromkeys(keys)))
        found = [rows.to_memory(key, held[key]) if key in held else None for key in keys]
        self._touches.add_pending(found)
        return found

    def memories_at(self, seqs: Sequence[int]) -> list[tuple[int, Memory]]:
        held = self._rows_at(seqs, access=True)
        found = [(seq, rows.to_memory(key, row)) for seq, (key, row) in held.items()]
        self._touches.add_pending(memory for _, memory in found)
        return found

    def ids_at(self, seqs: Sequence[int]) -> list[str]:
        with self.index.lock:
            return [named[1] for seq in seqs if (named := self._mirror.name(seq)) is not None]

    def vectors_at(self, seqs: npt.NDArray[np.int64], dimension: int) -> npt.NDArray[np.float32]:
        matrix = np.zeros((seqs.size, dimension), np.float32)
        at = {seq: position for position, seq in enumerate(seqs.tolist())}
        for seq, (key, held) in self._rows_at(seqs.tolist()).items():
            vector = rows.vector_of(key, held.value, dimension)
            if vector is not None and vector.size == dimension:
                matrix[at[seq]] = vector
        return matrix

    def texts_at(self, seqs: npt.NDArray[np.int64]) -> list[str]:
        found = self._rows_at(seqs.tolist())
        return [rows.text_of(found[seq][0], found[seq][1].value) if seq in found else "" for seq in seqs.tolist()]

    def _rows_at(self, seqs: Sequence[int], access: bool = False) -> dict[int, tuple[str, StoredRow]]:
        """Return {seq: (id, row)} of the existing rows, in this order. If some are missing, update the agent, so that
        `epoch` shows whether Redis has lost them."""
        agents: dict[str, dict[int, str]] = defaultdict(dict)
        with self.index.lock:
            for seq in seqs:
                if (named := self._mirror.name(seq)) is not None:
                    agents[named[0]][seq] = named[1]
        parts = ("rows", "access") if access else ("rows",)
        answers = self._link.run(
            [
                ("HMGET", self._keys.of(agent, part), *map(encode, ids.values()))
                for agent, ids in agents.items()
                for part in parts
            ]
        )
        found: dict[int, tuple[str, StoredRow]] = {}
        for number, (agent, ids) in enumerate(agents.items()):
            values = answers[number * len(parts)]
            counts = answers[number * len(parts) + 1] if access else [None] * len(values)
            for (seq, key), value, count in zip(ids.items(), values, counts, strict=True):
                if value is not None:
                    found[seq] = key, StoredRow(agent, value, count, None)
            if None in values:
                self._read(agent, self._read_vector_format().dimension)
        return {seq: found[seq] for seq in seqs if seq in found}

    def _stored_rows(self, keys: Sequence[str], clocks: bool = False) -> dict[str, StoredRow]:
        """Return the rows with these ids, in this order; with `clocks`, each with the clock of its last change."""

        def reading(agent: str, ids: Sequence[str]) -> list[Command]:
            names = list(map(encode, ids))
            scores: list[Command] = [("ZSCORE", self._keys.of(agent, "log"), name) for name in names if clocks]
            return [*scores, *(("HMGET", self._keys.of(agent, part), *names) for part in ("rows", "access"))]

        found: dict[str, StoredRow] = {}
        for agent, ids, (*scores, values, counts) in self._ids.query_holders(keys, reading)[0]:
            for key, value, count, score in zip(ids, values, counts, scores or [None] * len(ids), strict=True):
                if value is not None:
                    found[key] = StoredRow(agent, value, count, score)
        return {key: found[key] for key in keys if key in found}

    def stats(self) -> StoreStats:
        stats = self._index_stats()
        with self.index.lock:
            keys = [key for agent in self._mirror.agents() for key in self._keys.all_of(agent)]
        keys += [self._keys.agents, self._keys.meta, self._keys.strangers]
        stats.bytes = sum(size or 0 for size in self._link.run([("MEMORY USAGE", key) for key in keys]))
        return stats

    def epoch(self, agent: str, *, check: bool = True) -> str | None:
        """Return a token that changes when rows of the agent may be lost: after Redis was emptied, restarted or
        replaced by a replica. None while the agent has no rows. With `check=False`, as of the last read."""
        if check:
            self._follow([agent])
        with self.index.lock:
            token = self._mirror.seen(agent).epoch
            return f"{token.hex()} {self._server}" if token else None

    # The index

    def filtered_rows(self, where: Filter) -> FilteredRows:
        steady = self._steady
        while True:
            needed = steady.of(where.agent) or self._follow(where.agent)
            with self.index.lock:  # another thread may have written, or reset the index
                self._mirror.index_pending()
                if all(self._mirror.covers(agent, seen) for agent, seen in needed.items()):
                    steady.at = None if steady.at is None else steady.at | needed
                    return self._filtered.take(where)
            steady.at = None if steady.at is None else {}

    @contextmanager
    def steady(self) -> Iterator[None]:
        self._steady.at = {}
        try:
            yield
        finally:
            self._steady.at = None

    def refresh(self) -> None:
        self._follow(None)

    def _follow(self, wanted: Sequence[str] | None) -> dict[str, ReadPosition]:
        """Read the changes of some agents, or of all; return the new position of each."""
        listing: list[Command] = [("SMEMBERS", self._keys.agents)] if wanted is None else []
        while True:
            self._check_server()
            with self.index.lock:
                agents = self._mirror.agents() if wanted is None else list(wanted)
            pairs = [(self._keys.of(agent, "epoch"), self._keys.of(agent, "clock")) for agent in agents]
            states, more = self._link.states(pairs, listing)
            if not self._link.fresh:
                break
        needed = {
            agent: ReadPosition(epoch, int(clock), int(clock)) if epoch and clock else START
            for agent, (epoch, clock) in zip(agents, states, strict=True)
        }
        with self.index.lock:
            self._mirror.index_pending()
            stale = [agent for agent, now in needed.items() if self._mirror.seen(agent) != now]
        if more:
            stale += sorted(agent for agent in map(decode, more[0]) if agent not in needed)
        if stale:
            dimension = self._read_vector_format().dimension
            needed |= {agent: self._read(agent, dimension) for agent in stale}
        return needed

    def _check_server(self) -> None:
        """Reset the index if another server answers, or if it should be read again."""
        server = self._link.server()
        with self.index.lock:
            if (self._server and server != self._server) or self._mirror.needs_reset:
                self._mirror.reset()
            self._server = server

    def _read(self, agent: str, dimension: int | None) -> ReadPosition:
        keys = self._keys.all_of(agent)
        with self._following:  # so that threads do not read the same rows
            while True:
                with self.index.lock:
                    position = self._mirror.seen(agent)
                (answer,) = self._link.run([script(FOLLOW, keys, *position, _READ_AHEAD)])
                epoch, anew, upto, clock, gone, ids, values = answer
                found = [
                    rows.unpack(agent, decode(name), value)
                    for name, value in zip(ids, values, strict=True)
                    if value is not None
                ]
                update = Update(ReadPosition(epoch, upto, clock), bool(anew), list(map(decode, gone)), found)
                with self.index.lock:
                    applied = self._mirror.apply(agent, position, update, dimension)
                if applied and upto == clock:
                    return update.seen if epoch else START

    def close(self) -> None:
        if self._link.closed:
            return
        try:
            self.flush()
        except StoreError as error:
            log.info("access counts were not written: %s", error)
        self._link.close()
