"""The store contract, on two levels. A plugin that keeps values needs the four methods of MemoryStore; a store
that serves recall is a RecordStore: what is abstract there every store needs, the rest has a default. What only some
stores offer is in `capabilities`. `rmem.testing` holds the suite that every store passes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

from .. import checks
from ..errors import ConfigError, InputError
from ..feedback import FEEDBACK_ADDED, FEEDBACK_REMOVED, Feedback, new_token
from ..filters import Filter
from ..index.candidate_source import CandidateSource
from ..index.filtered_rows import FilteredRows
from ..models import TIERS, Memory
from .packing import placed
from .vectors import EmbedderIdentity, Vector

Progress = Callable[[int, int | None], None]
"""Called with how many are done and how many there are (None while that is unknown)."""

if TYPE_CHECKING:
    from ..crypto.encryption import Encryption
    from .capabilities import HotStore

T = TypeVar("T")
Result = TypeVar("Result")
Order = Literal["oldest", "newest", "importance", "step", "last step"]
_MOST_NOTED = 1000  # of them
ORDERS: tuple[Order, ...] = ("oldest", "newest", "importance", "step", "last step")


class MemoryStore(ABC, Generic[T]):
    """Values by key, and a search over them."""

    @abstractmethod
    def add(self, key: str, value: T, meta: dict[str, Any] | None = None) -> None:
        """Keep a value; one with the same key is replaced."""

    @abstractmethod
    def get(self, key: str) -> T | None:
        """The value, or None."""

    @abstractmethod
    def search(self, query: str, top_k: int = 5) -> list[tuple[str, T, float]]:
        """(key, value, score) of the best matches, best first."""

    @abstractmethod
    def forget(self, key: str) -> bool:
        """Remove a value; whether there was one."""


@dataclass(slots=True)
class StoreStats:
    """What a store holds."""

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
    """The bytes of memories that are packed: as they are, and before."""

    packed: int
    unpacked: int


class Trace(NamedTuple):
    """What the forgetting curve needs to know of a memory. Recalls that were judged useless do not count."""

    memory_id: str
    importance: float
    when: float
    """The time that it is about, which may be long before it was kept."""
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
    """What an edit makes of a memory (None: it is removed), and the entry for the audit log, if it gets one."""

    memory: Memory | None
    who: str = ""
    action: str = ""
    """What the audit log calls it; empty for no entry."""
    detail: Mapping[str, Any] = {}


Edit = Callable[[Memory | None], Edited | None]
"""Takes a memory, or None where there is none, and returns None to change nothing. It may be called several times."""


class ReplicaState(NamedTuple):
    """What is known of a replica: how many seconds it may be behind, if that is known, and why it is left out, if it
    is."""

    server: str
    staleness: float | None
    problem: str | None


class RecordStore(MemoryStore[Memory]):
    """Memories with their words, vectors and context.

    A write that returned is durable and is found by every later call, in every process. `owner` names the
    embedder of the vectors to be written; a store that holds vectors of another refuses them. `encryption` says what
    the store encrypts, if it can.
    """

    capability: ClassVar[str | None] = None
    """The name of what a subclass in `capabilities` adds."""
    embedder_identity: EmbedderIdentity | None = None
    encryption: Encryption | None = None
    copies: Sequence[HotStore] = ()
    """Stores at hand in this process that hold some of its memories a second time."""

    @property
    def capabilities(self) -> frozenset[str]:
        """Return the names of what this store offers beside the contract."""
        own = (vars(cls).get("capability") for cls in type(self).__mro__)
        return frozenset(name for name in own if name is not None)

    @abstractmethod
    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        """Keep memories, all or none, and return them as kept.

        An empty `memory_id` is filled in (`agent-step-timestamp`, unique), a negative `step_number` becomes the
        agent's next step (one after its highest), and vectors are kept at unit length. A memory whose id is known
        replaces the old one and keeps its place in the session.
        """

    @abstractmethod
    def edit(self, memory_id: str, edit: Edit) -> Memory | None:
        """Keep, replace or remove a memory by what `edit` makes of it, and add the entry to the audit log, if the store
        has one: all in one transaction. Return the memory as it is then.

        This is the only way to change a memory that depends on what it is; everything else is built on it. A store
        that cannot lock may call `edit` again when the memory was changed meanwhile.
        """

    def change(self, memory_id: str, edit: Callable[[Memory], Memory]) -> Memory | None:
        """`edit` for a memory that exists, without an entry in the audit log; None if there is none."""
        return self.edit(memory_id, lambda memory: None if memory is None else Edited(edit(memory)))

    def move(self, keys: Sequence[str], tier: str, vectors: Mapping[str, Vector] | None = None) -> int:
        """Put memories into a tier; how many there were. Text and contents come back from every tier as they were
        given; vectors are shorter in `im` and `ltm`, so that a memory on its way up needs its own again: without it
        it keeps the direction that the short one tells, or none."""
        checks.one_of("tier", tier, TIERS)
        given = vectors or {}
        return sum(
            self.change(key, lambda memory, key=key: placed(memory, tier, given.get(key))) is not None  # type: ignore[misc]
            for key in keys
        )

    @abstractmethod
    def get_many(self, keys: Sequence[str]) -> list[Memory | None]:
        """The memories with these ids, in this order."""

    @abstractmethod
    def forget_many(self, keys: Sequence[str]) -> int:
        """Remove memories; how many there were."""

    @abstractmethod
    def select(
        self, where: Filter | None = None, *, order: Order = "oldest", limit: int | None = None, offset: int = 0
    ) -> list[Memory]:
        """Memories inside the filter."""

    @abstractmethod
    def count(self, where: Filter | None = None) -> int:
        """How many memories are inside the filter."""

    @abstractmethod
    def match(self, query: str, where: Filter | None = None, k: int = 10) -> list[tuple[Memory, float]]:
        """BM25 of the words of `query`, its statistics taken inside the filter; best first."""

    @abstractmethod
    def nearest(self, vector: Vector, where: Filter | None = None, k: int = 10) -> list[tuple[Memory, float]]:
        """The highest cosines; best first."""

    @abstractmethod
    def filtered_rows(self, where: Filter) -> FilteredRows:
        """The rows inside the filter as the recall engine reads them."""

    def candidates(self, where: Filter) -> FilteredRows | CandidateSource:
        """The same for one question: a store that searches by itself gathers the candidates for it."""
        return self.filtered_rows(where)

    def read_transaction(self, work: Callable[[], Result]) -> Result:
        """Do what reads several times. Nothing that it sees is older than this call; a store may show it all of one
        moment, and may do it again when a connection was lost."""
        return work()

    def recall_transaction(self, work: Callable[[], Result]) -> Result:
        """The same for a recall, which may be answered by a replica: it may miss what others wrote in the last moments,
        as far as the store allows, but nothing that was written up to the mark `written`."""
        return self.read_transaction(work)

    def replica_states(self) -> Sequence[ReplicaState]:
        """How the replicas are that answer its recalls; none where it has none."""
        return ()

    @property
    def written(self) -> int:
        """A mark of the last write of this process, for recalls in others; 0 where they always see everything."""
        return 0

    @written.setter
    def written(self, mark: int) -> None:
        """Let recalls see what another process has written."""

    @abstractmethod
    def memories_at(self, seqs: Sequence[int]) -> list[tuple[int, Memory]]:
        """(seq, memory) of filtered rows, in this order; rows that have gone meanwhile are left out."""

    def ids_at(self, seqs: Sequence[int]) -> list[str]:
        """The ids of filtered rows, in this order, as far as they are still there."""
        return [memory.memory_id for _, memory in self.memories_at(seqs)]

    def recalls_at(self, seqs: Sequence[int]) -> dict[int, int]:
        """How often filtered rows were recalled; those that never were may be left out."""
        return {seq: memory.bookkeeping.retrieval_count for seq, memory in self.memories_at(seqs)}

    @abstractmethod
    def touch(self, keys: Sequence[str], when: float) -> None:
        """Note that memories were recalled. May be written later; never blocks a reader."""

    def flush(self) -> None:
        """Write the accesses that wait, where some do."""

    @abstractmethod
    def stats(self) -> StoreStats:
        """What the store holds."""

    def erase(self, keys: Sequence[str], *, who: str, reason: str, named: bool = True) -> list[str]:
        """Remove memories for good, also from where they were set aside, and note it; the ids that there were.
        Without `named` the note does not tell the ids."""
        if len(keys) == 1:
            held = [key for key in keys if self.forget(key)]  # of several who do so at once, one is told
        else:
            held = [memory.memory_id for memory in self.get_many(keys) if memory is not None]
            self.forget_many(held)
        gone = set(held)
        self.remove_feedback([one for one in self.feedback() if one.memory_id in gone])
        return held

    def set_aside(self, keys: Sequence[str], *, until: float, who: str, reason: str) -> list[str]:
        """Remove memories so that they can be put back until a time; the ids that there were."""
        raise ConfigError(f"{type(self).__name__} cannot set memories aside; prune with grace_days=0")

    def put_back(self, keys: Sequence[str], *, who: str) -> list[Memory]:
        """Restore memories that were set aside; those whose id is in use again stay aside."""
        return []

    def aside(self) -> list[SetAside]:
        """What can be put back, by the time of its removal."""
        return []

    def empty_trash(self, now: float, *, who: str) -> list[str]:
        """Delete for good what was set aside until a time that is over; the ids."""
        return []

    def record(self, who: str, action: str, memories: Sequence[str | None] = (None,), **detail: Any) -> None:
        """Note in the audit log what somebody did with some memories. Stores without such a log keep nothing."""

    def traces(self) -> Iterator[Trace]:
        """What the forgetting curve needs to know of every memory."""
        memories = self.select()
        newest: dict[str, int] = {}
        for memory in memories:
            newest[memory.agent_id] = max(newest.get(memory.agent_id, 0), memory.step_number)
        for memory in memories:
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
        """Pack memories anew where what they are packed with may repeat those that were removed."""

    def scrub(self, *, rewrite: bool = False) -> None:
        """Make sure that nothing of what was removed is left anywhere on disk. With `rewrite`, write anew also what
        may hold copies that the database made of removed rows when it moved them."""

    def unreadable(self) -> int:
        """How many memories are left out of every answer because they are encrypted and their key is not here."""
        return 0

    def check_comparable(self, by: Literal["vectors", "numbers"]) -> None:
        """Raise where some memories cannot be compared in this way because they are encrypted."""

    def sizes(self, where: Filter) -> dict[str, Size]:
        """How small packed memories are, by tier; nothing where a store packs none."""
        return {}

    def version(self) -> object:
        """Equal as long as nothing was written, by anybody; something new each time where that cannot be told."""
        return object()

    def compact(self) -> None:
        """Called after many writes: time to bring what is derived from them into its best form."""

    @abstractmethod
    def get_meta(self, key: str) -> str | None:
        """Return a fact about the store itself, such as `embedder`; None if it is not set."""

    @abstractmethod
    def set_meta(self, key: str, value: str) -> None:
        """Set a fact about the store itself."""

    def add_feedback(self, feedback: Sequence[Feedback]) -> None:
        """Keep feedback on recalls; a later one of the same recall and memory replaces an earlier one.

        Here they are kept in a note, the newest thousand of them, so that every store has them; of two processes that
        write at the same instant one may lose. Stores with a table of their own do better.
        """
        held = {one.key: one for one in [*self.feedback(), *feedback]}
        self._note_feedback(list(held.values())[-_MOST_NOTED:])
        self.set_meta(FEEDBACK_ADDED, new_token())

    def feedback(self, since: float | None = None) -> list[Feedback]:
        """The feedback from a time on, oldest first."""
        noted = [Feedback(**one) for one in json.loads(self.get_meta("judgements") or "[]")]
        return sorted((one for one in noted if since is None or one.time >= since), key=lambda one: one.time)

    def remove_feedback(self, feedback: Sequence[Feedback]) -> None:
        """Remove feedback: of a memory that is erased, or of questions about somebody who wants to be forgotten."""
        if feedback:
            gone = {one.key for one in feedback}
            self._note_feedback([one for one in self.feedback() if one.key not in gone])
            self.set_meta(FEEDBACK_REMOVED, new_token())

    def feedback_version(self) -> tuple[str | None, str | None]:
        """Two values: the first is another one when feedback was added, the second when some was removed."""
        return self.get_meta(FEEDBACK_ADDED), self.get_meta(FEEDBACK_REMOVED)

    def _note_feedback(self, feedback: Sequence[Feedback]) -> None:
        self.set_meta("judgements", json.dumps([one.to_dict() for one in feedback], ensure_ascii=False))

    @abstractmethod
    def close(self) -> None:
        """Write what waits and let go of every resource. Closing twice is harmless."""

    def add(self, key: str, value: Memory, meta: dict[str, Any] | None = None) -> None:
        if meta:
            raise InputError("meta must be empty: a Memory carries its own metadata", field="meta")
        value.memory_id = key
        self.put([value])

    def add_many(self, items: Mapping[str, Memory] | Iterable[tuple[str, Memory]]) -> int:
        """Keep memories under their keys, all or none; how many."""
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
