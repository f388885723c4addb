"""Ways from one entity to another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .model import Path

if TYPE_CHECKING:
    from .reader import View
    from .validity import Period

_WIDEST = 2000  # facts of one entity that a path may be looked for in


class _Step(NamedTuple):
    """A fact, walked from one of its ends to the other."""

    goal: int
    name: str
    period: Period


def find(view: View, start: str, goal: str, hops: int, k: int, kinds: Sequence[int]) -> list[Path]:
    """The shortest ways from one entity to another."""
    first, last = set(view.reader.ids_of(start, "start")), set(view.reader.ids_of(goal, "goal"))
    if first & last:
        return []
    steps = _explore(view, kinds, first, last, hops)
    return [
        Path((start, *names), tuple(view.reader.shown(periods)))
        for names, periods in _ways(steps, first, last, hops, k)
    ]


def _explore(view: View, kinds: Sequence[int], first: set[int], last: set[int], hops: int) -> dict[int, list[_Step]]:
    """The facts on all ways of at most so many hops: from both ends, the smaller front first."""
    steps: dict[int, list[_Step]] = defaultdict(list)
    fronts, seen = [set(first), set(last)], [set(first), set(last)]
    for _ in range(hops):
        side = 0 if len(fronts[0]) <= len(fronts[1]) else 1
        expanded = _around(view, kinds, fronts[side])
        following: set[int] = set()
        for here, step in expanded:
            if side == 0:
                steps[here].append(step)
            else:
                name = (
                    step.period.fact.subject_name if step.period.fact.subject == here else step.period.fact.object_name
                )
                steps[step.goal].append(_Step(here, name, step.period))
            following.add(step.goal)
        fronts[side] = following - seen[side]
        seen[side] |= following
        if not fronts[side]:
            break
    return steps


def _around(view: View, kinds: Sequence[int], front: set[int]) -> Iterator[tuple[int, _Step]]:
    """All facts that touch some entities, walked away from them."""
    ids = sorted(front)
    store = view.reader.store
    near = store.facts_about(ids, kinds, limit=_WIDEST * max(1, len(ids)))
    near += store.facts_about((), kinds, ids, limit=_WIDEST * max(1, len(ids)))
    for period in view.of(near):
        fact = period.fact
        if fact.subject in front and not fact.is_value:
            yield fact.subject, _Step(fact.object, fact.object_name, period)
        if fact.object in front and not fact.is_value:
            yield fact.object, _Step(fact.subject, fact.subject_name, period)


def _ways(
    steps: dict[int, list[_Step]], first: set[int], last: set[int], hops: int, k: int
) -> Iterator[tuple[list[str], list[Period]]]:
    """The shortest ways, level by level; none of them visits an entity twice."""
    found = 0
    waiting: list[tuple[int, tuple[_Step, ...]]] = [(here, ()) for here in sorted(first)]
    for _ in range(hops):
        longer: list[tuple[int, tuple[_Step, ...]]] = []
        for here, way in waiting:
            visited = {step.goal for step in way} | first
            taken: set[tuple[int, int]] = set()
            for step in steps.get(here, ()):
                fact = step.period.fact
                if step.goal in visited or (step.goal, fact.relation) in taken:
                    continue
                taken.add((step.goal, fact.relation))
                if step.goal in last:
                    whole = (*way, step)
                    yield [one.name for one in whole], [one.period for one in whole]
                    found += 1
                    if found == k:
                        return
                else:
                    longer.append((step.goal, (*way, step)))
        waiting = longer
