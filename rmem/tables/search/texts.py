"""The BM25 index of a TEXT column, with the analyser and postings that recall uses for memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from ...forks import new_rlock
from ...index.analyser import MOST_COUNTED, Word, question_words, term_hashes
from ...index.bm25 import Scored, score_words
from ...index.filtered_rows import Matches
from ...index.postings import Block, Postings
from ...index.segments import Segment, sound_postings
from ..deadline import check
from ..engines.base import RowNumbers
from .slots import LAST, GrowingArray, Positions, Prints, Slots, fingerprint, replaced_rows

_AT_ONCE = 1_000_000  # characters of texts that are read together
_MOST_AT_ONCE = 8192  # texts, likewise
_PACK_FROM = 256  # texts that arrive together from here on are packed at once
_PACK_TAIL = 60_000  # entries
_PARTS = ("terms", "offsets", "rows", "counts")


class TextColumn:
    """The index of one TEXT column, without NULL rows."""

    def __init__(self) -> None:
        self.lock = new_rlock()
        self._slots = Slots()
        self._lengths = GrowingArray(np.int32)
        self._postings = Postings()
        self._texts: TextSnapshot | None = None
        self._unread: dict[int, tuple[str, int]] = {}  # by row, with fingerprints, in the order of reading

    @property
    def nbytes(self) -> int:
        blocks = sum(16 * block.terms.size + 6 * block.rows.size for block in self._postings.blocks)
        return blocks + self._slots.nbytes + self._lengths.nbytes + 64 * self._postings.tail_entries

    def change(self, gone: RowNumbers, rows: RowNumbers, values: Sequence[Any]) -> None:
        """Apply deleted rows and current rows. Rows with the same text are kept."""
        with self.lock:
            prints = np.array([fingerprint(value) for value in values], np.uint64)
            same = self._drop_changed(gone, rows, prints)
            given = zip(rows.tolist(), values, prints.tolist(), same.tolist(), strict=True)
            self._unread.update((row, (text, print_)) for row, text, print_, known in given if print_ and not known)
            if self._slots.mostly_dead:
                self._adopt(self.pack(0, LAST, 0))

    def drop_changed(self, gone: RowNumbers, rows: RowNumbers, values: Sequence[Any]) -> bool:
        """Drop rows that are deleted or have another text; return whether there were any."""
        with self.lock:
            dead = self._slots.dead
            self._drop_changed(gone, rows, np.array([fingerprint(value) for value in values], np.uint64))
            return self._slots.dead > dead

    def _drop_changed(self, gone: RowNumbers, rows: RowNumbers, prints: Prints) -> npt.NDArray[np.bool_]:
        """Drop changed rows; return which rows have the same text as before."""
        same = self._slots.find_unchanged(rows, prints)
        replaced = replaced_rows(gone, rows, same)
        if replaced.size:
            self._texts = None
        self._slots.drop(replaced)
        for row in replaced.tolist():
            self._unread.pop(row, None)
        return same

    def read(self) -> None:
        """Index pending texts; continue where a time limit stopped it."""
        with self.lock:
            while self._unread:
                some = self._next()
                terms: list[int] = []  # one list for all texts, which leaves the garbage collector nothing to do
                ends = []
                for row in some:
                    check()
                    terms += term_hashes(self._unread[row][0])
                    ends.append(len(terms))
                self._add(np.array(some, np.int64), terms, ends)
                for row in some:
                    del self._unread[row]

    def _next(self) -> list[int]:
        """Return the rows to index next, a moment's work."""
        some: list[int] = []
        length = 0
        for row, (text, _) in self._unread.items():
            length += len(text)
            if some and (length > _AT_ONCE or len(some) == _MOST_AT_ONCE):
                break
            some.append(row)
        return some

    def _add(self, rows: RowNumbers, terms: list[int], ends: list[int]) -> None:
        first = self._slots.size
        self._texts = None
        prints = np.array([self._unread[row][1] for row in rows.tolist()], np.uint64)
        if rows.size >= _PACK_FROM:
            slots = np.repeat(np.arange(first, first + rows.size, dtype=np.uint32), np.diff([0, *ends]))
            block = Block.count(np.array(terms, np.uint64), slots, MOST_COUNTED)
            lengths = np.bincount(block.rows.astype(np.int64) - first, block.counts, rows.size)
            self._postings.add_block(block)
        else:
            counted = [Counter(terms[start:end]) for start, end in pairwise([0, *ends])]
            for slot, counts in enumerate(counted, first):
                self._postings.add(slot, counts, [min(count, MOST_COUNTED) for count in counts.values()])
            lengths = np.array([sum(min(count, MOST_COUNTED) for count in counts.values()) for counts in counted])
            if self._postings.tail_entries > _PACK_TAIL:
                self._postings.pack_tail()
        self._slots.add(rows, prints)
        self._lengths.append(lengths.astype(np.int32))

    def pack(self, first: int, last: int, changes: int) -> Segment:
        """Pack the indexed rows first…last as a segment."""
        with self.lock:
            slots = self._slots.between(first, last)
            keep = np.full(self._slots.size, -1, np.int64)
            keep[slots] = np.arange(slots.size)
            block = self._postings.cut(keep, 0, self._slots.size).in_order()
            arrays = {f"terms.{part}": getattr(block, part) for part in _PARTS}
            arrays |= {"lengths": self._lengths.array[slots]}
            arrays |= {"rows": self._slots.rows[slots], "prints": self._slots.prints[slots]}
            return Segment(first, last, int(slots.size), changes, arrays)

    def absorb(self, segment: Segment) -> None:
        """Add the rows of a segment, none of which is here."""
        with self.lock:
            arrays, first = segment.arrays, self._slots.size
            terms, offsets, rows, counts = (arrays[f"terms.{part}"] for part in _PARTS)
            self._texts = None
            block = Block(terms, offsets, rows + np.uint32(first) if first else rows, counts)
            self._postings.add_block(block, join=False)
            self._slots.add(arrays["rows"], arrays["prints"])
            self._lengths.append(arrays["lengths"])

    def _adopt(self, segment: Segment) -> None:
        """Replace an empty index by a segment."""
        self._postings, self._slots, self._lengths = Postings(), Slots(), GrowingArray(np.int32)
        self.absorb(segment)

    @staticmethod
    def is_sound(segment: Segment) -> bool:
        """Return whether the parts of a segment are consistent."""
        sizes = {segment.arrays[name].shape for name in ("rows", "prints", "lengths")}
        return sizes == {(segment.rows,)} and sound_postings(segment.arrays, "terms", segment.rows)

    def texts(self) -> TextSnapshot:
        with self.lock:
            if self._unread:
                self.read()
            if self._texts is None:
                living = self._slots.live_slots()
                self._texts = TextSnapshot(self._slots.rows, self._lengths.array, living, self._postings, self.lock)
            return self._texts


class TextSnapshot:
    """A snapshot of the live texts of a column by position, for BM25."""

    def __init__(
        self,
        rows: RowNumbers,
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
        self.rows: RowNumbers = rows
        self.length: npt.NDArray[np.int32] = lengths
        self.size = int(rows.size)
        self.average_length = float(lengths.mean()) if lengths.size else 0.0

    def matches(self, terms: Sequence[int]) -> Matches:
        """Return where each of some terms occurs."""
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

    def score(self, question: str) -> Scored:
        """Return BM25 of every text for a question, and the highest possible score."""
        return score_words(self, _words(question))


@lru_cache(maxsize=256)
def _words(question: str) -> tuple[Word, ...]:
    return tuple(question_words(question))
