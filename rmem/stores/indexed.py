"""IndexedStore, the base class of stores that search by a recall index in memory, and `derive`, which computes what
that index needs of a memory. Rows are stored by subclasses."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .. import checks, facts
from ..contents import is_record, laid_out, text_in
from ..facts.model import FoundFact
from ..filters import Filter
from ..index import bits
from ..index.analyser import Terms, analyse, question_words
from ..index.best_scores import top
from ..index.bm25 import bm25
from ..index.columns import attribute_hashes_of
from ..index.filtered_rows import FilteredRows, FilteredRowsCache, nearest_rows
from ..index.numbers import Numbers, numbers_in
from ..index.recall_index import IndexRow, RecallIndex
from ..index.records import attribute_hashes_in, record_features
from ..index.text_features import SEALED, TextFeatures, text_features_of
from ..index.vocabulary import WordVectors
from ..models import TIERS, Memory
from .base import ORDERS, Order, StoreStats
from .capabilities import RowVectors
from .packing import full_vector
from .vectors import Vector

_WHOLE_MINUTES = 1_700_000  # since about 1973 clocks everywhere differ by whole minutes
_MONTHS = "january february march april may june july august september october november december".split()


class Derived(NamedTuple):
    """The data of a memory that the index needs, computed once when it is written."""

    terms: Terms
    attribute_hashes: bytes
    numbers: Numbers
    manner: TextFeatures
    facts: tuple[FoundFact, ...] = ()


def derive(memory: Memory, found: tuple[FoundFact, ...] = ()) -> Derived:
    """Compute terms of the text and its date, hashes of tags, place and attributes, and text features; `found` are the
    facts that the memory states, where they are wanted."""
    layout, values = laid_out(memory.contents)
    dated = date_words(memory.timestamp)
    features = None
    if is_record(memory.contents) and memory.text == text_in(layout, values):
        features = record_features(layout, values, dated)
    terms, manner = features or (analyse(memory.text, dated), text_features_of(memory.text))
    return Derived(
        terms=terms,
        attribute_hashes=attribute_hashes_of(memory.tags, memory.place, attribute_hashes_in(layout, values)),
        numbers=numbers_in(layout, values),
        manner=manner,
        facts=found,
    )


def derive_with_facts(memories: Sequence[Memory]) -> list[Derived]:
    """Do `derive` with facts for each memory. Facts are read in a pass of their own: the two in turns take a fifth more
    CPU for the facts, since the code of one is no longer cached when the other is done."""
    found = [facts.facts_of(memory) for memory in memories]
    return [derive(memory, of) for memory, of in zip(memories, found, strict=True)]


def date_words(timestamp: float) -> tuple[str, str, str]:
    """Return month, day and year of a memory, which are searchable with its text."""
    minute = int(timestamp // 60)
    return _date_words_of(60 * minute, time.tzname) if minute > _WHOLE_MINUTES else _date_words_at(timestamp)


def _date_words_at(timestamp: float) -> tuple[str, str, str]:
    when = datetime.fromtimestamp(timestamp)
    return _MONTHS[when.month - 1], str(when.day), str(when.year)


@lru_cache(maxsize=64)
def _date_words_of(timestamp: int, _zone: tuple[str, str]) -> tuple[str, str, str]:
    """Return the date words of a minute; cached, because most memories are stored when they are made."""
    return _date_words_at(timestamp)


def index_row(memory: Memory, derived: Derived, seq: int, original_seq: int, dimension: int | None = None) -> IndexRow:
    """Build a row of the index; `dimension` is that of the store's vectors, which a packed memory does not have."""
    return IndexRow(
        seq=seq,
        original_seq=original_seq,
        agent=memory.agent_id,
        session=memory.session,
        kind=memory.type,
        actor=memory.actor,
        tier=memory.tier,
        time=memory.timestamp,
        step=memory.step_number,
        importance=memory.importance,
        position=memory.position,
        manner=derived.manner,
        terms=derived.terms,
        attribute_hashes=derived.attribute_hashes,
        numbers=derived.numbers,
        vector=full_vector(memory, dimension),
    )


def new_id(memory: Memory) -> str:
    """Return the documented id: agent-step-timestamp. The store appends a number if that is taken."""
    return f"{memory.agent_id}-{memory.step_number}-{int(memory.timestamp)}"


