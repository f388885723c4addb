"""What filters and context need of every row, by column: where it belongs, when, how important, and its
neighbours in the same session. A filter becomes an ascending array of row numbers, found from the members of
groups and from attribute hashes where it names any, so that its cost follows what it selects and not what is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..filters import Filter, alternatives, written
from ..models import TIERS
from .analyser import plain, term_hash
from .arrays import distinct, starts_of_runs, struct_packer
from .postings import Postings

RowNumbers = npt.NDArray[np.int64]
Name = TypeVar("Name")

_NUMBERS: dict[str, Any] = {
    "seq": np.int64,
    "born": np.int64,
    "group": np.int32,
    "kind": np.int32,
    "actor": np.int32,
    "tier": np.int8,
    "time": np.float64,
    "step": np.int64,
    "importance": np.float64,
    "length": np.int32,
    "distinct": np.int32,
    "flags": np.uint8,
    "specific": np.uint8,
}
NUMBERS = tuple(_NUMBERS)
_LINKS = ("previous", "next")


class Names(Generic[Name]):
    """Dictionary of texts to small integers."""

    def __init__(self) -> None:
        self.names: list[Name] = []
        self._codes: dict[Name, int] = {}

    def codes(self, names: Iterable[Name]) -> list[int]:
        """Return the code of each of many names."""
        codes = self._codes
        found = [codes.setdefault(name, len(codes)) for name in names]
        fresh = list(islice(reversed(codes), len(codes) - len(self.names)))
        self.names += reversed(fresh)
        return found

    def find(self, name: Name) -> int | None:
        return self._codes.get(name)


class Groups(Names[tuple[str, str | None]]):
    """Agent and session of each group of rows; the session is None for an agent's memories outside sessions."""

    def __init__(self) -> None:
        super().__init__()
        self._of_agent: dict[str, list[int]] = {}
        self._read = 0

    def of_agent(self, agent: str) -> list[int]:
        """Return the codes of an agent's groups."""
        for code in range(self._read, len(self.names)):
            self._of_agent.setdefault(self.names[code][0], []).append(code)
        self._read = len(self.names)
        return self._of_agent.get(agent, [])


class Actors(Names[str | None]):
    """The actors, to find their names in a question."""

    def __init__(self) -> None:
        super().__init__()
        self._by_name: dict[str, list[int]] = {}
        self._read = 0

    def named_in(self, text: str) -> list[int]:
        """Return the codes of the actors whose names occur in a text."""
        for code in range(self._read, len(self.names)):
            name = self.names[code]
            if name is not None and (spoken := plain(name)):
                self._by_name.setdefault(spoken, []).append(code)
        self._read = len(self.names)
        words = plain(text).split()[:200]
        runs = {" ".join(words[at : at + size]) for size in range(1, 5) for at in range(len(words))}
        return sorted(code for run in runs for code in self._by_name.get(run, ()))


def attribute_hashes_of(memory_tags: dict[str, str], place: str | None, attributes: Iterable[int]) -> bytes:
    """Return the hashes of a memory's tags, place and attributes for equality filters, packed as stores keep them."""
    attribute_hashes = {*attributes, *[_tag_hash(key, value) for key, value in memory_tags.items()]}
    if place is not None:
        attribute_hashes.add(_place_hash(place))
    return struct_packer(len(attribute_hashes), "Q")(*sorted(attribute_hashes))


def _tag_hash(key: str, value: str) -> int:
    return term_hash(f"tag\x00{key}\x00{value}")


def attribute_hash(path: str, value: object) -> int:
    """Return the hash of one value under a path, for equality filters."""
    return term_hash(attribute_prefix(path) + written(value))


def attribute_prefix(path: str) -> str:
    return f"attribute\x00{path}="


def _place_hash(place: str) -> int:
    return term_hash(f"place\x00{place}")


