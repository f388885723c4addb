"""What a store may offer beside the contract in `base`. A capability is an abstract subclass of RecordStore: a store
that derives from it has it, and `isinstance(store, AuditLog)` asks for it. Nobody outside of this folder asks for the
class of a concrete store.

    class MyStore(Trash, IndexedStore): …   # name capabilities first, so that Python misses what is not written
    MyStore(…).capabilities                 # frozenset({"trash", "vectors"})
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..facts.model import FactEdges, StoredFact
from ..feedback import Feedback
from ..models import Memory
from .base import RecordStore, SetAside


class AuditEntry(NamedTuple):
    """One entry of the audit log. It holds ids, never contents."""

    n: int
    time: float
    who: str
    action: str
    memory: str | None
    detail: dict[str, Any]


class AuditLog(RecordStore):
    """The store keeps a sealed log of who did what, in the transactions that do it."""

    capability = "audit"

    @abstractmethod
    def record(self, who: str, action: str, memories: Sequence[str | None] = (None,), **detail: Any) -> None:
        """Add an entry for each of some memories."""

    @abstractmethod
    def audit(
        self,
        *,
        memory: str | None = None,
        since: float | None = None,
        limit: int | None = None,
        before: int | None = None,
    ) -> list[AuditEntry]:
        """Return the newest entries (of those before a number), newest first."""

    @abstractmethod
    def changed_after(self, number: int, actions: Sequence[str], limit: int) -> list[AuditEntry]:
        """Return the entries of some actions after a number, oldest first."""

    @abstractmethod
    def broken_audit(self) -> list[int]:
        """Return the numbers of entries that are not as they were written."""

    @abstractmethod
    def accept_audit(self, who: str) -> None:
        """Take the log as it is for whole, after a backup was restored; this is an entry, too."""


class Trash(RecordStore):
    """The store can set memories aside, so that they are restored or deleted later."""

    capability = "trash"

    @abstractmethod
    def set_aside(self, keys: Sequence[str], *, until: float, who: str, reason: str) -> list[str]: ...

    @abstractmethod
    def put_back(self, keys: Sequence[str], *, who: str) -> list[Memory]: ...

    @abstractmethod
    def aside(self) -> list[SetAside]: ...

    @abstractmethod
    def empty_trash(self, now: float, *, who: str) -> list[str]: ...


class FeedbackTable(RecordStore):
    """The store keeps all feedback, each written for itself. Without it, RecordStore keeps the newest thousand in one
    value."""

    capability = "feedback"

    @abstractmethod
    def add_feedback(self, feedback: Sequence[Feedback]) -> None: ...

    @abstractmethod
    def feedback(self, since: float | None = None) -> list[Feedback]: ...

    @abstractmethod
    def remove_feedback(self, feedback: Sequence[Feedback]) -> None: ...


class FactTable(RecordStore):
    """The store keeps the facts that memories say, each with its memory and in its transaction."""

    capability = "facts"

    @abstractmethod
    def facts_about(
        self,
        subjects: Sequence[int] = (),
        relations: Sequence[int] = (),
        objects: Sequence[int] = (),
        *,
        after: tuple[int, int] | None = None,
        newest: bool = False,
        limit: int | None = None,
    ) -> list[StoredFact]:
        """Return facts that have one of the ids of each kind that is given, ordered by (seq, number); those behind
        `after`. With `newest`, the limit leaves out the oldest."""

    @abstractmethod
    def facts_at(self, seqs: Sequence[int]) -> list[StoredFact]:
        """Return the facts that memories in some rows say."""

    @abstractmethod
    def facts_of(self, memory_ids: Sequence[str]) -> list[StoredFact]:
        """Return the facts that some memories say."""

    @abstractmethod
    def known_names(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the names of those ids that are entities of some fact."""

    @abstractmethod
    def fact_edges(self, shown: Callable[[int, str | None], bool] | None = None) -> FactEdges:
        """Return all facts as numbers, or those that are `shown`, told by the row and the place of their memory."""

    @abstractmethod
    def fact_count(self) -> int:
        """Return how many facts there are."""


class Counters(RecordStore):
    """The store counts for all of its processes."""

    capability = "counters"

    @abstractmethod
    def next_number(self, stem: str) -> int:
        """Return the next number that no memory `stem…` has, nor ever had; each is given once."""


class RowVectors(RecordStore):
    """The store hands out the vectors of rows."""

    capability = "vectors"

    @abstractmethod
    def vectors_at(self, seqs: npt.NDArray[np.int64], dimension: int) -> npt.NDArray[np.float32]:
        """Return the original vectors of rows, one line each; zeros where there is none of that dimension."""


class VectorState(NamedTuple):
    """How far a store has come: its last row, its last change, and a text that is another one when all vectors were
    replaced."""

    row: int
    change: int
    generation: str


class VectorRow(NamedTuple):
    """A row with its vector, at full length, and what an engine may filter by."""

    seq: int
    vector: npt.NDArray[np.float32] | None
    agent: str
    session: str | None
    type: str
    actor: str | None
    time: float


class VectorFeed(RecordStore):
    """The store tells which rows came and went, so that an engine beside it can follow. A row that is changed goes and
    comes again under a higher seq."""

    capability = "vector feed"

    @abstractmethod
    def vector_state(self) -> VectorState:
        """Return how far the store has come."""

    @abstractmethod
    def vectors_after(self, seq: int, limit: int) -> list[VectorRow]:
        """Return the rows behind a seq, in their order."""

    @abstractmethod
    def removed_after(self, change: int) -> tuple[list[int], int] | None:
        """Return the seqs of rows that went after a change, and the last change; None if that is no longer known."""


class HotStore(RecordStore):
    """The store holds the memories of a tier in front of an archive, and may lose them."""

    capability = "hot tier"

    place: Mapping[str, Any]
    """Where it is, without secrets: what it can be opened with again."""

    @abstractmethod
    def epoch(self, agent: str, *, look: bool = True) -> str | None:
        """Return a token that is another one after the store was emptied; None while the agent has nothing there.
        Without `look` it is that of the last time that the agent's rows were looked at."""

    @abstractmethod
    def steady(self) -> AbstractContextManager[None]:
        """Within this context, check Redis once: later filtered_rows() of this thread may reuse what the first one
        read."""

    @abstractmethod
    def clear(self) -> None:
        """Remove everything, of all agents."""


CAPABILITIES: dict[str, type[RecordStore]] = {
    one.capability: one
    for one in (AuditLog, Trash, FeedbackTable, FactTable, Counters, RowVectors, VectorFeed, HotStore)
}
"""Every capability by its name."""
