"""Inverted lists: term hash → the rows that hold it and how often, or which number a row has there. Blocks are
packed and immutable; the newest rows wait in a tail of small growing lists until there are enough of them to pack."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .arrays import starts_of_runs

Rows = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.int64]
Counts = npt.NDArray[Any]  # counts as integers, or numbers as floats
BlindTermLookup = Callable[[int], tuple[int, ...]]
"""Returns the blind terms of a term, under which encrypted memories are indexed."""

Place = TypeVar("Place", np.uint32, np.int64)

_NO_ROWS: Rows = np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Block:
    """Sorted terms; the entries of term i are rows[offsets[i]:offsets[i + 1]], ascending."""

    terms: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]
    rows: Rows
    counts: Counts

    @classmethod
    def build(cls, terms: npt.NDArray[np.uint64], rows: Rows, counts: Counts) -> Block:
        """Build a block from entries in ascending order of row."""
        order = np.argsort(terms, kind="stable")
        ordered = terms[order]
        starts = starts_of_runs(ordered)
        offsets = np.append(starts, ordered.size).astype(np.int64)
        return cls(ordered[starts], offsets, rows[order], counts[order])

    @classmethod
    def count(cls, terms: npt.NDArray[np.uint64], rows: Rows, most: int) -> Block:
        """Build a block from repeated terms in ascending order of row; counts are limited to `most`."""
        order = np.argsort(terms, kind="stable")
        terms, rows = terms[order], rows[order]
        starts = np.flatnonzero(np.append(True, (terms[1:] != terms[:-1]) | (rows[1:] != rows[:-1]))[: terms.size])
        counts = np.minimum(np.diff(np.append(starts, terms.size)), most).astype(np.uint16)
        terms = terms[starts]
        firsts = starts_of_runs(terms)
        return cls(terms[firsts], np.append(firsts, terms.size), rows[starts], counts)

    def in_order(self) -> Block:
        """Return this block with the rows of every term ascending, after rows were renumbered."""
        starts = np.zeros(self.rows.size, np.bool_)
        starts[self.offsets[:-1]] = True
        if ((self.rows[1:] > self.rows[:-1]) | starts[1:]).all():
            return self
        order = np.lexsort((self.rows, np.repeat(np.arange(self.terms.size), np.diff(self.offsets))))
        return Block(self.terms, self.offsets, self.rows[order], self.counts[order])

    def spans(self, terms: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return where the entries of each term start and stop; equal if it has none."""
        at = np.minimum(np.searchsorted(self.terms, terms), self.terms.size - 1)
        starts = self.offsets[at]
        return starts, np.where(self.terms[at] == terms, self.offsets[at + 1], starts)


