"""What facts add to a ranking: a newer value comes before the one that it replaced, and the evidence of a chain of
facts that answers the question (`fact_paths`) is among the hits although the question has none of its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..facts.model import SURE, StoredFact
from ..facts.relations import has_many
from .explain import Explanation
from .fact_paths import Asking, FactSource, Inside, Path, Similarity
from .hybrid import Ranked

DEPTH = 16  # rows whose facts are compared, even if fewer are asked for
_ANSWERS = 0.6  # share of the question that a chain must explain to come first
_HELPS = 0.45  # ... to be among the hits
_NEARLY = 0.7  # of the best score, up to which further chains are shown
_MOST_FACTS_OF_ROW = 8  # a memory that states more is not about one of them

_UNRANKED = float("-inf")

Texts = Callable[[Sequence[int]], dict[int, str]]
"""The texts of rows by seq, without those that are gone."""


class FactRanking(NamedTuple):
    """What a ranking needs to make use of facts."""

    source: FactSource
    similarity: Similarity
    inside: Inside
    texts: Texts
    share: float
    """Of the hits that chains of facts may take."""
    only_ranked: bool
    """Whether no row may enter that was not ranked."""


def rank_by_facts(ranked: list[Ranked], question: str, count: int, how: FactRanking) -> list[Ranked]:
    """The best `count` of ranked rows, best first, by what facts say of them."""
    asking = Asking(question, how.source, how.similarity, how.inside)
    ranked = _newest_first(ranked, asking, how)
    paths = asking.paths()
    if paths:
        ranked = _with_paths(ranked, paths, asking, count, how)
    return _descending(ranked)[:count]


def _newest_first(ranked: list[Ranked], asking: Asking, how: FactRanking) -> list[Ranked]:
    """Where rows state different values of one thing, the newest takes the best of their places."""
    rows = {row.seq: row for row in ranked}
    by_thing: dict[tuple[int, int], dict[int, StoredFact]] = {}
    held: dict[int, int] = {}
    for fact in how.inside(how.source.facts_at(list(rows))):
        held[fact.seq] = held.get(fact.seq, 0) + 1
        if fact.confidence >= SURE and not fact.negated and fact.seq in rows:
            by_thing.setdefault((fact.subject, fact.relation), {})[fact.seq] = fact
    order = list(rows)
    for facts in by_thing.values():
        if len(facts) < 2 or len({fact.object for fact in facts.values()}) < 2:
            continue
        if max(held[seq] for seq in facts) > _MOST_FACTS_OF_ROW or not _replaces(facts, asking, how):
            continue
        places = sorted(order.index(seq) for seq in facts)
        newest = sorted(facts.values(), key=lambda fact: (fact.valid_from, fact.seq), reverse=True)
        for place, fact in zip(places, newest, strict=True):
            order[place] = fact.seq
        for fact in newest[1:]:
            if fact.object != newest[0].object:
                rows[fact.seq] = _noted(rows[fact.seq], f"replaced by {newest[0].object_name}")
    return [rows[seq] for seq in order]


def _replaces(facts: dict[int, StoredFact], asking: Asking, how: FactRanking) -> bool:
    """Whether a newer value replaces an older one: the question is about that relation, and it has one value; or the
    memories say the same but for the value."""
    relation = next(iter(facts.values())).relation_name
    if asking.fits(relation) and not has_many(relation):
        return True
    texts = how.texts(list(facts))
    without = set()
    for fact in facts.values():
        value = fact.object_name.casefold()
        without.add(texts.get(fact.seq, "").casefold().replace(value, "").rstrip(". "))
    return len(without) == 1 and "" not in without


def _with_paths(ranked: list[Ranked], paths: list[Path], asking: Asking, count: int, how: FactRanking) -> list[Ranked]:
    """The evidence of the best chains among the rows: first if a chain answers the question, else behind the first."""
    best = paths[0]
    share = asking.share(best)
    if share < _HELPS:
        return ranked
    rows = {row.seq: row for row in ranked}
    room = max(1, int(how.share * count))
    chosen: dict[int, Path] = {}
    for path in paths:
        if path.score < _NEARLY * best.score:
            break
        for fact in reversed(path.facts):
            if fact.seq in rows or not how.only_ranked:
                chosen.setdefault(fact.seq, path)
    if len(best.facts) == 1:
        chosen = {seq: path for seq, path in chosen.items() if path is best}
    entering = list(chosen)[:room]
    living = how.texts([seq for seq in entering if seq not in rows])
    first = [] if share >= _ANSWERS else ranked[:1]
    raised = []
    for seq in entering:
        path = chosen[seq]
        row = rows.get(seq)
        if row is None:
            if seq not in living:
                continue
            reason = None if not ranked or ranked[0].explanation is None else Explanation("hybrid", {})
            row = Ranked(seq, _UNRANKED, 0.0, reason)
        row = _noted(row, str(path))
        raised.append(row._replace(relevance=max(row.relevance, min(asking.share(path), 0.95))))
    known = {row.seq for row in (*first, *raised)}
    return [
        *first,
        *(row for row in raised if row.seq not in {one.seq for one in first}),
        *(row for row in ranked if row.seq not in known),
    ]


def _noted(row: Ranked, note: str) -> Ranked:
    """A row with what facts say of it."""
    if row.explanation is None:
        return row
    return row._replace(explanation=replace(row.explanation, notes=[*row.explanation.notes, note]))


def _descending(rows: list[Ranked]) -> list[Ranked]:
    """The rows with scores that fit their order: what was raised is worth what it was raised above. The parts of a
    score still add up to it."""
    found: list[Ranked] = []
    below = min((row.score for row in rows if row.score != _UNRANKED), default=0.0)
    for row in reversed(rows):
        score = below = max(row.score, below)
        if score != row.score:
            reason = row.explanation
            if reason is not None:
                others = sum(value for name, value in reason.components.items() if name != "graph")
                reason = replace(reason, components={**reason.components, "graph": score - others})
            row = row._replace(score=score, explanation=reason)
        found.append(row)
    return found[::-1]
