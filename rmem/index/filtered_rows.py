"""`FilteredRows`: the rows inside one filter, laid out for ranking. The recall engine sees nothing else of a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..filters import Filter
from ..forks import cached_property
from ..models import TIERS
from .analyser import Word
from .arrays import products
from .best_scores import top
from .bits import Estimate
from .columns import RowNumbers, distances
from .postings import Postings
from .recall_index import RecallIndex
from .text_features import SEALED
from .vocabulary import rare_words

Scores = npt.NDArray[np.float32]
Found = TypeVar("Found")


class Matches(NamedTuple):
    """The occurrences of terms in filtered rows: positions (ascending for each term), counts or numbers, and where the
    entries of each term end. For candidates also the number of rows of each term, and of all rows, in the store."""

    at: npt.NDArray[np.int64]
    counts: npt.NDArray[Any]
    ends: list[int]
    held: list[int] | None = None
    rows: int | None = None

    def part(self, number: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return the positions and values of one term."""
        start = self.ends[number - 1] if number else 0
        return self.at[start : self.ends[number]], self.counts[start : self.ends[number]]


class RowSource(Protocol):
    """Reads vectors and texts of rows by seq."""

    def vectors_at(self, seqs: npt.NDArray[np.int64], dimension: int) -> npt.NDArray[np.float32]:
        """Return the original vectors, one row each; zeros if there is none of that dimension."""

    def texts_at(self, seqs: npt.NDArray[np.int64]) -> list[str]:
        """Return the texts; empty for removed rows."""


