"""Find the shortest paths between two entities, by search from both ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .model import Path

if TYPE_CHECKING:
    from .reader import View
    from .validity import Period

_MAX_DEGREE = 2000  # average facts per entity read in one step of the search


class _Step(NamedTuple):
    """A fact followed in one direction: the id and name of the entity reached."""

    goal: int
    name: str
    period: Period


def find(view: View, start: str, goal: str, hops: int, k: int, kinds: Sequence[int]) -> list[Path]:
    """Return the `k` shortest paths of at most `hops` facts whose relation is in `kinds` (any if empty)."""
    first, last = set(view.reader.ids_of(start, "start")), set(view.reader.ids_of(goal, "goal"))
    if first & last:
        return []
    steps = _explore(view, kinds, first, last, hops)
    return [
        Path((start, *names), tuple(view.reader.to_facts(periods)))
        for names, periods in _shortest_paths(steps, first, last, hops, k)
    ]


def _explore(view: View, kinds: Sequence[int], first: set[int], last: set[int], hops: int) -> dict[int, list[_Step]]:
    """Collect the facts of all paths of at most `hops` facts, from both ends, expanding the smaller front each time."""
    steps: dict[int, list[_Step]] = defaultdict(list)
    fronts, seen = [set(first), set(last)], [set(first), set(last)]
    for _ in range(hops):
        side = 0 if len(fronts[0]) <= len(fronts[1]) else 1
        expanded = _steps_from(view, kinds, fronts[side])
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


def _steps_from(view: View, kinds: Sequence[int], front: set[int]) -> Iterator[tuple[int, _Step]]:
    """Yield (entity, step) for every fact about the entities of `front`, followed away from them."""
    ids = sorted(front)
    store = view.reader.store
    facts = store.facts_about(ids, kinds, limit=_MAX_DEGREE * max(1, len(ids)))
    facts += store.facts_about((), kinds, ids, limit=_MAX_DEGREE * max(1, len(ids)))
    for period in view.select(facts):
        fact = period.fact
        if fact.subject in front and not fact.is_value:
            yield fact.subject, _Step(fact.object, fact.object_name, period)
        if fact.object in front and not fact.is_value:
            yield fact.object, _Step(fact.subject, fact.subject_name, period)


def _shortest_paths(
    steps: dict[int, list[_Step]], first: set[int], last: set[int], hops: int, k: int
) -> Iterator[tuple[list[str], list[Period]]]:
    """Yield names and facts of the shortest paths, by length; no path visits an entity twice."""
    found = 0
    paths: list[tuple[int, tuple[_Step, ...]]] = [(here, ()) for here in sorted(first)]
    for _ in range(hops):
        longer: list[tuple[int, tuple[_Step, ...]]] = []
        for here, path in paths:
            visited = {step.goal for step in path} | first
            used: set[tuple[int, int]] = set()
            for step in steps.get(here, ()):
                fact = step.period.fact
                if step.goal in visited or (step.goal, fact.relation) in used:
                    continue
                used.add((step.goal, fact.relation))
                if step.goal in last:
                    complete = (*path, step)
                    yield [part.name for part in complete], [part.period for part in complete]
                    found += 1
                    if found == k:
                        return
                else:
                    longer.append((step.goal, (*path, step)))
        paths = longer
