"""The in-memory store: for tests and trials, and as the simplest implementation of the contract."""

from __future__ import annotations

import copy
from collections import ChainMap, deque
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import StoreClosedError
from ..facts.conflicts import Conflict, possible_conflicts
from ..facts.model import FactEdges, StoredFact
from ..feedback import FEEDBACK_ADDED, FEEDBACK_REMOVED, Feedback, new_token
from ..filters import Filter
from ..forks import new_rlock
from ..index.filtered_rows import FilteredRows
from ..index.recall_index import IndexRow
from ..index.vocabulary import WordVectors
from ..models import Memory
from .base import Edit, StoreStats
from .capabilities import FactTable, FeedbackTable, VectorFeed, VectorRow, VectorState
from .indexed import Derived, IndexedStore, derive, derive_with_facts, index_row, new_id
from .memory_facts import MemoryFacts, is_within, may_hold
from .packing import full_vector
from .vectors import check_vector_format, check_vectors, first_vector

Result = TypeVar("Result")

_MAX_REMOVED = 65_536  # removed rows that are listed, for vector engines


class InMemoryRecordStore(FeedbackTable, FactTable, VectorFeed, IndexedStore):
    """Memories in a dictionary. Memories are copied when stored and when returned."""

    def __init__(self, word_vectors: WordVectors | None = None) -> None:
        super().__init__(word_vectors)
        self._lock = new_rlock()
        self._rows: dict[int, Memory] = {}
        self._seq_of: dict[str, int] = {}
        self._original_seq: dict[str, int] = {}
        self._next_step: dict[str, int] = {}
        self._meta: dict[str, str] = {}
        self._facts = MemoryFacts()
        self._feedback: dict[tuple[str, str], Feedback] = {}
        self._last = 0
        self._removed: deque[int] = deque(maxlen=_MAX_REMOVED)
        self._changes = 0
        self._generation = new_token()
        self._closed = False

    def _open(self) -> None:
        if self._closed:
            raise StoreClosedError("this store is closed; open it again to use it")

    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        with self._lock:
            self._open()
            kept = [copy.deepcopy(memory) for memory in memories]
            check_vectors(kept, None if self.index.vectors is None else self.index.vectors.dimension)
            given = first_vector(kept)
            facts = {} if given is None else check_vector_format(given, self._meta, self.embedder_identity)
            derived = derive_with_facts(kept)  # first: it may raise
            self._meta |= facts
            with self.index.changing():
                self._keep(kept, derived)
            return [copy.deepcopy(memory) for memory in kept]

    def _keep(self, kept: Sequence[Memory], derived: Sequence[Derived]) -> None:
        """Number the memories, then change the index, then the rows: a failure of an earlier step changes nothing."""
        seq_of, steps = ChainMap({}, self._seq_of), ChainMap({}, self._next_step)
        original_seq: dict[str, int] = {}
        rows: dict[int, Memory] = {}
        entries: list[IndexRow] = []
        replaced: list[int] = []
        for seq, (memory, parts) in enumerate(zip(kept, derived, strict=True), self._last + 1):
            step = steps.get(memory.agent_id, 0)
            if memory.step_number < 0:
                memory.step_number = step
            steps[memory.agent_id] = max(step, memory.step_number + 1)
            if not memory.memory_id:
                memory.memory_id = _free_id(new_id(memory), seq_of)
            old = seq_of.get(memory.memory_id)
            if old is not None:
                known = (rows.get(old) or self._rows[old]).bookkeeping  # a replaced memory keeps its access counts
                memory.bookkeeping.retrieval_count = known.retrieval_count
                memory.bookkeeping.last_access_time = known.last_access_time
                replaced.append(old)
            original_seq[memory.memory_id] = self._original_seq.get(
                memory.memory_id, original_seq.get(memory.memory_id, seq)
            )
            rows[seq], seq_of[memory.memory_id] = memory, seq
            entries.append(index_row(memory, parts, seq, original_seq[memory.memory_id]))
        self.index.extend(entries)
        for old in replaced:
            self.index.kill(old)
        self._last += len(kept)
        self._rows.update(rows)
        self._seq_of.update(seq_of.maps[0])
        self._original_seq.update(original_seq)
        self._next_step.update(steps.maps[0])
        for old in replaced:
            del self._rows[old]
            self._facts.remove(old)
            self._log_removal(old)
        for seq, (memory, parts) in enumerate(zip(kept, derived, strict=True), self._last - len(kept) + 1):
            if seq in self._rows:  # unless a later memory of the batch replaced it
                self._facts.add(seq, memory, parts.facts)

    def edit(self, memory_id: str, edit: Edit) -> Memory | None:
        with self._lock:
            old = self.get_many([memory_id])[0]
            edited = edit(old)
            if edited is None:
                return old
            if edited.memory is None:
                self.forget_many([memory_id])
                return None
            edited.memory.memory_id = memory_id
            return self.put([edited.memory])[0]

    def get_many(self, keys: Sequence[str]) -> list[Memory | None]:
        with self._lock:
            self._open()
            found = (self._rows.get(self._seq_of.get(key, 0)) for key in keys)
            return [copy.deepcopy(memory) for memory in found]

    def forget_many(self, keys: Sequence[str]) -> int:
        with self._lock:
            self._open()
            gone = 0
            with self.index.changing():
                for key in keys:
                    seq = self._seq_of.pop(key, None)
                    if seq is not None:
                        gone += 1
                        agent = self._rows.pop(seq).agent_id
                        del self._original_seq[key]
                        steps = (memory.step_number for memory in self._rows.values() if memory.agent_id == agent)
                        self._next_step[agent] = max(steps, default=-1) + 1
                        self._facts.remove(seq)
                        self.index.kill(seq)
                        self._log_removal(seq)
            lost = set(keys)
            kept = {key: item for key, item in self._feedback.items() if key[1] not in lost}
            if len(kept) < len(self._feedback):
                self._feedback, self._meta[FEEDBACK_REMOVED] = kept, new_token()
            return gone

    def _log_removal(self, seq: int) -> None:
        self._removed.append(seq)
        self._changes += 1

    def vector_state(self) -> VectorState:
        with self._lock:
            return VectorState(self._last, self._changes, self._generation)

    def vectors_after(self, seq: int, limit: int) -> list[VectorRow]:
        with self._lock:
            held = sorted(row for row in self._rows if row > seq)[:limit]
            dimension = None if self.index.vectors is None else self.index.vectors.dimension
            return [
                VectorRow(row, full_vector(m, dimension), m.agent_id, m.session, m.type, m.actor, m.timestamp)
                for row, m in ((row, self._rows[row]) for row in held)
            ]

    def removed_after(self, change: int) -> tuple[list[int], int] | None:
        with self._lock:
            behind = self._changes - change
            return (
                None
                if behind > len(self._removed)
                else (list(self._removed)[-behind:] if behind else [], self._changes)
            )

    def touch(self, keys: Sequence[str], when: float) -> None:
        with self._lock:
            self._open()
            for key in keys:
                seq = self._seq_of.get(key)
                if seq is not None:
                    bookkeeping = self._rows[seq].bookkeeping
                    bookkeeping.retrieval_count += 1
                    bookkeeping.last_access_time = max(bookkeeping.last_access_time, when)

    def stats(self) -> StoreStats:
        stats = self._index_stats()
        stats.bytes = sum(len(memory.text.encode()) for memory in self._rows.values())
        return stats

    def get_meta(self, key: str) -> str | None:
        with self._lock:
            self._open()
            return self._meta.get(key)

    def set_meta(self, key: str, value: str) -> None:
        with self._lock:
            self._open()
            self._meta[key] = value

    def add_feedback(self, feedback: Sequence[Feedback]) -> None:
        with self._lock:
            self._open()
            self._feedback.update({item.key: item for item in feedback})
            self._meta[FEEDBACK_ADDED] = new_token()

    def feedback(self, since: float | None = None) -> list[Feedback]:
        with self._lock:
            self._open()
            held = [item for item in self._feedback.values() if since is None or item.time >= since]
        return sorted(held, key=lambda item: item.time)

    def remove_feedback(self, feedback: Sequence[Feedback]) -> None:
        with self._lock:
            for item in feedback:
                self._feedback.pop(item.key, None)
            self._meta[FEEDBACK_REMOVED] = new_token()

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
        with self._lock:
            chosen = [
                fact
                for fact in self._facts.about(subjects, relations, objects)
                if fact.confidence >= least
                and (after is None or (fact.seq, fact.number) > after)
                and (within is None or is_within(fact, *within))
                and (may_hold_at is None or may_hold(fact, may_hold_at))
            ]
            return chosen[-limit:] if newest and limit else chosen[:limit]

    def facts_at(self, seqs: Sequence[int]) -> list[StoredFact]:
        with self._lock:
            return self._facts.of_rows(seqs)

    def facts_of(self, memory_ids: Sequence[str]) -> list[StoredFact]:
        with self._lock:
            return self._facts.of_rows(self._seq_of[key] for key in memory_ids if key in self._seq_of)

    def known_names(self, ids: Sequence[int]) -> dict[int, str]:
        with self._lock:
            return self._facts.names(ids)

    def fact_edges(self, shown: Callable[[int, str | None], bool] | None = None) -> FactEdges:
        with self._lock:
            return self._facts.edges(shown)

    def possible_conflicts(
        self, single: Sequence[int], many: Sequence[int], about: Sequence[int] = ()
    ) -> list[Conflict]:
        with self._lock:
            return possible_conflicts(self._facts.about((), (), ()), single, many, about)

    def fact_count(self) -> int:
        return len(self._facts)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._rows.clear()
            self._facts.clear()
            self.index.clear()

    def read_transaction(self, work: Callable[[], Result]) -> Result:
        with self._lock:
            return work()

    def filtered_rows(self, where: Filter) -> FilteredRows:
        with self._lock:
            return super().filtered_rows(where)

    def refresh(self) -> None:
        """Rebuild the index if a write was interrupted, or if most of its rows are dead."""
        self._open()
        if self.index.whole and not self.index.is_mostly_dead:
            return
        with self._lock, self.index.changing(anew=True):
            rows = [
                index_row(memory, derive(memory), seq, self._original_seq[memory.memory_id])
                for seq, memory in sorted(self._rows.items())
                if self._seq_of.get(memory.memory_id) == seq
            ]
            self.index.clear()
            self.index.extend(rows)

    def memories_at(self, seqs: Sequence[int]) -> list[tuple[int, Memory]]:
        with self._lock:
            self._open()
            return [(seq, copy.deepcopy(self._rows[seq])) for seq in seqs if seq in self._rows]

    def vectors_at(self, seqs: npt.NDArray[np.int64], dimension: int) -> npt.NDArray[np.float32]:
        matrix = np.zeros((seqs.size, dimension), np.float32)
        with self._lock:
            for at, seq in enumerate(seqs.tolist()):
                memory = self._rows.get(seq)
                vector = None if memory is None else full_vector(memory, dimension)
                if vector is not None and vector.size == dimension:
                    matrix[at] = vector
        return matrix

    def texts_at(self, seqs: npt.NDArray[np.int64]) -> list[str]:
        with self._lock:
            found = (self._rows.get(seq) for seq in seqs.tolist())
            return ["" if memory is None else memory.text for memory in found]


def _free_id(wanted: str, taken: Mapping[str, int]) -> str:
    free, number = wanted, 1
    while free in taken:
        number += 1
        free = f"{wanted}-{number}"
    return free