class Postings:
    """All inverted lists of an index, over row numbers that only grow. `kind` is the type of an entry's value, as
    `array` spells it. Lookups of a term include the rows that contain its blind terms."""

    def __init__(self, kind: str = "H", blind_term_lookup: BlindTermLookup | None = None) -> None:
        self.blind_term_lookup = blind_term_lookup
        self.blocks: list[Block] = []
        self._kind = kind
        self._nothing: Counts = np.empty(0, np.dtype(kind))
        self._tail: dict[int, tuple[array[int], array[Any]]] = {}
        self._tail_entries = 0

    def add(self, row: int, terms: Iterable[int], counts: Iterable[float]) -> None:
        """Add one row that is newer than all others."""
        tail = self._tail
        for term, count in zip(terms, counts, strict=True):
            lists = tail.get(term)
            if lists is None:
                lists = tail[term] = (array("I"), array(self._kind))
            lists[0].append(row)
            lists[1].append(count)
            self._tail_entries += 1

    def add_block(self, block: Block, *, join: bool = True) -> None:
        """Add a block of rows that are newer than all others. Blocks of segments are few and need not be joined with
        earlier ones, which would take longer than reading them."""
        self.pack_tail()
        if not block.terms.size:
            return
        self.blocks.append(block)
        while join and len(self.blocks) > 1 and self.blocks[-2].rows.size <= 2 * self.blocks[-1].rows.size:
            self.blocks[-2:] = [_join_blocks(self.blocks[-2:])]

    def pack_tail(self) -> None:
        if not self._tail:
            return
        terms = np.fromiter(self._tail.keys(), np.uint64, len(self._tail))
        sizes = np.fromiter((len(rows) for rows, _ in self._tail.values()), np.int64, len(self._tail))
        rows = np.concatenate([np.frombuffer(rows, np.uint32) for rows, _ in self._tail.values()])
        counts = np.concatenate([np.frombuffer(counts, self._nothing.dtype) for _, counts in self._tail.values()])
        block = Block.build(np.repeat(terms, sizes), rows, counts)
        self._tail = {}
        self._tail_entries = 0
        self.add_block(block)

    @property
    def tail_entries(self) -> int:
        return self._tail_entries

    @overload
    def lookup(self, terms: Sequence[int]) -> tuple[Rows, Counts, list[int]]: ...

    @overload
    def lookup(self, terms: Sequence[int], most: int | None) -> tuple[Rows, Counts, list[int]] | None: ...

    def lookup(self, terms: Sequence[int], most: int | None = None) -> tuple[Rows, Counts, list[int]] | None:
        """Return the rows of each term (ascending), their counts, and where the entries of each term end; None if the
        terms have more than `most` entries in total."""
        if self.blind_term_lookup is None:
            return self._lookup(terms, most)
        all_terms, bounds = _with_blind_terms(terms, self.blind_term_lookup)
        found = self._lookup(all_terms, most)
        return None if found is None else _merge_blind_entries(*found, bounds)

    def _lookup(self, terms: Sequence[int], most: int | None) -> tuple[Rows, Counts, list[int]] | None:
        wanted = np.array(terms, np.uint64)
        places = []
        entries = 0
        for block in self.blocks:
            starts, stops = block.spans(wanted)
            entries += int((stops - starts).sum())
            places.append((block, starts.tolist(), stops.tolist()))
        if most is not None and entries + sum(len(self._tail[term][0]) for term in terms if term in self._tail) > most:
            return None
        rows: list[Rows] = [_NO_ROWS]
        counts: list[Counts] = [self._nothing]
        ends, total = [], 0
        for number, term in enumerate(terms):
            for block, firsts, lasts in places:
                start, stop = firsts[number], lasts[number]
                if start < stop:
                    rows.append(block.rows[start:stop])
                    counts.append(block.counts[start:stop])
                    total += stop - start
            tail = self._tail.get(term)
            if tail is not None:
                rows.append(np.array(tail[0], np.uint32))
                counts.append(np.array(tail[1], self._nothing.dtype))
                total += len(tail[0])
            ends.append(total)
        return np.concatenate(rows), np.concatenate(counts), ends

    def row_counts(self, terms: Sequence[int]) -> dict[int, int]:
        """Return the number of rows of each term."""
        if self.blind_term_lookup is None:
            return dict(zip(terms, self._row_counts(terms), strict=True))
        all_terms, bounds = _with_blind_terms(terms, self.blind_term_lookup)
        total = [0, *accumulate(self._row_counts(all_terms))]
        return {term: total[end] - total[start] for term, start, end in zip(terms, [0, *bounds], bounds, strict=False)}

    def _row_counts(self, terms: Sequence[int]) -> list[int]:
        wanted = np.array(terms, np.uint64)
        counts = np.array([len(self._tail[term][0]) if term in self._tail else 0 for term in terms], np.int64)
        for block in self.blocks:
            starts, stops = block.spans(wanted)
            counts += stops - starts
        result: list[int] = counts.tolist()
        return result

    def within(self, terms: Sequence[int], rows: npt.NDArray[np.int64]) -> tuple[Positions, Counts, list[int]]:
        """Return which of some rows (ascending) contain each term: their positions in `rows`, counts, and where the
        entries of each term end. The cost depends on these rows, not on how many others contain the term."""
        if self.blind_term_lookup is None:
            return self._within(terms, rows)
        all_terms, bounds = _with_blind_terms(terms, self.blind_term_lookup)
        return _merge_blind_entries(*self._within(all_terms, rows), bounds)

    def _within(self, terms: Sequence[int], rows: npt.NDArray[np.int64]) -> tuple[Positions, Counts, list[int]]:
        wanted = rows.astype(np.uint32)
        found: list[Positions] = [np.empty(0, np.int64)]
        counts: list[Counts] = [self._nothing]
        ends, total = [], 0
        for term in terms:
            for rows_of_term, values in self.lists(term):
                if rows_of_term.size and wanted.size:
                    positions, places = _intersect(wanted, rows_of_term)
                    found.append(positions)
                    counts.append(values[places])
                    total += positions.size
            ends.append(total)
        return np.concatenate(found), np.concatenate(counts), ends

    def lists(self, term: int) -> Iterator[tuple[Rows, Counts]]:
        """Yield the rows of a term and their values, list by list, ascending."""
        for block in self.blocks:
            at = int(np.searchsorted(block.terms, np.uint64(term)))
            if at < block.terms.size and int(block.terms[at]) == term:
                start, stop = int(block.offsets[at]), int(block.offsets[at + 1])
                yield block.rows[start:stop], block.counts[start:stop]
        tail = self._tail.get(term)
        if tail is not None:
            yield np.array(tail[0], np.uint32), np.array(tail[1], self._nothing.dtype)

    def cut(self, keep: npt.NDArray[np.int64], first: int, end: int) -> Block:
        """Copy the entries of rows first…end-1 to a new block. `keep[row - first]` is a row's number in it, or -1 to
        leave it out."""
        self.pack_tail()
        terms, rows, counts = [], [], []
        for block in self.blocks:
            inside = (block.rows >= first) & (block.rows < end)
            if not inside.any():
                continue
            inside[inside] = keep[block.rows[inside].astype(np.int64) - first] >= 0
            rows.append(keep[block.rows[inside].astype(np.int64) - first].astype(np.uint32))
            terms.append(np.repeat(block.terms, np.diff(block.offsets))[inside])
            counts.append(block.counts[inside])
        if not terms:
            return Block.build(np.empty(0, np.uint64), _NO_ROWS, self._nothing)
        return Block.build(np.concatenate(terms), np.concatenate(rows), np.concatenate(counts))