class _SortedRows(NamedTuple):
    """Rows sorted by group: those of codes[i] are rows[bounds[i]:bounds[i + 1]]."""

    codes: npt.NDArray[np.int32]
    bounds: npt.NDArray[np.int64]
    rows: RowNumbers

    def members(self, wanted: npt.NDArray[np.int32]) -> RowNumbers:
        at = np.minimum(np.searchsorted(self.codes, wanted), self.codes.size - 1)
        held = at[self.codes[at] == wanted].tolist()
        parts = [self.rows[self.bounds[place] : self.bounds[place + 1]] for place in held]
        return np.concatenate([np.empty(0, np.int64), *parts])


def _merge_runs(older: _SortedRows, younger: _SortedRows) -> _SortedRows:
    codes = np.concatenate([np.repeat(run.codes, np.diff(run.bounds)) for run in (older, younger)])
    rows = np.concatenate([older.rows, younger.rows])
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = starts_of_runs(ordered)
    return _SortedRows(ordered[starts], np.append(starts, rows.size), rows[order])


class Columns:
    """Growing arrays with one value per row."""

    def __init__(self) -> None:
        self.size = 0
        self.dead = 0
        self.moves = 0
        self._moves_of: Counter[str] = Counter()
        self.total_length = 0
        self.flags = 0  # union of the flags of all rows
        self._arrays = {name: np.empty(0, kind) for name, kind in _NUMBERS.items()}
        self._arrays["alive"] = np.empty(0, np.bool_)
        self._arrays["previous"] = np.empty(0, np.int32)
        self._arrays["next"] = np.empty(0, np.int32)
        self._arrays["in_dialogue"] = np.empty(0, np.bool_)  # whether somebody else speaks before or after
        self._positions: npt.NDArray[np.float64] | None = None
        self.groups = Groups()
        self._in_session: npt.NDArray[np.bool_] = np.empty(0, np.bool_)
        self.kinds: Names[str] = Names()
        self.actors = Actors()
        self._runs: list[_SortedRows] = []
        self._last: npt.NDArray[np.int64] = np.empty(0, np.int64)  # the newest row of each session

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return one column, up to the last row."""
        return self._arrays[name][: self.size]

    def links(self, name: str) -> npt.NDArray[np.int32]:
        """Return the column "previous" or "next" with an additional last entry, so that `take` finds -1 for row -1. A
        writer may link rows to newer ones meanwhile, but only after it has raised `size`."""
        return self._arrays[name]

    @property
    def position(self) -> npt.NDArray[np.float64] | None:
        """Return rows of x, y, z (NaN: none); None while no memory has a position."""
        return None if self._positions is None else self._positions[: self.size]

    @property
    def room(self) -> int:
        """Return the allocated number of rows."""
        return self._arrays["seq"].size

    def reserve(self, rows: int) -> None:
        room = self.room
        if rows <= room:
            return
        rows = max(rows, room * 3 // 2, 1024)
        for name, old in self._arrays.items():
            new = np.empty(rows, old.dtype)
            new[: self.size] = old[: self.size]
            if name in _LINKS:
                new[-1] = -1
            self._arrays[name] = new
        if self._positions is not None:
            self._positions = _enlarge_positions(self._positions, rows)

    def append(self, rows: Mapping[str, Sequence[Any]]) -> None:
        """Rows in ascending order of seq, all newer than the rows here: their values by column, names spelled out,
        with `position` a tuple or None for each."""
        columns: dict[str, Any] = {name: rows[name] for name in NUMBERS}
        for name, names in (("group", self.groups), ("kind", self.kinds), ("actor", self.actors)):
            columns[name] = names.codes(rows[name])
        positions = None
        if any(position is not None for position in rows["position"]):
            positions = np.full((len(rows["seq"]), 3), np.nan)
            for at, position in enumerate(rows["position"]):
                if position is not None:
                    positions[at, : len(position)] = position
        self.append_arrays(columns, positions)

    def append_arrays(
        self, columns: dict[str, Any], positions: npt.NDArray[np.float64] | None, *, join: bool = True
    ) -> None:
        """Append rows whose names are already coded by this object's dictionaries. The rows of segments are not joined
        with earlier ones into one run, as in Postings.add_block."""
        first, count = self.size, len(columns["seq"])
        self.reserve(first + count + 1)  # the last entry is never that of a row
        for name in _NUMBERS:
            self._arrays[name][first : first + count] = columns[name]
        self._arrays["alive"][first : first + count] = True
        self._arrays["previous"][first : first + count] = -1
        self._arrays["next"][first : first + count] = -1
        self._arrays["in_dialogue"][first : first + count] = False
        if positions is not None or self._positions is not None:
            if self._positions is None or self._positions.shape[0] < self._arrays["seq"].size:
                self._positions = _enlarge_positions(self._positions, self._arrays["seq"].size)
            self._positions[first : first + count] = np.nan if positions is None else positions
        self.size = first + count
        self.total_length += int(self["length"][first:].sum(dtype=np.int64))
        self.flags |= int(np.bitwise_or.reduce(self["flags"][first:], initial=0))
        self._enter_groups(first, join)

    def _enter_groups(self, first: int, join: bool) -> None:
        group = self["group"][first:]
        if not group.size:
            return
        original_seq = self["born"][first:]
        in_order = bool((original_seq[1:] >= original_seq[:-1]).all())  # the usual case
        # numpy sorts 16-bit numbers by radix, in a tenth of the time
        codes16 = group.astype(np.uint16) if len(self.groups.names) <= 65_536 else group
        order = np.argsort(codes16, kind="stable") if in_order else np.lexsort((original_seq, codes16))
        ordered, rows = group[order], order + first
        starts = starts_of_runs(ordered)
        codes = ordered[starts]
        self._runs.append(_SortedRows(codes, np.append(starts, rows.size), rows))
        while join and len(self._runs) > 1 and self._runs[-2].rows.size <= 2 * self._runs[-1].rows.size:
            self._runs[-2:] = [_merge_runs(self._runs[-2], self._runs[-1])]
        self._link(codes, starts, ordered, rows)

    def _link(
        self,
        codes: npt.NDArray[np.int32],
        starts: npt.NDArray[np.int64],
        ordered: npt.NDArray[np.int32],
        rows: RowNumbers,
    ) -> None:
        """Link rows (sorted by group, then original seq) after the older ones of their sessions."""
        original_seq, previous, following, sessions = self["born"], self["previous"], self["next"], self.in_session
        if len(self._last) < len(self.groups.names):
            more = np.full(len(self.groups.names) - len(self._last), -1, np.int64)
            self._last = np.append(self._last, more)
        joined = (ordered[1:] == ordered[:-1]) & sessions[ordered[1:]]
        previous[rows[1:][joined]] = rows[:-1][joined]
        following[rows[:-1][joined]] = rows[1:][joined]
        firsts, lasts = rows[starts], rows[np.append(starts[1:], rows.size) - 1]
        older = self._last[codes]
        chained = sessions[codes] & (older >= 0)
        late = chained & (original_seq[np.where(older >= 0, older, 0)] > original_seq[firsts])
        chained &= ~late
        previous[firsts[chained]] = older[chained]
        following[older[chained]] = firsts[chained]
        self._last[codes[~late]] = lasts[~late]
        for number in np.flatnonzero(late).tolist():  # memories that were changed return to their old places
            end = starts[number + 1] if number + 1 < starts.size else rows.size
            for row in rows[starts[number] : end].tolist():
                self._insert(int(codes[number]), row)
        first = self.size - rows.size
        beside = np.concatenate([previous[rows], following[rows]])
        self._find_dialogues(np.concatenate([rows, beside[beside < first]]))

    def _find_dialogues(self, rows: RowNumbers) -> None:
        """Note for some rows (-1 for none) whether somebody else speaks beside them in their session."""
        rows = rows[rows >= 0]
        actors = self["actor"]
        own, found = actors[rows], np.zeros(rows.size, np.bool_)
        for name in _LINKS:
            beside = self[name][rows]
            found |= (beside >= 0) & (actors[beside] != own)
        self["in_dialogue"][rows] = found

    def _insert(self, group: int, row: int) -> None:
        original_seq, previous, following = self["born"], self["previous"], self["next"]
        after, before = -1, int(self._last[group])
        while before >= 0 and original_seq[before] > original_seq[row]:
            after, before = before, int(previous[before])
        previous[row], following[row] = before, after
        if before >= 0:
            following[before] = row
        if after >= 0:
            previous[after] = row
        else:
            self._last[group] = row

    @property
    def in_session(self) -> npt.NDArray[np.bool_]:
        """Return for each group whether it is a session (and not an agent's memories outside sessions)."""
        known = self._in_session.size
        if known < len(self.groups.names):
            fresh = [session is not None for _, session in self.groups.names[known:]]
            self._in_session = np.append(self._in_session, np.array(fresh, np.bool_))
        return self._in_session

    def row_of(self, seq: int) -> int | None:
        at = int(np.searchsorted(self["seq"], seq))
        return at if at < self.size and int(self["seq"][at]) == seq else None

    def rows_of(self, seqs: Sequence[int]) -> RowNumbers:
        """Return the rows of some seqs; -1 for unknown ones."""
        if not self.size:
            return np.full(len(seqs), -1, np.int64)
        wanted = np.array(seqs, np.int64)
        at = np.minimum(np.searchsorted(self["seq"], wanted), self.size - 1)
        return np.where(self["seq"][at] == wanted, at, -1)

    def move(self, seqs: Sequence[int], tiers: Sequence[str]) -> None:
        """Set the tiers of moved rows, in the order of their moves; ignore unknown rows."""
        at = self.rows_of(seqs)
        here = at >= 0
        codes = np.array([TIERS.index(tier) for tier in tiers], np.int8)
        self["tier"][at[here]] = codes[here]
        self.moves += 1
        for group in np.unique(self["group"][at[here]]).tolist():
            self._moves_of[self.groups.names[group][0]] += 1

    def moves_of(self, agents: Sequence[str]) -> int:
        """Return the number of moves of rows of some agents."""
        return sum(self._moves_of[agent] for agent in agents)

    def kill(self, row: int) -> None:
        """Mark a row as dead."""
        if not self["alive"][row]:
            return
        self["alive"][row] = False
        self.dead += 1
        self.total_length -= int(self["length"][row])
        before, after = int(self["previous"][row]), int(self["next"][row])
        if before >= 0:
            self["next"][before] = after
        if after >= 0:
            self["previous"][after] = before
        group = int(self["group"][row])
        if self._last[group] == row:
            self._last[group] = before
        self._find_dialogues(np.array([before, after]))

    def select(self, where: Filter, attribute_hashes: Postings, without: int = 0) -> RowNumbers | None:
        """Return the rows inside the filter and without some flags, ascending; None for all if none is dead."""
        rows = self._from_groups(where)
        without &= self.flags
        for hashes in required_hashes(where):
            if rows is None:
                rows = distinct(attribute_hashes.lookup(hashes)[0]).astype(np.int64)
            else:
                rows = rows[distinct(attribute_hashes.within(hashes, rows)[0])]
        if rows is None and not self.dead and not without and not _needs_columns(where):
            return None
        keep = self["alive"] if rows is None else self["alive"][rows]
        if without:
            flags = self["flags"] if rows is None else self["flags"][rows]
            keep = keep & (flags & without == 0)
        for test in self._tests(where):
            keep = keep & test(rows)
        return np.flatnonzero(keep) if rows is None else rows[keep]

    def _from_groups(self, where: Filter) -> RowNumbers | None:
        if not where.agent and not where.session:
            return None
        if where.agent:
            codes = [code for agent in where.agent for code in self.groups.of_agent(agent)]
        else:
            codes = list(range(len(self.groups.names)))
        if where.session is not None:
            wanted = set(where.session)
            codes = [code for code in codes if self.groups.names[code][1] in wanted]
        if not codes:
            return np.empty(0, np.int64)
        wanted_codes = np.array(sorted(codes), np.int32)
        parts = [run.members(wanted_codes) for run in self._runs]
        found = np.concatenate([np.empty(0, np.int64), *parts])
        ascending = bool((found[1:] > found[:-1]).all())  # true for one group, unless a memory was changed
        return found if ascending else np.sort(found)

    def _tests(self, where: Filter) -> list[Callable[[RowNumbers | None], npt.NDArray[np.bool_]]]:
        tests: list[Callable[[RowNumbers | None], npt.NDArray[np.bool_]]] = []

        def on(column: npt.NDArray[Any], test: Callable[[npt.NDArray[Any]], npt.NDArray[np.bool_]]) -> None:
            tests.append(lambda rows: test(column if rows is None else column[rows]))

        if where.type:
            kinds = [code for code in map(self.kinds.find, where.type) if code is not None]
            on(self["kind"], lambda column: _among(column, kinds))
        if where.actor:
            actors = [code for code in map(self.actors.find, where.actor) if code is not None]
            on(self["actor"], lambda column: _among(column, actors))
        if where.tier:
            tiers = [TIERS.index(tier) for tier in where.tier]
            on(self["tier"], lambda column: _among(column, tiers))
        for name, low, high in (
            ("step", where.min_step, where.max_step),
            ("time", where.since, where.until),
            ("importance", where.min_importance, where.max_importance),
        ):
            if low is not None:
                on(self[name], lambda column, low=low: column >= low)  # type: ignore[misc]
            if high is not None:
                on(self[name], lambda column, high=high: column <= high)  # type: ignore[misc]
        if where.box is not None or where.near is not None:
            places = self.position if self.position is not None else np.full((self.size, 3), np.nan)
            on(places, lambda column: _in_space(where, column))
        return tests


def _among(column: npt.NDArray[Any], codes: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return the mask of a column that has one of some values."""
    if len(codes) > 16:
        return np.isin(column, codes)
    found = np.zeros(column.size, np.bool_)
    for code in codes:  # faster than `np.isin` for few values
        found |= column == code
    return found


def _needs_columns(where: Filter) -> bool:
    columns = (
        where.min_step,
        where.max_step,
        where.since,
        where.until,
        where.min_importance,
        where.max_importance,
    )
    return bool(where.type or where.actor or where.tier or where.box or where.near) or any(
        value is not None for value in columns
    )


def required_hashes(where: Filter) -> list[list[int]]:
    """Return the attribute hashes that a row must have: one of each list."""
    required = [[_tag_hash(key, value) for value in alternatives(wanted)] for key, wanted in where.tags.items()]
    required += [[attribute_hash(path, value)] for path, value in where.attributes.items()]
    if where.place:
        required.append([_place_hash(place) for place in where.place])
    return required


def _in_space(where: Filter, places: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    inside = np.ones(places.shape[0], np.bool_)
    if where.box is not None:
        low, high = where.box
        held = places[:, : len(low)]
        inside &= ((held >= np.array(low)) & (held <= np.array(high))).all(axis=1)
    if where.near is not None:
        assert where.radius is not None
        inside &= distances(places, where.near) <= where.radius
    return inside


def distances(places: npt.NDArray[np.float64], point: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return the distances of places to a point, in its dimensions; NaN for rows without a place."""
    with np.errstate(over="ignore"):
        away = places[:, : len(point)] - np.array(point)
        found: npt.NDArray[np.float64] = np.sqrt(np.square(away).sum(axis=1))
        far = np.isinf(found)
        if far.any():  # squares of very large numbers overflow
            found[far] = np.hypot.reduce(away[far], axis=1)
    return found


def _enlarge_positions(old: npt.NDArray[np.float64] | None, rows: int) -> npt.NDArray[np.float64]:
    new = np.full((rows, 3), np.nan)
    if old is not None:
        new[: old.shape[0]] = old
    return new
