"""Which facts are true when. A store keeps what memories say; whether a later fact ended an earlier one is worked out
here, from the facts of one subject and relation. So nothing has to be undone when a memory is removed, and what was
believed earlier is worked out from what was known then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..facts.model import SURE, StoredFact

Key = tuple[int, int]
"""Row of the memory and number of the fact in it."""


class Period(NamedTuple):
    """A fact with the time during which it holds."""

    fact: StoredFact
    until: float | None
    ended_by: StoredFact | None

    def holds_at(self, time: float) -> bool:
        return self.fact.valid_from <= time and (self.until is None or time < self.until)


class Resolved(NamedTuple):
    """The facts of one subject and relation: how long each holds, and pairs that contradict each other."""

    periods: list[Period]
    conflicts: list[tuple[StoredFact, StoredFact]]


def key_of(fact: StoredFact) -> Key:
    return fact.seq, fact.number


def resolve(facts: Sequence[StoredFact], *, single: bool, ends: Mapping[Key, StoredFact]) -> Resolved:
    """Compute how long each of the facts of one subject and relation holds.

    A denial ends what it denies. If a relation is `single`, a newer value ends the older one, unless it is trusted less
    or both state the same start; then they are in conflict. `ends` maps facts to the statement that ended them.
    """
    ordered = sorted(facts, key=lambda fact: (fact.valid_from, *key_of(fact)))
    rivals = _rivals_in(ordered, single)
    periods: list[Period] = []
    conflicts: list[tuple[StoredFact, StoredFact]] = []
    for at, fact in enumerate(ordered):
        until, ended_by = fact.valid_until, None
        end = ends.get(key_of(fact))
        if end is not None and (until is None or end.valid_from < until):
            until, ended_by = end.valid_from, end
        for later in rivals(at):
            if until is not None and later.valid_from >= until:
                break
            replaces = single and not (later.negated or fact.negated) and later.object != fact.object
            denies = later.negated != fact.negated and later.object == fact.object
            if not replaces and not denies:
                continue
            if _is_conflict(fact, later):
                if min(fact.confidence, later.confidence) >= SURE:
                    conflicts.append((fact, later))
                continue
            until, ended_by = later.valid_from, later
            break
        periods.append(Period(fact, until, ended_by))
    return Resolved(periods, conflicts)


def _rivals_in(ordered: Sequence[StoredFact], single: bool) -> Callable[[int], Iterator[StoredFact]]:
    """Return a function that yields, for a place in the list, the later facts that may end the one there or contradict
    it. Of a relation with many values these are only denials, so that a hub is not compared with itself."""
    places: dict[int, list[int]] = {}
    for at, fact in enumerate(ordered):
        places.setdefault(fact.object, []).append(at)
    is_denied = {value: len({ordered[at].negated for at in held}) > 1 for value, held in places.items()}

    def rivals(at: int) -> Iterator[StoredFact]:
        value = ordered[at].object
        if single and len(places) > 1:
            return (ordered[later] for later in range(at + 1, len(ordered)))
        held = places[value] if is_denied[value] else []
        return (ordered[later] for later in held[bisect_right(held, at) :])

    return rivals


def _is_conflict(fact: StoredFact, later: StoredFact) -> bool:
    """Whether a later fact contradicts an earlier one and cannot end it."""
    if later.confidence < fact.confidence:
        return True
    overlaps = fact.valid_until is not None and later.valid_from < fact.valid_until
    return later.is_dated and (overlaps or (fact.is_dated and later.valid_from == fact.valid_from))
