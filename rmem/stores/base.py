"""The contract of stores. A plugin that stores values by key implements the four methods of MemoryStore; a store for
recall is a RecordStore, whose non-abstract methods have defaults. What only some stores offer is in `capabilities`.
`rmem.testing` has the tests that every store must pass."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from .. import checks
from ..closing import Closing
from ..errors import ConfigError, InputError
from ..feedback import FEEDBACK_ADDED, FEEDBACK_REMOVED, Feedback, new_token
from ..filters import Filter
from ..index.candidate_source import CandidateSource
from ..index.filtered_rows import FilteredRows
from ..models import TIERS, Memory
from .packing import move_to_tier
from .vectors import EmbedderIdentity, Vector

Progress = Callable[[int, int | None], None]
"""Called with how many are done, and the total (None while it is unknown)."""

if TYPE_CHECKING:
    from ..crypto.encryption import Encryption
    from .capabilities import HotStore

T = TypeVar("T")
Result = TypeVar("Result")
Order = Literal["oldest", "newest", "importance", "step", "last step"]
_REPORTED = 2000  # items between two reports of progress
_MAX_FEEDBACK = 1000  # in the metadata
ORDERS: tuple[Order, ...] = ("oldest", "newest", "importance", "step", "last step")


class MemoryStore(ABC, Generic[T]):
    """Values by key, and a search over them."""

    @abstractmethod
    def add(self, key: str, value: T, meta: dict[str, Any] | None = None) -> None:
        """Store a value; replace the one with the same key."""

    @abstractmethod
    def get(self, key: str) -> T | None:
        """Return the value, or None."""

    @abstractmethod
    def search(self, query: str, top_k: int = 5) -> list[tuple[str, T, float]]:
        """Return (key, value, score) of the best matches, best first."""

    @abstractmethod
    def forget(self, key: str) -> bool:
        """Remove a value; return whether there was one."""


@dataclass(slots=True)
class StoreStats:
    memories: int
    by_agent: dict[str, int] = field(default_factory=dict)
    by_type: dict[str, int] = field(default_factory=dict)
    by_tier: dict[str, int] = field(default_factory=dict)
    sessions: int = 0
    oldest: float | None = None
    newest: float | None = None
    vectors: int = 0
    dimension: int | None = None
    words: int = 0
    encrypted: int = 0
    segments: int = 0
    bytes: int = 0


class Size(NamedTuple):
    """Bytes of packed memories, and of the same memories unpacked."""

    packed: int
    unpacked: int


Item = TypeVar("Item")


def counted(items: Iterable[Item], total: int, on_progress: Progress | None) -> Iterator[Item]:
    """Yield items and report every few thousand how many there were."""
    for done, item in enumerate(items):
        if on_progress is not None and done % _REPORTED == 0:
            on_progress(done, total)
        yield item


class Trace(NamedTuple):
    """The data of a memory that the forgetting curve needs. Recalls with negative feedback do not count."""

    memory_id: str
    importance: float
    when: float
    """The time that it is about, which may be long before it was stored."""
    last_used: float
    """When it was last recalled, or `when`."""
    recalls: int
    pinned: bool
    bytes: int
    steps_behind: int = 0
    """How many steps the newest memory of its agent is ahead."""


class SetAside(NamedTuple):
    """A memory that was pruned and can be restored until a time."""

    memory: Memory
    removed: float
    until: float


class Edited(NamedTuple):
    """The result of an edit: the new memory (None: it is removed), and the entry for the audit log, if any."""

    memory: Memory | None
    who: str = ""
    action: str = ""
    """The action in the audit log; "" for no entry."""
    detail: Mapping[str, Any] = {}


Edit = Callable[[Memory | None], Edited | None]
"""Called with a memory, or None if there is none; returns None to change nothing. May be called several times."""


class ReplicaState(NamedTuple):
    """The state of a replica: how many seconds it may be behind, if known, and why it is not used, if so."""

    server: str
    staleness: float | None
    problem: str | None


class RecordStore(Closing, MemoryStore[Memory]):
    """Memories with their words, vectors and context.

    When a write returns, it is durable and every later call in every process finds it. `embedder_identity` is the
    embedder of the vectors to be written; a store with vectors of another one refuses them. `encryption` says what the
    store encrypts, if it can.
    """

    capability: ClassVar[str | None] = None
    """The name of the capability, in subclasses in `capabilities`."""
    embedder_identity: EmbedderIdentity | None = None
    encryption: Encryption | None = None
    copies: Sequence[HotStore] = ()
    """Open stores of this process that hold copies of some memories."""

    @property
    def kind(self) -> str:
        """What errors call the store."""
        return type(self).__name__

    @property
    def capabilities(self) -> frozenset[str]:
        """Return the names of the optional capabilities of this store."""
        own = (vars(cls).get("capability") for cls in type(self).__mro__)
        return frozenset(name for name in own if name is not None)

    @abstractmethod
    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        """Store memories, all or none, and return them as stored.

        An empty `memory_id` is filled in (`agent-step-timestamp`, unique), a negative `step_number` becomes the
        agent's next step (one after its highest), and vectors are scaled to unit length. A memory whose id exists
        replaces the old one and keeps its place in the session.
        """

    @abstractmethod
    def edit(self, memory_id: str, edit: Edit) -> Memory | None:
        """Add, replace or remove a memory as `edit` decides, and add the entry to the audit log, if the store has one:
        all in one transaction. Return the memory as it is then.

        All changes that depend on the present memory are built on this method. A store that cannot lock may call `edit`
        again if the memory was changed meanwhile.
        """

    def change(self, memory_id: str, edit: Callable[[Memory], Memory]) -> Memory | None:
        """Edit an existing memory without an entry in the audit log; return None if there is none."""
        return self.edit(memory_id, lambda memory: None if memory is None else Edited(edit(memory)))

    def move(self, keys: Sequence[str], tier: str, vectors: Mapping[str, Vector] | None = None) -> int:
        """Move memories to a tier; return how many exist. Text and contents are the same in every tier; vectors are
        compressed in `im` and `ltm`, so that a memory that moves up needs its original in `vectors`. Without it, its
        vector is approximated from the compressed one."""
        checks.one_of("tier", tier, TIERS)
        given = vectors or {}
        return sum(
            self.change(key, lambda memory, key=key: move_to_tier(memory, tier, given.get(key))) is not None  # type: ignore[misc]
            for key in keys
        )

    @abstractmethod
    def get_many(self, keys: Sequence[str]) -> list[Memory | None]:
        """Return the memories with these ids, in this order."""

    @abstractmethod
    def forget_many(self, keys: Sequence[str]) -> int:
        """Remove memories; return how many there were."""

    @abstractmethod
    def select(
        self, where: Filter | None = None, *, order: Order = "oldest", limit: int | None = None, offset: int = 0
    ) -> list[Memory]:
        """Return the memories that match a filter."""

    @abstractmethod
    def count(self, where: Filter | None = None) -> int:
        """Count the memories that match a filter."""

    @abstractmethod
    def match(self, query: str, where: Filter | None = None, k: int = 10) -> list[tuple[Memory, float]]:
        """Return the best memories by BM25, with scores; term statistics are those of the rows that match the
        filter."""

    @abstractmethod
    def nearest(self, vector: Vector, where: Filter | None = None, k: int = 10) -> list[tuple[Memory, float]]:
        """Return the memories with the highest cosines, best first."""

    @abstractmethod
    def filtered_rows(self, where: Filter) -> FilteredRows:
        """Return the rows that match a filter, for the recall engine."""

    def candidates(self, where: Filter) -> FilteredRows | CandidateSource:
        """Return the rows that match a filter for one question; a store that searches itself returns a
        CandidateSource."""
        return self.filtered_rows(where)

    def read_transaction(self, work: Callable[[], Result]) -> Result:
        """Run `work`, which reads several times, in one snapshot if the store has them. It sees everything that was
        written before this call; it may be run again if a connection is lost."""
        return work()

    def recall_transaction(self, work: Callable[[], Result]) -> Result:
        """Run the reads of a recall, possibly on a replica: they may miss the latest writes of others, as far as the
        store allows, but see everything up to `write_mark`."""
        return self.read_transaction(work)

    def replica_states(self) -> Sequence[ReplicaState]:
        """Return the states of the replicas; empty if there are none."""
        return ()

    @property
    def write_mark(self) -> int:
        """The position of the last write of this process, for recalls in other processes; 0 if they see everything."""
        return 0

    @write_mark.setter
    def write_mark(self, mark: int) -> None:
        """Let recalls see what another process has written up to a position."""

    @abstractmethod
    def memories_at(self, seqs: Sequence[int]) -> list[tuple[int, Memory]]:
        """Return (seq, memory) of filtered rows, in this order; removed rows are left out."""

    def ids_at(self, seqs: Sequence[int]) -> list[str]:
        """Return the ids of filtered rows, in this order, without those of removed rows."""
        return [memory.memory_id for _, memory in self.memories_at(seqs)]

    def recalls_at(self, seqs: Sequence[int]) -> dict[int, int]:
        """Return how often filtered rows were recalled; those that never were may be left out."""
        return {seq: memory.bookkeeping.retrieval_count for seq, memory in self.memories_at(seqs)}

    @abstractmethod
    def touch(self, keys: Sequence[str], when: float) -> None:
        """Count a recall of memories. May be written later; never blocks a reader."""

    def flush(self) -> None:
        """Write pending access counts."""

    @abstractmethod
    def stats(self) -> StoreStats:
        """Return statistics of the store."""

    def erase(self, keys: Sequence[str], *, who: str, reason: str, named: bool = True) -> list[str]:
        """Remove memories permanently, also those set aside, and log it; return the ids that existed. With
        `named=False` the log does not contain the ids."""
        if len(keys) == 1:
            held = [key for key in keys if self.forget(key)]  # of several concurrent callers, one gets the id
        else:
            held = [memory.memory_id for memory in self.get_many(keys) if memory is not None]
            self.forget_many(held)
        gone = set(held)
        self.remove_feedback([item for item in self.feedback() if item.memory_id in gone])
        return held

    def set_aside(self, keys: Sequence[str], *, until: float, who: str, reason: str) -> list[str]:
        """Move memories to the trash, from which they can be restored until a time; return the ids that existed."""
        raise ConfigError(f"{type(self).__name__} cannot set memories aside; prune with grace_days=0")

    def put_back(self, keys: Sequence[str], *, who: str) -> list[Memory]:
        """Restore memories from the trash; those whose id is in use again stay there."""
        return []

    def aside(self) -> list[SetAside]:
        """Return the memories in the trash, by the time of their removal."""
        return []

    def empty_trash(self, now: float, *, who: str) -> list[str]:
        """Delete the memories in the trash whose time is over; return their ids."""
        return []

    def record(self, who: str, action: str, memories: Sequence[str | None] = (None,), **detail: Any) -> None:
        """Add entries to the audit log, one for each memory. Does nothing in stores without such a log."""

    def traces(self, on_progress: Progress | None = None) -> Iterator[Trace]:
        """Yield the data of every memory that the forgetting curve needs."""
        memories = self.select()
        newest: dict[str, int] = {}
        for memory in memories:
            newest[memory.agent_id] = max(newest.get(memory.agent_id, 0), memory.step_number)
        for memory in counted(memories, len(memories), on_progress):
            data = memory.bookkeeping
            yield Trace(
                memory.memory_id,
                data.importance_score,
                memory.timestamp,
                max(data.last_access_time, memory.timestamp) if data.retrieval_count else memory.timestamp,
                data.retrieval_count,
                "pinned" in memory.tags,
                len(memory.text.encode()),
                newest[memory.agent_id] - memory.step_number,
            )

    def repack(self, on_progress: Progress | None = None) -> None:
        """Pack memories again if compression dictionaries may contain text of removed ones."""

    def scrub(self, *, rewrite: bool = False) -> None:
        """Erase removed memories from the disk. With `rewrite`, also rewrite pages that may hold copies of removed
        rows, which the database made when it moved them."""

    def unreadable(self) -> int:
        """Count the encrypted memories whose key is missing; no search returns them."""
        return 0

    def check_comparable(self, by: Literal["vectors", "numbers"]) -> None:
        """Raise if some memories cannot be compared in this way because they are encrypted."""

    def sizes(self, where: Filter) -> dict[str, Size]:
        """Return the sizes of packed memories by tier; empty if the store packs none."""
        return {}

    def version(self) -> object:
        """Return a value that changes with every write of any process; always a new one if the store cannot know."""
        return object()

    def compact(self) -> None:
        """Optimize derived data; call after many writes."""

    @abstractmethod
    def get_meta(self, key: str) -> str | None:
        """Return a metadata value of the store, such as `embedder`; None if it is not set."""

    @abstractmethod
    def set_meta(self, key: str, value: str) -> None:
        """Set a metadata value of the store."""

    def add_feedback(self, feedback: Sequence[Feedback]) -> None:
        """Store feedback on recalls; a later one of the same recall and memory replaces an earlier one.

        This default keeps the newest thousand in one metadata value; of two processes that write at the same instant,
        one may lose. A FeedbackTable does better.
        """
        held = {item.key: item for item in [*self.feedback(), *feedback]}
        self._save_feedback(list(held.values())[-_MAX_FEEDBACK:])
        self.set_meta(FEEDBACK_ADDED, new_token())

    def feedback(self, since: float | None = None) -> list[Feedback]:
        """Return the feedback from a time on, oldest first."""
        stored = [Feedback(**item) for item in json.loads(self.get_meta("judgements") or "[]")]
        return sorted((item for item in stored if since is None or item.time >= since), key=lambda item: item.time)

    def remove_feedback(self, feedback: Sequence[Feedback]) -> None:
        """Remove feedback: of an erased memory, or of questions about a person who is forgotten."""
        if feedback:
            gone = {item.key for item in feedback}
            self._save_feedback([item for item in self.feedback() if item.key not in gone])
            self.set_meta(FEEDBACK_REMOVED, new_token())

    def feedback_version(self) -> tuple[str | None, str | None]:
        """Return two values: the first changes when feedback is added, the second when some is removed."""
        return self.get_meta(FEEDBACK_ADDED), self.get_meta(FEEDBACK_REMOVED)

    def _save_feedback(self, feedback: Sequence[Feedback]) -> None:
        self.set_meta("judgements", json.dumps([item.to_dict() for item in feedback], ensure_ascii=False))

    @abstractmethod
    def close(self) -> None:
        """Write pending changes and release all resources. Closing twice is harmless."""

    def add(self, key: str, value: Memory, meta: dict[str, Any] | None = None) -> None:
        if meta:
            raise InputError("meta must be empty: a Memory carries its own metadata", field="meta")
        value.memory_id = key
        self.put([value])

    def add_many(self, items: Mapping[str, Memory] | Iterable[tuple[str, Memory]]) -> int:
        """Store memories under their keys, all or none; return how many."""
        pairs = list(items.items() if isinstance(items, Mapping) else items)
        for key, memory in pairs:
            memory.memory_id = key
        return len(self.put([memory for _, memory in pairs]))

    def get(self, key: str) -> Memory | None:
        return self.get_many([key])[0]

    def forget(self, key: str) -> bool:
        return self.forget_many([key]) > 0

    def search(self, query: str, top_k: int = 5) -> list[tuple[str, Memory, float]]:
        return [(memory.memory_id, memory, score) for memory, score in self.match(query, k=top_k)]

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        """Ids, oldest first."""
        offset = 0
        while batch := self.select(limit=1000, offset=offset):
            yield from (memory.memory_id for memory in batch)
            offset += len(batch)