class IndexedStore(RowVectors):
    """Select, BM25 and nearest vectors by the recall index; subclasses read and write the rows."""

    def __init__(self, word_vectors: WordVectors | None = None) -> None:
        self.word_vectors = word_vectors
        self.index = RecallIndex(word_vectors)
        self._filtered = FilteredRowsCache(self.index, self)

    @abstractmethod
    def refresh(self) -> None:
        """Update the index to all rows that are durable now."""

    @abstractmethod
    def texts_at(self, seqs: npt.NDArray[np.int64]) -> list[str]:
        """Return the texts of rows; "" for removed rows."""

    def version(self) -> object:
        self.refresh()
        return self.index.version

    def filtered_rows(self, where: Filter) -> FilteredRows:
        self.refresh()
        return self._filtered.take(where)

    def select(
        self, where: Filter | None = None, *, order: Order = "oldest", limit: int | None = None, offset: int = 0
    ) -> list[Memory]:
        checks.one_of("order", order, ORDERS)
        offset = checks.whole("offset", offset)
        end = None if limit is None else offset + checks.whole("limit", limit)

        def read() -> list[Memory]:
            found_rows = self.filtered_rows(where or Filter())
            # Ties are ordered by time, not by row: a tier gets its rows in the order in which they left another.
            first = {"step": "step", "last step": "step", "importance": "importance"}.get(order, "time")
            ranked = np.lexsort((found_rows.seq, found_rows.column("time"), found_rows.column(first)))
            ranked = ranked if order in ("oldest", "step") else ranked[::-1]
            return [memory for _, memory in self.memories_at(found_rows.seq[ranked[offset:end]].tolist())]

        return self.read_transaction(read)

    def count(self, where: Filter | None = None) -> int:
        return self.filtered_rows(where or Filter()).size

    def match(self, query: str, where: Filter | None = None, k: int = 10) -> list[tuple[Memory, float]]:
        checks.whole("k", k, low=1)
        if not isinstance(query, str):
            raise checks.refuse("query", "a text", query)

        def read() -> list[tuple[Memory, float]]:
            found_rows = self.filtered_rows(where or Filter())
            scores = bm25(found_rows, question_words(query))
            best = top(scores, k)
            best = best[scores[best] > 0]
            return self._paired(found_rows, best, scores[best])

        return self.read_transaction(read)

    def nearest(self, vector: Vector, where: Filter | None = None, k: int = 10) -> list[tuple[Memory, float]]:
        checks.whole("k", k, low=1)

        def read() -> list[tuple[Memory, float]]:
            found_rows = self.filtered_rows(where or Filter())
            query = checks.vector("vector", vector, dimension=found_rows.dimension)
            if found_rows.dimension is None:
                return []
            query = bits.unit(query[None, :])[0]
            at, scores = nearest_rows(found_rows, query, k)
            return self._paired(found_rows, at, scores)

        return self.read_transaction(read)

    def _paired(
        self, found_rows: FilteredRows, at: npt.NDArray[np.int64], scores: npt.NDArray[np.float32]
    ) -> list[tuple[Memory, float]]:
        """Return memories with their scores, without those that cannot be read."""
        by_seq = dict(zip(found_rows.seq[at].tolist(), scores.tolist(), strict=True))
        return [(memory, by_seq[seq]) for seq, memory in self.memories_at(list(by_seq))]

    def _index_stats(self) -> StoreStats:
        """Return the exact statistics that the index has."""
        self.refresh()
        with self.index.lock:
            columns = self.index.columns
            alive = columns["alive"]
            groups = Counter(columns["group"][alive].tolist())
            kinds = Counter(columns["kind"][alive].tolist())
            tiers = Counter(columns["tier"][alive].tolist())
            times = columns["time"][alive]
            by_agent: Counter[str] = Counter()
            for group, number in groups.items():
                by_agent[columns.groups.names[group][0]] += number
            vectors = self.index.vectors
            return StoreStats(
                memories=self.index.alive,
                by_agent=dict(by_agent.most_common()),
                by_type={columns.kinds.names[code]: number for code, number in kinds.most_common()},
                by_tier={TIERS[code]: number for code, number in sorted(tiers.items())},
                sessions=sum(columns.groups.names[group][1] is not None for group in groups),
                oldest=float(times.min()) if times.size else None,
                newest=float(times.max()) if times.size else None,
                vectors=0 if vectors is None else int((vectors.scales[: alive.size][alive] > 0).sum()),
                dimension=None if vectors is None else vectors.dimension,
                words=len(self.index.vocabulary),
                encrypted=int((columns["flags"][alive] & SEALED != 0).sum()),
            )
