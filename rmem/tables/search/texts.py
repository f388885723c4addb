"""The texts of a column, indexed by our analyser: postings for BM25, as recall has them for memories."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from ...forks import new_rlock
from ...index.analyser import Terms, Word, analyse, question_words
from ...index.bm25 import Scored, score_words
from ...index.postings import Block, Postings
from ...index.survey import Matches
from ..deadline import check
from .slots import Growing, Positions, Rows, Slots

_AT_ONCE = 200_000  # characters of texts that are read together
_MOST_AT_ONCE = 4096  # texts, likewise
_PACK_FROM = 256  # texts that arrive together from here on are packed at once
_PACK_TAIL = 60_000  # entries


class TextColumn:
    """The index of one TEXT column. Rows whose text is NULL are not in it."""

    def __init__(self) -> None:
        self.lock = new_rlock()
        self._slots = Slots()
        self._lengths = Growing(np.int32)
        self._postings = Postings()
        self._texts: Texts | None = None
        self._unread: dict[int, str] = {}  # by row, in the order in which they are to be read

    @property
    def nbytes(self) -> int:
        blocks = sum(16 * block.terms.size + 6 * block.rows.size for block in self._postings.blocks)
        return blocks + self._slots.nbytes + self._lengths.nbytes + 64 * self._postings.tail_entries

    def change(self, gone: Rows, rows: Rows, values: Sequence[Any]) -> None:
        """Rows that are gone, and rows as they are now."""
        with self.lock:
            self._texts = None
            self._slots.drop(np.concatenate([gone, rows]))
            if self._slots.mostly_dead:
                self._pack()
            for row in (*gone.tolist(), *rows.tolist()):
                self._unread.pop(row, None)
            given = zip(rows.tolist(), values, strict=True)
            self._unread.update((row, text) for row, text in given if text is not None)

    def read(self) -> None:
        """Index the texts that were not yet; goes on where a time limit stopped it."""
        with self.lock:
            while self._unread:
                some = self._next()
                terms = []
                for row in some:
                    check()
                    terms.append(analyse(self._unread[row]))
                self._add(np.array(some, np.int64), terms)
                for row in some:
                    del self._unread[row]

    def _next(self) -> list[int]:
        """The rows whose texts are read next, some moments' work."""
        some: list[int] = []
        length = 0
        for row, text in self._unread.items():
            length += len(text)
            if some and (length > _AT_ONCE or len(some) == _MOST_AT_ONCE):
                break
            some.append(row)
        return some

    def _add(self, rows: Rows, terms: Sequence[Terms]) -> None:
        first = self._slots.size
        self._slots.add(rows)
        self._lengths.append(np.array([one.length for one in terms], np.int32))
        if len(terms) >= _PACK_FROM:
            slots = np.arange(first, first + len(terms), dtype=np.uint32)
            sizes = [one.size for one in terms]
            hashes, counts = (np.concatenate([getattr(one, part) for one in terms]) for part in ("hashes", "counts"))
            self._postings.add_block(Block.build(hashes, np.repeat(slots, sizes), counts))
            return
        for slot, one in enumerate(terms, first):
            self._postings.add(slot, one.hashes.tolist(), one.counts.tolist())
        if self._postings.tail_entries > _PACK_TAIL:
            self._postings.pack_tail()

    def _pack(self) -> None:
        """Leave out the dead."""
        living = self._slots.living()
        assert living is not None
        keep = np.full(self._slots.size, -1, np.int64)
        keep[living] = np.arange(living.size)
        block = self._postings.cut(keep, 0, self._slots.size)
        rows, lengths = self._slots.rows[living], self._lengths.array[living]
        self._postings, self._slots, self._lengths = Postings(), Slots(), Growing(np.int32)
        self._postings.add_block(block)
        self._slots.add(rows)
        self._lengths.append(lengths)

    def texts(self) -> Texts:
        """All texts as they are now."""
        with self.lock:
            self.read()
            if self._texts is None:
                living = self._slots.living()
                self._texts = Texts(self._slots.rows, self._lengths.array, living, self._postings, self.lock)
            return self._texts


class Texts:
    """The living texts of a column by position, as BM25 wants them. Stays as it is when the column changes."""

    def __init__(
        self,
        rows: Rows,
        lengths: npt.NDArray[np.int32],
        living: Positions | None,
        postings: Postings,
        lock: RLock,
    ) -> None:
        self._postings, self._lock = postings, lock
        self._end = rows.size
        self._places: Positions | None = None
        if living is not None:
            self._places = np.full(rows.size, -1, np.int64)
            self._places[living] = np.arange(living.size)
            rows, lengths = rows[living], lengths[living]
        self.rows: Rows = rows
        self.length: npt.NDArray[np.int32] = lengths
        self.size = int(rows.size)
        self.average_length = float(lengths.mean()) if lengths.size else 0.0

    def matches(self, terms: Sequence[int]) -> Matches:
        """Where each of some terms occurs."""
        with self._lock:
            slots, counts, ends = self._postings.lookup(terms)
        at = slots.astype(np.int64)
        inside = at < self._end
        if self._places is not None:
            at = np.where(inside, self._places[np.where(inside, at, 0)], -1) if self._end else np.full(at.size, -1)
            inside = at >= 0
        elif not at.size or inside.all():
            return Matches(at, counts, ends)
        kept = np.append(0, np.cumsum(inside))
        return Matches(at[inside], counts[inside], kept[np.array(ends, np.int64)].tolist())

    def scored(self, question: str) -> Scored:
        """BM25 of every text for the words of a question, and what a text could score at most."""
        return score_words(self, _words(question))


@lru_cache(maxsize=256)
def _words(question: str) -> tuple[Word, ...]:
    return tuple(question_words(question))
