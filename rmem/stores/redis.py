"""The Redis store: the rows of many agents for many processes. Redis holds the rows; each process derives its own
recall index from them and follows their changes agent by agent, so that queries read only what they answer with.

A write is atomic for each agent. An id that is given to another agent is a newcomer there; a process that dies while
it moves one leaves it with both, and writing it again heals that. The next step of an agent is one after the highest
that it ever had here: its older memories may have left for the archive."""

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
from .packing import placed, short_vector
from .redis_ids import Ids, Reply, decoded, encoded
from .redis_link import Command, Keys, Link, RedisAddress, script
from .redis_mirror import NOTHING, Mirror, News, Seen
from .redis_rows import Held
from .redis_scripts import FOLLOW, FORGET, PUT, SCRUB, TOUCH
from .touches import Touches
from .vectors import Vector, check_vector_format, check_vectors, first_vector

log = logging.getLogger(__name__)

_READ_AHEAD = 1000  # rows in one answer
_LISTED = 1000  # removals that a process may be late by before it has to read an agent anew


class _Kind(NamedTuple):
    """What the vectors of a namespace are, as far as it holds any."""

    embedder: str | None
    dimension: int | None


class _Looked(local):
    """Up to which change this thread has looked at agents, while it wants them steady."""

    at: dict[str, Seen] | None = None

    def of(self, agents: Sequence[str] | None) -> dict[str, Seen] | None:
        """That of some agents, if all are known."""
        if self.at is None or agents is None or any(agent not in self.at for agent in agents):
            return None
        return {agent: self.at[agent] for agent in agents}