def _with_blind_terms(terms: Sequence[int], blind_term_lookup: BlindTermLookup) -> tuple[list[int], list[int]]:
    """Return each term followed by its blind terms, and where those of each end."""
    found: list[int] = []
    bounds: list[int] = []
    for term in terms:
        found += (term, *blind_term_lookup(term))
        bounds.append(len(found))
    return found, bounds


def _merge_blind_entries(
    places: npt.NDArray[Place], counts: Counts, ends: list[int], bounds: list[int]
) -> tuple[npt.NDArray[Place], Counts, list[int]]:
    """Merge the entries of each term and its blind terms, ascending. No row is in two of them."""
    merged_ends: list[int] = [ends[bound - 1] for bound in bounds]
    parts = np.repeat(np.arange(len(merged_ends)), np.diff([0, *merged_ends]))
    if ((places[1:] < places[:-1]) & (parts[1:] == parts[:-1])).any():
        order = np.lexsort((places, parts))
        places, counts = places[order], counts[order]
    return places, counts, merged_ends


def _intersect(left: Rows, right: Rows) -> tuple[Positions, Positions]:
    """Intersect two ascending arrays; return the positions in each. The shorter is looked up in the longer."""
    if left.size > right.size:
        there, here = _intersect(right, left)
        return here, there
    at = np.minimum(np.searchsorted(right, left), right.size - 1)
    same = np.flatnonzero(right[at] == left)
    return same, at[same]


def _join_blocks(blocks: Sequence[Block]) -> Block:
    """Join adjacent blocks whose rows follow one another."""
    return Block.build(
        np.concatenate([np.repeat(block.terms, np.diff(block.offsets)) for block in blocks]),
        np.concatenate([block.rows for block in blocks]),
        np.concatenate([block.counts for block in blocks]),
    )
