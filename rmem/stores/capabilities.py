"""Optional capabilities of stores, beside the contract in `base`. A capability is an abstract subclass of RecordStore:
a store that derives from it has it, and `isinstance(store, AuditLog)` tests for it. Code outside of this folder never
tests for a concrete store.

    class MyStore(Trash, IndexedStore): …   # capabilities first, so that missing methods raise TypeError
    MyStore(…).capabilities                 # frozenset({"trash", "vectors"})
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..facts.conflicts import Conflict
from ..facts.model import FactEdges, StoredFact
from ..feedback import Feedback
from ..index.vocabulary import WordVectors
from ..models import Memory
from .base import RecordStore, SetAside


class AuditEntry(NamedTuple):
    """One entry of the audit log; it has ids, never contents."""

    n: int
    time: float
    who: str
    action: str
    memory: str | None
    detail: dict[str, Any]


class AuditLog(RecordStore):
    """The store has a sealed log of who did what, written in the same transactions."""

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
        """Return the numbers of entries that were changed or are missing."""

    @abstractmethod
    def accept_audit(self, who: str) -> None:
        """Accept the log as it is, after a backup was restored; adds an entry."""


class Trash(RecordStore):
    """The store has a trash, from which memories are restored or deleted later."""

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
    """The store has a table of all feedback. Without it, RecordStore keeps the newest thousand in one value."""

    capability = "feedback"

    @abstractmethod
    def add_feedback(self, feedback: Sequence[Feedback]) -> None: ...

    @abstractmethod
    def feedback(self, since: float | None = None) -> list[Feedback]: ...

    @abstractmethod
    def remove_feedback(self, feedback: Sequence[Feedback]) -> None: ...


class FactTable(RecordStore):
    """The store has a table of the facts that memories state, written in the transactions of the memories."""

    capability = "facts"
    word_vectors: WordVectors | None
    """Embeds single words, to compare relations with the words of a question."""

    @abstractmethod
    def facts_about(
        self,
        subjects: Sequence[int] = (),
        relations: Sequence[int] = (),
        objects: Sequence[int] = (),
        *,
        within: tuple[float, float] | None = None,
        may_hold_at: float | None = None,
        least: float = 0.0,
        after: tuple[int, int] | None = None,
        newest: bool = False,
        limit: int | None = None,
    ) -> list[StoredFact]:
        """Return the facts that have one of the given ids of each kind, ordered by (seq, number), after `after`: those
        that state a start or an end `within` a span of time, by what they state `may_hold_at` a time, and have a
        confidence of at least `least`. With `newest`, the limit leaves out the oldest."""

    @abstractmethod
    def facts_at(self, seqs: Sequence[int]) -> list[StoredFact]:
        """Return the facts of some rows."""

    @abstractmethod
    def facts_of(self, memory_ids: Sequence[str]) -> list[StoredFact]:
        """Return the facts of some memories."""

    @abstractmethod
    def known_names(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the names of those ids that are entities of a fact."""

    @abstractmethod
    def fact_edges(self, shown: Callable[[int, str | None], bool] | None = None) -> FactEdges:
        """Return all facts as numbers, or those for which `shown(row, place of its memory)` is true."""

    @abstractmethod
    def possible_conflicts(
        self, single: Sequence[int], many: Sequence[int], about: Sequence[int] = ()
    ) -> list[Conflict]:
        """Return where facts may contradict each other: subject and relation, and the object of a statement and its
        denial or None for different values of a relation with one value at a time. Relations have one value if in
        `single`, or by the wording of a fact and not in `many`. `about` limits the answer to subjects and relations in
        whose facts one of these ids occurs. May return too much, never too little; ordered by the ids."""

    @abstractmethod
    def fact_count(self) -> int:
        """Count the facts."""


class Counters(RecordStore):
    """The store has counters that all processes share."""

    capability = "counters"

    @abstractmethod
    def next_number(self, stem: str) -> int:
        """Return the next number that no memory `stem…` has or had; each is returned once."""


class RowVectors(RecordStore):
    """The store returns the vectors of rows."""

    capability = "vectors"

    @abstractmethod
    def vectors_at(self, seqs: npt.NDArray[np.int64], dimension: int) -> npt.NDArray[np.float32]:
        """Return the original vectors of rows, one per row; zeros for rows without one of that dimension."""


class VectorState(NamedTuple):
    """The last row and the last change of a store, and a token that changes when all vectors are replaced."""

    row: int
    change: int
    generation: str


class VectorRow(NamedTuple):
    """A row with its uncompressed vector and the fields that an engine may filter by."""

    seq: int
    vector: npt.NDArray[np.float32] | None
    agent: str
    session: str | None
    type: str
    actor: str | None
    time: float


class VectorFeed(RecordStore):
    """The store lists which rows were added and removed, so that a vector engine can follow it. A changed row is
    removed and added again under a higher seq."""

    capability = "vector feed"

    @abstractmethod
    def vector_state(self) -> VectorState:
        """Return the present state."""

    @abstractmethod
    def vectors_after(self, seq: int, limit: int) -> list[VectorRow]:
        """Return the rows after a seq, in order."""

    @abstractmethod
    def removed_after(self, change: int) -> tuple[list[int], int] | None:
        """Return the seqs of rows removed after a change, and the last change; None if the log no longer goes back so
        far."""


class HotStore(RecordStore):
    """The store holds the memories of a tier in front of an archive, and may lose them."""

    capability = "hot tier"

    place: Mapping[str, Any]
    """The options with which it can be opened again, without secrets."""

    @abstractmethod
    def epoch(self, agent: str, *, check: bool = True) -> str | None:
        """Return a token that changes when the store was emptied; None while the agent has no rows there. With
        `check=False`, return the token as of the last time that the agent's rows were read."""

    @abstractmethod
    def steady(self) -> AbstractContextManager[None]:
        """Within this context, ask Redis for changes once: later filtered_rows() of this thread reuse the first
        result."""

    @abstractmethod
    def clear(self) -> None:
        """Remove everything, of all agents."""


CAPABILITIES: dict[str, type[RecordStore]] = {
    kind.capability: kind
    for kind in (AuditLog, Trash, FeedbackTable, FactTable, Counters, RowVectors, VectorFeed, HotStore)
}
"""Every capability by its name."""
