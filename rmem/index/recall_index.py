"""The recall index of one store: columns, postings, attribute hashes, vectors and vocabulary over the same rows.

Rows are numbered in the order of their `seq` and only ever appended; a row that is gone is dead, not removed.
Callers hold `lock` while they take a selection from the index, and change it inside `changing()`: an index whose change
was interrupted is not `whole`, and its store builds it again before the next answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import StoreCorruptError
from ..filters import Filter
from ..forks import new_rlock
from ..models import TIERS
from .analyser import COUNT, HASH, Hashes, Terms
from .arrays import first_of_each
from .bits import Vector, VectorColumns
from .columns import Columns, RowNumbers
from .numbers import NumberColumns, Numbers
from .postings import BlindTermLookup, Block, Postings
from .text_features import SEALED, TextFeatures
from .vocabulary import Vocabulary, WordVectors, is_plain_word

Scores = npt.NDArray[np.float32]

_PACK_FROM = 256  # rows added together from which on they are packed at once
_PACK_TAIL = 60_000  # entries
_MANY_DEAD = 4096  # dead rows above which compacting is worthwhile


@dataclass(slots=True)
class IndexRow:
    """One row to add to the index."""

    seq: int
    original_seq: int
    agent: str
    session: str | None
    kind: str
    actor: str | None
    tier: str
    time: float
    step: int
    importance: float
    position: tuple[float, ...] | None
    manner: TextFeatures
    terms: Terms
    attribute_hashes: bytes
    numbers: Numbers
    vector: npt.NDArray[np.float32] | None


class RecallIndex:
    """All rows of a store, ready to search. Readers take FilteredRows; writers use `changing`."""

    def __init__(self, word_vectors: WordVectors | None = None) -> None:
        self.lock = new_rlock()
        self.word_vectors = word_vectors
        self._blind_term_lookup: BlindTermLookup | None = None
        self.hides_sealed = False  # whether to leave out encrypted memories, because there is no key
        self.whole = True
        self.clear()

    @contextmanager
    def changing(self, *, anew: bool = False) -> Iterator[None]:
        """Hold the lock while the index is changed. A change that raises leaves the index not `whole`; only a rebuild
        (`anew`) makes it whole again."""
        with self.lock:
            whole, self.whole = self.whole or anew, False
            yield
            self.whole = whole

    def clear(self) -> None:
        """Remove all rows. Existing FilteredRows keep their data."""
        self.columns = Columns()
        self.postings = Postings(blind_term_lookup=self._blind_term_lookup)
        self.attribute_hashes = Postings(blind_term_lookup=self._blind_term_lookup)
        self.numbers = Postings("d")
        self.number_columns = NumberColumns(self.numbers)
        self.vectors: VectorColumns | None = None
        self.vocabulary = Vocabulary(self.word_vectors)

    def set_blind_term_lookup(self, blind_term_lookup: BlindTermLookup | None) -> None:
        """Also find encrypted memories, by the blind terms that `blind_term_lookup` returns."""
        self._blind_term_lookup = self.postings.blind_term_lookup = self.attribute_hashes.blind_term_lookup = (
            blind_term_lookup
        )

    def adopt(self, other: RecallIndex) -> None:
        """Take over the rows of an index built separately. Existing FilteredRows keep their data."""
        self.columns, self.postings, self.attribute_hashes = other.columns, other.postings, other.attribute_hashes
        self.numbers, self.number_columns = other.numbers, other.number_columns
        self.vectors, self.vocabulary = other.vectors, other.vocabulary
        self.set_blind_term_lookup(self._blind_term_lookup)

    @property
    def version(self) -> tuple[Columns, int, int, int]:
        """Return a value that changes whenever a row is added, moved or removed."""
        return self.columns, self.columns.size, self.columns.dead, self.columns.moves

    @property
    def size(self) -> int:
        return self.columns.size

    @property
    def alive(self) -> int:
        return self.columns.size - self.columns.dead

    @property
    def is_mostly_dead(self) -> bool:
        """Whether most rows are dead, after rows were replaced or removed."""
        return self.columns.dead > max(_MANY_DEAD, 2 * self.alive)

    @property
    def last_seq(self) -> int:
        return int(self.columns["seq"][-1]) if self.columns.size else 0

    def reserve(self, rows: int) -> None:
        self.columns.reserve(rows)
        if self.vectors is not None:
            self.vectors.reserve(rows)

    def read_codes(self) -> None:
        """Read all codes that were left in the store."""
        for vectors in (self.vectors, self.vocabulary.vectors):
            if vectors is not None and vectors.unread is not None:
                _ = vectors.codes

    def extend(self, rows: Sequence[IndexRow]) -> None:
        """Append rows in ascending order of seq, newer than all others."""
        if not rows:
            return
        first = self.size
        self._extend_vectors(rows, first)
        if len(rows) >= _PACK_FROM:
            lengths = self._extend_packed(rows, first)
        else:
            lengths = [row.terms.length for row in rows]
            for at, row in enumerate(rows, first):
                self.postings.add(at, row.terms.hashes.tolist(), row.terms.counts.tolist())
                held = np.frombuffer(row.attribute_hashes, HASH).tolist()
                self.attribute_hashes.add(at, held, [1] * len(held))
                self.numbers.add(at, row.numbers.paths.tolist(), row.numbers.values.tolist())
            for postings in (self.postings, self.attribute_hashes, self.numbers):
                if postings.tail_entries > _PACK_TAIL:
                    postings.pack_tail()
            for row in rows:
                self.vocabulary.add(row.terms.hashes.tolist(), row.terms.words)
        self.columns.append(
            {
                "seq": [row.seq for row in rows],
                "born": [row.original_seq for row in rows],
                "group": [(row.agent, row.session) for row in rows],
                "kind": [row.kind for row in rows],
                "actor": [row.actor for row in rows],
                "tier": [TIERS.index(row.tier) for row in rows],
                "time": [row.time for row in rows],
                "step": [row.step for row in rows],
                "importance": [row.importance for row in rows],
                "length": lengths,
                "distinct": [row.terms.size for row in rows],
                "flags": [row.manner.flags for row in rows],
                "specific": [row.manner.specific for row in rows],
                "position": [row.position for row in rows],
            }
        )

    def _extend_packed(self, rows: Sequence[IndexRow], first: int) -> list[int]:
        """Add the terms, attributes and numbers of many rows as blocks; return the lengths of their texts."""
        terms = [(row.terms.packed, row.terms.size) for row in rows]
        sizes = np.fromiter((size for _, size in terms), np.int64, len(rows))
        hashes = np.frombuffer(b"".join([packed[: 8 * size] for packed, size in terms]), HASH)
        counts = np.frombuffer(b"".join([packed[8 * size :] for packed, size in terms]), COUNT)
        self.postings.add_block(_pack_rows(hashes, counts, sizes, first))
        if not self.vocabulary.is_full:
            words = list(chain.from_iterable([row.terms.words for row in rows]))
            plain = np.flatnonzero(list(map(is_plain_word, words)))
            fresh = plain[first_of_each(hashes[plain])]
            self.vocabulary.add(hashes[fresh].tolist(), [words[at] for at in fresh.tolist()])
        attributes = np.frombuffer(b"".join([row.attribute_hashes for row in rows]), HASH)
        held = np.fromiter((len(row.attribute_hashes) // HASH.itemsize for row in rows), np.int64, len(rows))
        self.attribute_hashes.add_block(_pack_rows(attributes, np.ones(attributes.size, COUNT), held, first))
        numbered = [row.numbers for row in rows]
        held = np.fromiter((numbers.size for numbers in numbered), np.int64, len(rows))
        paths = np.concatenate([numbers.paths for numbers in numbered if numbers.packed] or [hashes[:0]])
        values = np.concatenate([numbers.values for numbers in numbered if numbers.packed] or [np.empty(0)])
        self.numbers.add_block(_pack_rows(paths, values, held, first))
        ends = np.append(0, np.cumsum(counts, dtype=np.int64))[np.append(0, np.cumsum(sizes))]
        lengths: list[int] = np.diff(ends).tolist()
        return lengths

    def _extend_vectors(self, rows: Sequence[IndexRow], first: int) -> None:
        if self.vectors is None:
            given = next((row.vector for row in rows if row.vector is not None), None)
            if given is None:
                return
            self.vectors = VectorColumns(given.size)
            self.vectors.append(np.zeros((first, given.size), np.float32))
        matrix = np.zeros((len(rows), self.vectors.dimension), np.float32)
        for at, row in enumerate(rows):
            if row.vector is not None:
                if row.vector.size != self.vectors.dimension:
                    raise StoreCorruptError(
                        f"row {row.seq} holds a vector of {row.vector.size} numbers among vectors of "
                        f"{self.vectors.dimension}; `rmem reindex` embeds all memories again"
                    )
                matrix[at] = row.vector
        self.vectors.append(matrix)

    def move(self, moves: Sequence[tuple[int, str]], vectors: Mapping[int, Vector | None]) -> None:
        """Set the tiers of moved rows (by seq), in the order of their moves, and their vectors there."""
        self.columns.move([seq for seq, _ in moves], [tier for _, tier in moves])
        if self.vectors is None:
            return
        at = self.columns.rows_of(list(vectors))
        matrix = np.zeros((at.size, self.vectors.dimension), np.float32)
        for line, vector in zip(matrix, vectors.values(), strict=True):
            if vector is not None and vector.size == line.size:
                line[:] = vector
        self.vectors.replace(at[at >= 0], matrix[at >= 0])

    def kill(self, seq: int) -> None:
        row = self.columns.row_of(seq)
        if row is not None:
            self.columns.kill(row)

    def select(self, where: Filter) -> RowNumbers | None:
        """Return the live rows inside the filter, ascending; None for all rows if none is dead."""
        return self.columns.select(where, self.attribute_hashes, without=SEALED if self.hides_sealed else 0)

    def average_length(self, rows: RowNumbers | None) -> float:
        if rows is None:
            return self.columns.total_length / self.alive if self.alive else 0.0
        return float(self.columns["length"][rows].mean()) if rows.size else 0.0


def _pack_rows(hashes: Hashes, values: npt.NDArray[Any], sizes: npt.NDArray[np.int64], first: int) -> Block:
    """Pack the hashes and values of consecutive rows, of which each has `sizes`, into a block."""
    return Block.build(hashes, np.repeat(np.arange(first, first + sizes.size, dtype=np.uint32), sizes), values)
