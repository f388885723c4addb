"""Where facts may contradict each other, before it is worked out how long each holds. For stores without SQL, or whose
facts are encrypted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from .model import SURE, StoredFact

Conflict = tuple[int, int, int | None]
"""Subject and relation; and the object that is both stated and denied, or None for several values of one thing."""


def possible_conflicts(
    facts: Iterable[StoredFact], single: Collection[int], many: Collection[int], about: Collection[int]
) -> list[Conflict]:
    """Do what `FactTable.possible_conflicts` describes."""
    groups: dict[tuple[int, int], list[StoredFact]] = defaultdict(list)
    for fact in facts:
        groups[fact.subject, fact.relation].append(fact)
    found: list[Conflict] = []
    for (subject, relation), group in sorted(groups.items()):
        if about and subject not in about and all(fact.object not in about for fact in group):
            continue
        sure = [fact for fact in group if fact.confidence >= SURE]
        values: dict[int, set[bool]] = defaultdict(set)
        for fact in sure:
            values[fact.object].add(fact.negated)
        has_one = relation in single or (relation not in many and any(fact.single for fact in group))
        if has_one and len(values) > 1:
            found.append((subject, relation, None))
        found += [(subject, relation, value) for value in sorted(values) if len(values[value]) > 1]
    return found