class RedisRecordStore(HotStore, Counters, IndexedStore):
    """`RedisRecordStore(host="localhost", port=6379, namespace="agents")`. Stores with different namespaces never see
    each other. Nothing is sent before the first call; while the server does not answer, calls raise
    StoreUnreachableError, and work again when it does.

    `tls` encrypts the connection and checks the server's certificate, against the file `ca` if one is given.
    `cluster=True` takes host and port as one node of a Redis Cluster, which tells the others. `client` may be a
    client of the redis library, to be used instead of a connection of our own."""

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
        self._link = Link(address, client)
        self._ids = Ids(self._keys, self._link)
        self._mirror = Mirror(self.index)
        self._kind: _Kind | None = None
        self._server = ""  # whose rows the mirror shows
        self._following = new_lock()
        self._touches = Touches()
        self._looked = _Looked()

    def __repr__(self) -> str:
        return f"RedisRecordStore({self._link}, {self._keys})"

    # Writing

    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        if not memories:
            return []
        memories = [memory.copied() for memory in memories]
        holder: dict[str, str] = {}
        if any(holder.setdefault(one.memory_id, one.agent_id) != one.agent_id for one in memories if one.memory_id):
            self._check_vector_format(memories)  # refuses before anything is written
            return [self.put([memory])[0] for memory in memories]  # an id changes hands inside the batch
        return [memory for memory in self._write(memories, [], {}) if memory is not None]

    def _write(
        self, memories: Sequence[Memory], derived: Sequence[Derived], expected: Mapping[str, float]
    ) -> list[Memory | None]:
        """Keep memories; None for those of an agent whose rows are not all at the clock that is expected."""
        self._meet_server()
        if self._touches.due(memories):
            self.flush()
        dimension = self._check_vector_format(memories)
        derived = derived or [derive(memory) for memory in memories]
        agents: dict[str, list[int]] = defaultdict(list)
        for at, memory in enumerate(memories):
            agents[memory.agent_id].append(at)
        ids = [memory.memory_id for memory in memories if memory.memory_id]
        commands: list[Command] = [self._ids.listed(ids)] if ids else []
        commands += self._ids.announce(memories)
        commands.append(("SADD", self._keys.agents, *map(encoded, agents)))
        for agent, places in agents.items():
            parts = [rows.arguments(memories[at], derived[at], expected.get(memories[at].memory_id)) for at in places]
            arguments = [argument for part in parts for argument in part]
            keys = self._keys.all_of(agent)
            commands.append(script(PUT, keys, secrets.token_bytes(8), encoded(agent), *arguments))
        answers = self._link.run(commands)

        kept: list[Memory | None] = [None] * len(memories)
        for (agent, places), answer in zip(agents.items(), answers[-len(agents) :], strict=True):
            if answer is None:
                continue
            epoch, before, *filled = answer
            written = []
            for at, name, step, original_seq in zip(places, filled[::3], filled[1::3], filled[2::3], strict=True):
                memory = memories[at]
                memory.memory_id, memory.step_number = decoded(name), int(step)
                written.append(rows.Row(memory, derived[at], int(original_seq)))
                kept[at] = memory
            with self.index.lock:
                flushed = before == 0 and self._mirror.seen(agent) != NOTHING
                self._mirror.wrote(agent, epoch, before, written, dimension)
            if flushed:
                self._kind = None
                self._check_vector_format(memories)  # the metadata went with the rest
        listed = {name: decoded(agent) for name, agent in zip(ids, answers[0], strict=True) if agent} if ids else {}
        elsewhere = self._ids.elsewhere([memory for memory in kept if memory is not None], listed)
        self._note_removals(self._ids.ask(elsewhere.ids, self._removal))
        self._ids.unlist(elsewhere.unlisted)
        return kept

    def _check_vector_format(self, memories: Sequence[Memory]) -> int | None:
        """Refuse vectors that are not of the store's kind, and note the kind of the first ones. The dimension."""
        given = first_vector(memories)
        some = given is not None or any(short_vector(memory) is not None for memory in memories)
        kind = self._kind
        if kind is None or not self._suits(kind, given, some) or not self._known(memories):
            kind = self._read_kind()
            if kind.dimension is None and given is not None and self.index.vectors is not None:
                with self.index.lock:  # Redis was flushed
                    self._mirror.reset()
        check_vectors(memories, None if self.index.vectors is None else self.index.vectors.dimension)
        known = {name: str(value) for name, value in kind._asdict().items() if value is not None}
        facts = check_vector_format(given, known, self.embedder_identity) if some else {}
        if not self._suits(kind, given, some):
            self._link.run([("HSETNX", self._keys.meta, key, value) for key, value in facts.items()])
            return self._check_vector_format(memories)  # another process may have been faster, with another kind
        self._kind = kind
        return kind.dimension

    def _suits(self, kind: _Kind, given: Vector | None, some: bool) -> bool:
        """Whether a kind tells what a full vector, or some vector, needs to be known by."""
        return (given is None or kind.dimension == given.size) and (
            not some or self.embedder_identity is None or kind.embedder is not None
        )

    def _known(self, memories: Sequence[Memory]) -> bool:
        """Whether the store was seen to hold something of these agents, so that it was not empty then."""
        with self.index.lock:
            return all(self._mirror.seen(agent) != NOTHING for agent in {memory.agent_id for memory in memories})

    def _read_kind(self) -> _Kind:
        ((embedder, dimension),) = self._link.run([("HMGET", self._keys.meta, "embedder", "dimension")])
        return _Kind(None if embedder is None else decoded(embedder), None if dimension is None else int(dimension))

    def edit(self, memory_id: str, edit: Edit) -> Memory | None:
        """As in every store; `edit` is called again if another process changed the memory meanwhile. Only a memory that
        exists is guarded so: of two processes that create one, the last counts."""
        while True:
            held = self._held([memory_id], clocks=True).get(memory_id)
            old = None if held is None else rows.held_memory(memory_id, held)
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
            held = self._held(waiting, clocks=True)
            read = [rows.unpack(one.agent, key, one.value) for key, one in held.items()]
            memories = [
                placed(rows.with_access(row.memory, held[row.memory.memory_id]), tier, given.get(row.memory.memory_id))
                for row in read
            ]
            if not memories:
                break
            clocks = {key: one.clock or 0.0 for key, one in held.items()}
            kept = self._write(memories, [row.derived for row in read], clocks)
            waiting = [memory.memory_id for memory, done in zip(memories, kept, strict=True) if done is None]
            moved += len(memories) - len(waiting)
        return moved

    def forget_many(self, keys: Sequence[str]) -> int:
        wanted = list(dict.fromkeys(keys))
        if not wanted:
            return 0
        self._touches.drop(wanted)
        replies, strangers = self._ids.ask_holders(wanted, self._removal)
        self._ids.unlist(strangers)
        return self._note_removals(replies)

    def _removal(self, agent: str, ids: Sequence[str]) -> list[Command]:
        return [script(FORGET, self._keys.all_of(agent), _LISTED, *map(encoded, ids))]

    def _note_removals(self, replies: Iterable[Reply]) -> int:
        gone = 0
        for agent, _, ((epoch, before, *names),) in replies:
            gone += len(names)
            if names:
                with self.index.lock:
                    self._mirror.removed(agent, epoch, before, list(map(decoded, names)))
        return gone

    def scrub(self, *, rewrite: bool = False) -> None:
        """Keep no id of a removed memory, and no name of an agent that has none left. Files that Redis writes itself
        are for whoever runs it."""
        agents = self._agents()
        self._link.run([script(SCRUB, self._keys.all_of(agent)) for agent in agents])
        counts = self._link.run([("EXISTS", self._keys.of(agent, "epoch")) for agent in agents])
        without = [agent for agent, count in zip(agents, counts, strict=True) if not count]
        if without:
            self._link.run([("SREM", self._keys.agents, *map(encoded, without))])

    def _agents(self) -> list[str]:
        """Everybody who has a key in this namespace."""
        (agents,) = self._link.run([("SMEMBERS", self._keys.agents)])
        return list(dict.fromkeys([*map(decoded, agents), *self._ids.lenders()]))

    def clear(self) -> None:
        """Remove everything of this namespace."""
        commands: list[Command] = [("DEL", *self._keys.all_of(agent)) for agent in self._agents()]
        whole = self._keys.agents, self._keys.strangers, self._keys.meta
        self._link.run([*commands, *(("DEL", key) for key in whole)])
        self._kind = None
        with self.index.lock:
            self._mirror.reset()

    def touch(self, keys: Sequence[str], when: float) -> None:
        if self._touches.add(keys, when):
            self.flush()

    def flush(self) -> None:
        """Write the access counts that wait."""
        waiting = self._touches.take()

        def counts(agent: str, ids: Sequence[str]) -> list[Command]:
            told = (part for key in ids for part in (encoded(key), waiting[key][1], repr(waiting[key][0])))
            return [script(TOUCH, self._keys.all_of(agent), *told)]

        try:
            self._ids.ask_holders(list(waiting), counts)
        except StoreError:
            self._touches.put_back(waiting)
            raise

    def get_meta(self, key: str) -> str | None:
        (found,) = self._link.run([("HGET", self._keys.meta, encoded(key))])
        return None if found is None else decoded(found)

    def set_meta(self, key: str, value: str) -> None:
        self._kind = None
        self._link.run([("HSET", self._keys.meta, encoded(key), encoded(value))])

    def next_number(self, stem: str) -> int:
        while True:
            (number,) = self._link.run([("HINCRBY", self._keys.meta, encoded(f"next {stem}"), 1)])
            if self.get(f"{stem}{number - 1}") is None:
                return int(number) - 1

    # Reading

    def get_many(self, keys: Sequence[str]) -> list[Memory | None]:
        held = self._held(list(dict.fromkeys(keys)))
        return [self._touches.counted(rows.held_memory(key, held[key])) if key in held else None for key in keys]

    def memories_at(self, seqs: Sequence[int]) -> list[tuple[int, Memory]]:
        held = self._rows_at(seqs, access=True)
        return [(seq, self._touches.counted(rows.held_memory(key, one))) for seq, (key, one) in held.items()]

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

    def _rows_at(self, seqs: Sequence[int], access: bool = False) -> dict[int, tuple[str, Held]]:
        """By seq, in this order: id and row, of those that are still there. If some are not, it is found out whether
        Redis has lost them, which `epoch` tells."""
        agents: dict[str, dict[int, str]] = defaultdict(dict)
        with self.index.lock:
            for seq in seqs:
                if (named := self._mirror.name(seq)) is not None:
                    agents[named[0]][seq] = named[1]
        parts = ("rows", "access") if access else ("rows",)
        answers = self._link.run(
            [
                ("HMGET", self._keys.of(agent, part), *map(encoded, ids.values()))
                for agent, ids in agents.items()
                for part in parts
            ]
        )
        found: dict[int, tuple[str, Held]] = {}
        for number, (agent, ids) in enumerate(agents.items()):
            values = answers[number * len(parts)]
            counts = answers[number * len(parts) + 1] if access else [None] * len(values)
            for (seq, key), value, count in zip(ids.items(), values, counts, strict=True):
                if value is not None:
                    found[seq] = key, Held(agent, value, count, None)
            if None in values:
                self._read(agent, self._read_kind().dimension)
        return {seq: found[seq] for seq in seqs if seq in found}

    def _held(self, keys: Sequence[str], clocks: bool = False) -> dict[str, Held]:
        """The rows with these ids, in this order; with `clocks`, each with the clock at which it was not older."""

        def reading(agent: str, ids: Sequence[str]) -> list[Command]:
            names = list(map(encoded, ids))
            scores: list[Command] = [("ZSCORE", self._keys.of(agent, "log"), name) for name in names if clocks]
            return [*scores, *(("HMGET", self._keys.of(agent, part), *names) for part in ("rows", "access"))]

        found: dict[str, Held] = {}
        for agent, ids, (*scores, values, counts) in self._ids.ask_holders(keys, reading)[0]:
            for key, value, count, score in zip(ids, values, counts, scores or [None] * len(ids), strict=True):
                if value is not None:
                    found[key] = Held(agent, value, count, score)
        return {key: found[key] for key in keys if key in found}

    def stats(self) -> StoreStats:
        stats = self._index_stats()
        with self.index.lock:
            keys = [key for agent in self._mirror.agents() for key in self._keys.all_of(agent)]
        keys += [self._keys.agents, self._keys.meta, self._keys.strangers]
        stats.bytes = sum(size or 0 for size in self._link.run([("MEMORY USAGE", key) for key in keys]))
        return stats

    def epoch(self, agent: str, *, look: bool = True) -> str | None:
        """Another text once the rows of an agent may not be those that were written: after Redis was emptied,
        started again or gave way to a replica. None while the agent has none. Without `look`, as of the last one."""
        if look:
            self._follow([agent])
        with self.index.lock:
            token = self._mirror.seen(agent).epoch
            return f"{token.hex()} {self._server}" if token else None

    # The index

    def filtered_rows(self, where: Filter) -> FilteredRows:
        looked = self._looked
        while True:
            needed = looked.of(where.agent) or self._follow(where.agent)
            with self.index.lock:  # another thread may have written, or begun the index anew
                self._mirror.index_pending()
                if all(self._mirror.covers(agent, seen) for agent, seen in needed.items()):
                    looked.at = None if looked.at is None else looked.at | needed
                    return self._filtered.take(where)
            looked.at = None if looked.at is None else {}

    @contextmanager
    def steady(self) -> Iterator[None]:
        self._looked.at = {}
        try:
            yield
        finally:
            self._looked.at = None

    def refresh(self) -> None:
        self._follow(None)

    def _follow(self, wanted: Sequence[str] | None) -> dict[str, Seen]:
        """Take in what has changed of some agents, or of all. Up to which change of each that is."""
        listing: list[Command] = [("SMEMBERS", self._keys.agents)] if wanted is None else []
        while True:
            self._meet_server()
            with self.index.lock:
                agents = self._mirror.agents() if wanted is None else list(wanted)
            pairs = [(self._keys.of(agent, "epoch"), self._keys.of(agent, "clock")) for agent in agents]
            states, more = self._link.states(pairs, listing)
            if not self._link.fresh:
                break
        needed = {
            agent: Seen(epoch, int(clock), int(clock)) if epoch and clock else NOTHING
            for agent, (epoch, clock) in zip(agents, states, strict=True)
        }
        with self.index.lock:
            self._mirror.index_pending()
            stale = [agent for agent, now in needed.items() if self._mirror.seen(agent) != now]
        if more:
            stale += sorted(agent for agent in map(decoded, more[0]) if agent not in needed)
        if stale:
            dimension = self._read_kind().dimension
            needed |= {agent: self._read(agent, dimension) for agent in stale}
        return needed

    def _meet_server(self) -> None:
        """Forget all rows if they are those of another server, or if it is time to read them anew."""
        server = self._link.server()
        with self.index.lock:
            if (self._server and server != self._server) or self._mirror.outworn:
                self._mirror.reset()
            self._server = server

    def _read(self, agent: str, dimension: int | None) -> Seen:
        keys = self._keys.all_of(agent)
        with self._following:  # so that threads do not read the same rows
            while True:
                with self.index.lock:
                    asked = self._mirror.seen(agent)
                (answer,) = self._link.run([script(FOLLOW, keys, *asked, _READ_AHEAD)])
                epoch, anew, upto, clock, gone, ids, values = answer
                found = [
                    rows.unpack(agent, decoded(name), value)
                    for name, value in zip(ids, values, strict=True)
                    if value is not None
                ]
                news = News(Seen(epoch, upto, clock), bool(anew), list(map(decoded, gone)), found)
                with self.index.lock:
                    taken = self._mirror.take(agent, asked, news, dimension)
                if taken and upto == clock:
                    return news.seen if epoch else NOTHING

    def close(self) -> None:
        if self._link.closed:
            return
        try:
            self.flush()
        except StoreError as error:
            log.info("access counts were not written: %s", error)
        self._link.close()
