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
Counts = npt.NDArray[Any]  # whole numbers (how often), or floats (which number)
Disguises = Callable[[int], tuple[int, ...]]
"""Under which other terms a term may stand: its blind terms in the rows of encrypted memories."""

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
        """From entries in ascending order of row."""
        order = np.argsort(terms, kind="stable")
        ordered = terms[order]
        starts = starts_of_runs(ordered)
        offsets = np.append(starts, ordered.size).astype(np.int64)
        return cls(ordered[starts], offsets, rows[order], counts[order])

    def spans(self, terms: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where the entries of each term start and stop; at the same place if it has none."""
        at = np.minimum(np.searchsorted(self.terms, terms), self.terms.size - 1)
        starts = self.offsets[at]
        return starts, np.where(self.terms[at] == terms, self.offsets[at + 1], starts)


class Postings:
    """All inverted lists of an index, over row numbers that only grow. `kind` is the type of an entry's value, as
    `array` spells it. What is asked of a term counts the rows that hold it in disguise."""

    def __init__(self, kind: str = "H", disguises: Disguises | None = None) -> None:
        self.disguises = disguises
        self.blocks: list[Block] = []
        self._kind = kind
        self._nothing: Counts = np.empty(0, np.dtype(kind))
        self._tail: dict[int, tuple[array[int], array[Any]]] = {}
        self._tail_entries = 0

    def add(self, row: int, terms: Iterable[int], counts: Iterable[float]) -> None:
        """One row that is newer than all others."""
        tail = self._tail
        for term, count in zip(terms, counts, strict=True):
            lists = tail.get(term)
            if lists is None:
                lists = tail[term] = (array("I"), array(self._kind))
            lists[0].append(row)
            lists[1].append(count)
            self._tail_entries += 1

    def add_block(self, block: Block) -> None:
        """Rows that are newer than all others, packed."""
        self.pack_tail()
        if not block.terms.size:
            return
        self.blocks.append(block)
        while len(self.blocks) > 1 and self.blocks[-2].rows.size <= 2 * self.blocks[-1].rows.size:
            self.blocks[-2:] = [_joined(self.blocks[-2:])]

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
        """Rows that hold each term (ascending), how often, and where the part of each term ends. Nothing is looked up
        if the terms have more than `most` entries in all."""
        if self.disguises is None:
            return self._lookup(terms, most)
        all_terms, bounds = _with_disguises(terms, self.disguises)
        found = self._lookup(all_terms, most)
        return None if found is None else _regrouped(*found, bounds)

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
            waiting = self._tail.get(term)
            if waiting is not None:
                rows.append(np.array(waiting[0], np.uint32))
                counts.append(np.array(waiting[1], self._nothing.dtype))
                total += len(waiting[0])
            ends.append(total)
        return np.concatenate(rows), np.concatenate(counts), ends

    def holding(self, terms: Sequence[int]) -> dict[int, int]:
        """In how many rows each term occurs."""
        if self.disguises is None:
            return dict(zip(terms, self._holding(terms), strict=True))
        all_terms, bounds = _with_disguises(terms, self.disguises)
        total = [0, *accumulate(self._holding(all_terms))]
        return {term: total[end] - total[start] for term, start, end in zip(terms, [0, *bounds], bounds, strict=False)}

    def _holding(self, terms: Sequence[int]) -> list[int]:
        wanted = np.array(terms, np.uint64)
        held = np.array([len(self._tail[term][0]) if term in self._tail else 0 for term in terms], np.int64)
        for block in self.blocks:
            starts, stops = block.spans(wanted)
            held += stops - starts
        counted: list[int] = held.tolist()
        return counted

    def within(self, terms: Sequence[int], rows: npt.NDArray[np.int64]) -> tuple[Positions, Counts, list[int]]:
        """Which of some rows (ascending) hold each term: their positions in `rows`, how often, and where the part of
        each term ends. The cost follows these rows, however many others hold the term."""
        if self.disguises is None:
            return self._within(terms, rows)
        all_terms, bounds = _with_disguises(terms, self.disguises)
        return _regrouped(*self._within(all_terms, rows), bounds)

    def _within(self, terms: Sequence[int], rows: npt.NDArray[np.int64]) -> tuple[Positions, Counts, list[int]]:
        wanted = rows.astype(np.uint32)
        found: list[Positions] = [np.empty(0, np.int64)]
        counts: list[Counts] = [self._nothing]
        ends, total = [], 0
        for term in terms:
            for held, values in self.lists(term):
                if held.size and wanted.size:
                    positions, places = _common(wanted, held)
                    found.append(positions)
                    counts.append(values[places])
                    total += positions.size
            ends.append(total)
        return np.concatenate(found), np.concatenate(counts), ends

    def lists(self, term: int) -> Iterator[tuple[Rows, Counts]]:
        """The rows that hold a term, ascending from list to list, and their values."""
        for block in self.blocks:
            at = int(np.searchsorted(block.terms, np.uint64(term)))
            if at < block.terms.size and int(block.terms[at]) == term:
                start, stop = int(block.offsets[at]), int(block.offsets[at + 1])
                yield block.rows[start:stop], block.counts[start:stop]
        waiting = self._tail.get(term)
        if waiting is not None:
            yield np.array(waiting[0], np.uint32), np.array(waiting[1], self._nothing.dtype)

    def cut(self, keep: npt.NDArray[np.int64], first: int, end: int) -> Block:
        """The entries of rows first…end-1 as a block of their own. `keep[row - first]` is a row's number
        in it, or -1 for a row that is left out."""
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


def _with_disguises(terms: Sequence[int], disguises: Disguises) -> tuple[list[int], list[int]]:
    """Each term followed by its disguises, and where the part of each ends."""
    found: list[int] = []
    bounds: list[int] = []
    for term in terms:
        found += (term, *disguises(term))
        bounds.append(len(found))
    return found, bounds


def _regrouped(
    places: npt.NDArray[Place], counts: Counts, ends: list[int], bounds: list[int]
) -> tuple[npt.NDArray[Place], Counts, list[int]]:
    """The parts of terms and of their disguises put together, ascending again. No row is in two of them."""
    joined: list[int] = [ends[bound - 1] for bound in bounds]
    parts = np.repeat(np.arange(len(joined)), np.diff([0, *joined]))
    if ((places[1:] < places[:-1]) & (parts[1:] == parts[:-1])).any():
        order = np.lexsort((places, parts))
        places, counts = places[order], counts[order]
    return places, counts, joined


def _common(left: Rows, right: Rows) -> tuple[Positions, Positions]:
    """Where two ascending arrays have the same value: positions in each. The shorter is looked up in the longer."""
    if left.size > right.size:
        there, here = _common(right, left)
        return here, there
    at = np.minimum(np.searchsorted(right, left), right.size - 1)
    same = np.flatnonzero(right[at] == left)
    return same, at[same]


def _joined(blocks: Sequence[Block]) -> Block:
    """One block from neighbours whose rows follow one another."""
    return Block.build(
        np.concatenate([np.repeat(block.terms, np.diff(block.offsets)) for block in blocks]),
        np.concatenate([block.rows for block in blocks]),
        np.concatenate([block.counts for block in blocks]),
    )