class FilteredRows:
    """Rows by position 0…size-1 in order of arrival; every array here is indexed by that position."""

    def __init__(self, index: RecallIndex, where: Filter, source: RowSource) -> None:
        with index.lock:
            self._index, self._lock = index, index.lock
            self._postings, self._vocabulary = index.postings, index.vocabulary
            self._attribute_hashes, self._numbers = index.attribute_hashes, index.number_columns
            self._in_session, self._actors = index.columns.in_session, index.columns.actors
            self._rows: RowNumbers | None = index.select(where)
            hidden = index.hides_sealed and index.columns.flags & SEALED
            self._whole_sessions = not hidden and where.to_dict().keys() <= {"agent", "session"}
            self._end = index.size
            self.size = self._end if self._rows is None else int(self._rows.size)
            self.average_length = index.average_length(self._rows)
            self._vectors = index.vectors
            self._columns = {name: index.columns[name] for name in _COLUMNS}
            self._links = {name: index.columns.links(name) for name in ("previous", "next")}
            self._places, self._kinds = index.columns.position, index.columns.kinds
            self._groups = index.columns.groups
            self.moves = index.columns, index.columns.moves_of(where.agent or ())
            self._source = source
            self._found: dict[Hashable, Any] = {}

    @property
    def population(self) -> int:
        """Return the number of rows for statistics: these, or those that candidates were chosen from."""
        return self.size

    @property
    def small(self) -> bool:
        """Whether there are so few rows that all are ranked."""
        return self.size <= _SMALL

    def once(self, key: Hashable, find: Callable[[], Found]) -> Found:
        """Return the cached result of `find` for these rows; call it the first time."""
        if key not in self._found:
            self._found[key] = find()
        found: Found = self._found[key]
        return found

    def column(self, name: str) -> npt.NDArray[Any]:
        whole = self._columns[name]
        return whole if self._rows is None else whole[self._rows]

    @cached_property
    def seq(self) -> npt.NDArray[np.int64]:
        return self.column("seq").astype(np.int64, copy=False)

    def contained_seqs(self, seqs: Collection[int]) -> set[int]:
        """Return those of some seqs that are among the rows."""
        wanted = np.fromiter(seqs, np.int64, len(seqs))
        order = self.once("seqs in order", lambda: np.sort(self.seq))
        if not order.size:
            return set()
        at = np.minimum(np.searchsorted(order, wanted), order.size - 1)
        return set(wanted[order[at] == wanted].tolist())

    @cached_property
    def length(self) -> npt.NDArray[np.int32]:
        return self.column("length").astype(np.int32, copy=False)

    def column_at(self, name: str, at: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return a column at some positions (arbitrary for position -1)."""
        return self._columns[name].take(at if self._rows is None else self._rows.take(at))

    def sessions_at(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the session of rows as a number; -1 outside sessions."""
        group = self.column_at("group", at)
        return np.where(self._in_session[group], group, np.int32(-1))

    def labels(self, by: str) -> tuple[npt.NDArray[np.int64], list[str]]:
        """Return agent, type, tier or importance of every row as a number, and the name of each number."""
        if by == "importance":
            bands = (self.column("importance") * len(BANDS)).astype(np.int64)
            return np.minimum(bands, len(BANDS) - 1), list(BANDS)
        if by == "tier":
            return self.column("tier").astype(np.int64), list(TIERS)
        if by == "type":
            return self.column("kind").astype(np.int64), list(self._kinds.names)
        groups = list(self._groups.names)  # (agent, session)
        names = sorted({agent for agent, _ in groups})
        place = {name: at for at, name in enumerate(names)}
        of_group = np.array([place[agent] for agent, _ in groups], np.int64)
        return of_group[self.column("group")] if groups else np.empty(0, np.int64), names

    def sessions(self) -> list[tuple[str, str, float, float, int]]:
        """Return every session among the rows: its agent, its name, its first and last time, and its number of rows."""
        groups, times = self.column("group"), self.column("time")
        inside = np.flatnonzero(self._in_session[groups]) if groups.size else groups
        order = inside[np.lexsort((times[inside], groups[inside]))]
        found, first, many = np.unique(groups[order], return_index=True, return_counts=True)
        names, at = list(self._groups.names), times[order]
        return [
            (*names[group], float(at[start]), float(at[start + count - 1]), count)
            for group, start, count in zip(found.tolist(), first.tolist(), many.tolist(), strict=True)
        ]

    def kinds(self) -> dict[str, int]:
        """Return the number of rows by type, the most frequent first."""
        counts = np.bincount(self.column("kind"))
        return {self._kinds.names[code]: int(counts[code]) for code in np.argsort(-counts) if counts[code]}

    def nearest_places(
        self, position: Sequence[float], count: int | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the at most `count` rows nearest to a position, and their distances; rows without a position are
        ignored."""
        if self._places is None:
            return np.empty(0, np.int64), np.empty(0)
        away = distances(self._places if self._rows is None else self._places[self._rows], position)
        placed = np.flatnonzero(~np.isnan(away))
        best = placed[top(-away[placed], placed.size if count is None else count)]
        return best, away[best]

    def before(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the positions of the rows before these in their sessions; -1 if there is none inside the filter."""
        return self._neighbour("previous", at)

    def after(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self._neighbour("next", at)

    def in_dialogue(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether somebody else speaks before or after each row, inside the filter; any value for position -1."""
        if self._whole_sessions:
            return self.column_at("in_dialogue", at)
        if self.small:
            return self.once("in_dialogue", lambda: self._in_dialogue(np.arange(self.size))).take(at)
        return self._in_dialogue(at)

    def _in_dialogue(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        actors, before, after = self.column_at("actor", at), self.before(at), self.after(at)
        others: npt.NDArray[np.bool_] = (before >= 0) & (self.column_at("actor", before) != actors)
        others |= (after >= 0) & (self.column_at("actor", after) != actors)
        return others

    def _neighbour(self, name: str, at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if self._rows is None:
            found = self._links[name].take(at).astype(np.int64)
            if self.moves[0].size > self._end:  # a writer has added rows
                found[found >= self._end] = -1
            return found
        if self.small:
            return self.once(name, lambda: self._all_neighbours(name)).take(at)
        found = self._links[name].take(self._rows.take(at)).astype(np.int64)
        found[(at < 0) | (found >= self._end)] = -1
        return np.where(found >= 0, self._positions_of(np.maximum(found, 0)), -1)

    def _all_neighbours(self, name: str) -> npt.NDArray[np.int64]:
        """Return the neighbours of all rows; the last entry, which `take` finds for position -1, is -1."""
        assert self._rows is not None
        found = np.full(self._rows.size + 1, -1, np.int64)
        found[:-1] = self._links[name].take(self._rows)
        found[found >= self._end] = -1  # in the copy, because a writer may add neighbours meanwhile
        inside = found >= 0
        found[inside] = self._positions_of(found[inside])
        return found

    def _positions_of(self, rows: RowNumbers) -> npt.NDArray[np.int64]:
        """Return the positions of row numbers; -1 outside the filter."""
        own = self._rows
        assert own is not None
        if self._end <= _FEW + _TIMES * own.size:
            return self._table[rows]
        if not own.size:
            return np.full(rows.size, -1, np.int64)
        at = np.minimum(np.searchsorted(own, rows), own.size - 1)
        return np.where(own[at] == rows, at, -1)

    @cached_property
    def _table(self) -> npt.NDArray[np.int64]:
        """Return a table from row numbers to positions, for filters that select a large part of all rows."""
        assert self._rows is not None
        positions = np.full(self._end, -1, np.int64)
        positions[self._rows] = np.arange(self._rows.size)
        return positions

    def actors_named(self, text: str) -> list[tuple[int, str]]:
        """Return (code, name) of the actors of these rows that a text names."""
        with self._index.changing():
            named = self._actors.named_in(text)
            names = self._actors.names
        if not named:
            return []
        present = self.column("actor")
        return [(code, str(names[code])) for code in named if (present == code).any()]

    @property
    def nobody(self) -> int:
        """Return the code of memories without an actor."""
        code = self._actors.find(None)
        return -1 if code is None else code

    def assistants(self) -> list[int]:
        """Return the codes of actors that are programs."""
        return [code for name in _ASSISTANTS if (code := self._actors.find(name)) is not None]

    def matches(self, terms: Sequence[int]) -> Matches:
        """Find the occurrences of some terms."""
        return self._lookup(self._postings, terms)

    def with_attributes(self, attribute_hashes: Sequence[int]) -> Matches:
        """Find the rows with some attributes (hashed `path=value`)."""
        return self._lookup(self._attribute_hashes, attribute_hashes, few=0)

    def numbers(self, path: int) -> npt.NDArray[np.float64]:
        """Return the number under a hashed path for each row; NaN if there is none."""
        with self._lock:
            column = self._numbers.column(path, self._end)
        return column if self._rows is None else column[self._rows]

    def _lookup(self, postings: Postings, terms: Sequence[int], few: int = 16_384) -> Matches:
        """Look up terms as entries by position: all together, which is faster, unless the terms have too many entries
        in other rows; then only in these rows, term by term."""
        with self._lock:
            found = postings.lookup(terms, None if self._rows is None else few + _TIMES * self._rows.size)
            if found is None:
                assert self._rows is not None
                return Matches(*postings.within(terms, self._rows))
        rows, counts, ends = found
        at = rows.astype(np.int64)
        if at.size and int(at.max()) >= self._end:
            at, counts, ends = _select_entries(at < self._end, at, counts, ends)
        if self._rows is not None:
            at = self._positions_of(at)
            at, counts, ends = _select_entries(at >= 0, at, counts, ends)
        return Matches(at, counts, ends)

    def relatives(self, words: Sequence[Word]) -> dict[str, list[tuple[int, str, float]]]:
        """Return, for question words that few memories contain, (term, word, cosine) of words in the memories that are
        close in meaning."""
        with self._index.changing():  # embeds the words of the newest rows
            held = self._count([term for word in words for term in word.hashes])
            rare = rare_words(words, held, self._end - self._index.columns.dead)
            return dict(zip(rare, self._vocabulary.relatives(rare), strict=True))

    def row_counts(self, terms: Sequence[int]) -> dict[int, int]:
        """Return the number of rows of the whole store with each term, exact if it is small."""
        with self._lock:
            return self._count(terms)

    def _count(self, terms: Sequence[int]) -> dict[int, int]:
        held = self._postings.row_counts(terms)
        columns = self._index.columns
        if columns.dead:
            for term in [term for term, count in held.items() if 0 < count <= _COUNTED]:
                found = self._postings.lookup([term])
                held[term] = 0 if found is None else int(columns["alive"][found[0]].sum())
        return held

    @property
    def dimension(self) -> int | None:
        return None if self._vectors is None else self._vectors.dimension

    def cosines(self, query: npt.NDArray[np.float32]) -> Estimate | None:
        """Estimate the cosine of every row from the sign bits."""
        if self._vectors is None:
            return None
        if self._rows is None or not self.small or self.size * query.size > _LAID_OUT:
            return self._vectors.estimate(query, self._rows, self._end)
        rows, vectors = self._rows, self._vectors
        every = self.once("vectors", lambda: vectors.decode_rows(rows))
        return vectors.wrap_cosines(query, rows, products(every, query))

    def close_cosines(self, query: npt.NDArray[np.float32], at: npt.NDArray[np.int64]) -> Scores:
        """Return the cosines of some positions, to about 0.001."""
        if self._vectors is None:
            return np.zeros(at.size, np.float32)
        return self._vectors.cosines_at(query, at if self._rows is None else self._rows[at])

    def exact_cosines(self, query: npt.NDArray[np.float32], at: npt.NDArray[np.int64]) -> Scores:
        """Return the cosines of some positions from the original vectors."""
        if self._vectors is None:
            return np.zeros(at.size, np.float32)
        return products(self._source.vectors_at(self.seq[at], query.size), query)

    def texts(self, at: npt.NDArray[np.int64]) -> list[str]:
        """Return the texts of some positions."""
        return self._source.texts_at(self.seq[at])


def _select_entries(
    wanted: npt.NDArray[np.bool_], at: npt.NDArray[np.int64], counts: npt.NDArray[Any], ends: list[int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], list[int]]:
    """Select entries of terms, and recompute where those of each term end."""
    kept = np.flatnonzero(wanted)
    return at[kept], counts[kept], np.searchsorted(kept, ends).tolist()


class FilteredRowsCache:
    """The latest FilteredRows of an index, reused while it is unchanged: an agent often searches the same rows."""

    def __init__(self, index: RecallIndex, source: RowSource) -> None:
        self._index, self._source = index, source
        self._version = index.version
        self._kept: dict[str, FilteredRows] = {}

    def take(self, where: Filter) -> FilteredRows:
        with self._index.lock:
            if self._version != self._index.version:
                self._kept.clear()
                self._version = self._index.version
            key = where.key()
            found_rows = self._kept.pop(key, None) or FilteredRows(self._index, where, self._source)
            self._kept[key] = found_rows  # the newest is last
            if len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
            return found_rows


_ASSISTANTS = ("assistant", "Assistant", "AI", "ai", "bot", "model", "system", "tool")
_KEPT = 4
_SMALL = 4096  # rows
_COUNTED = 512  # rows with a term, up to which dead ones are counted one by one
_LAID_OUT = 1 << 20  # numbers
_FEW, _TIMES = 262_144, 8  # other rows, by themselves and for each of our own, that are no burden
BANDS = ("0–0.25", "0.25–0.5", "0.5–0.75", "0.75–1")
"""Quarters of importance, each from its lower bound on."""
_COLUMNS = (
    "seq",
    "group",
    "kind",
    "actor",
    "tier",
    "time",
    "step",
    "importance",
    "length",
    "distinct",
    "flags",
    "specific",
    "in_dialogue",
)


_FIRST, _ERRORS, _MOST = 1024, 3.0, 0.05
_ALL_CLOSE = 16_384
_SPARE = 8  # rows beyond k whose originals are read, because codes are accurate to 0.001


def nearest_rows(
    found_rows: FilteredRows, query: npt.NDArray[np.float32], k: int, allowed: npt.NDArray[np.bool_] | None = None
) -> tuple[npt.NDArray[np.int64], Scores]:
    """Return positions and cosines of the k nearest rows.

    Estimates for all; codes for the best of them and then for every row whose bits may be those of a neighbour as near
    as the best so far, by a few standard errors; the originals have the last word.
    """
    estimate = found_rows.cosines(query)
    if estimate is None:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    all_close = found_rows.size <= _ALL_CLOSE and not estimate.searched
    many = estimate.best(found_rows.size if all_close else max(_FIRST, 4 * k), allowed)
    close = found_rows.close_cosines(query, many)
    if estimate.estimated and found_rows.size > _ALL_CLOSE and many.size > k:
        within = estimate.rivals(many[top(close, k)], _ERRORS)
        most = min(int(_MOST * found_rows.size), _ALL_CLOSE)
        if within.size > most:
            within = estimate.best(max(most, many.size), allowed)
        elif allowed is not None:
            within = within[allowed[within]]
        if within.size > many.size:
            many, close = within, found_rows.close_cosines(query, within)
    few = many[top(close, k + _SPARE)]
    exact = found_rows.exact_cosines(query, few)
    best = top(exact, k)
    return few[best], exact[best]
