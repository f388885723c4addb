"""What facts add to a ranking: a newer value comes before the one that it replaced, and the evidence of a chain of
facts that answers the question (`fact_paths`) is among the hits although the question has none of its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..facts.model import SURE, StoredFact
from ..facts.relations import has_many
from .explain import Explanation
from .fact_paths import FactPath, FactSearch, FactSource, Inside, Similarity, newest_first
from .ranked import UNRANKED, Ranked, add_note, match_scores_to_order

DEPTH = 16  # rows whose facts are compared, even if k is smaller
_MIN_ANSWER = 0.6  # share of the question that a chain must explain to come first
_MIN_HELP = 0.45  # ... to be among the hits
_NEAR_BEST = 0.7  # least share of the best score for further chains
_MAX_FACTS_OF_ROW = 8  # a memory with more facts is not about a single one

Texts = Callable[[Sequence[int]], dict[int, str]]
"""Reads the texts of rows by seq; removed rows are missing."""


class FactRanking(NamedTuple):
    """The inputs of ranking by facts."""

    source: FactSource
    similarity: Similarity
    inside: Inside
    texts: Texts
    share: float
    """Share of the hits that chains of facts may take."""
    only_ranked: bool
    """Whether rows outside the ranking may not be added."""
    until: float | None = None
    """End of the time that the question names: the values of that time answer it."""


def rank_by_facts(ranked: list[Ranked], question: str, count: int, inputs: FactRanking) -> list[Ranked]:
    """Reorder ranked rows by facts; return the best `count`, best first."""
    fact_search = FactSearch(question, inputs.source, inputs.similarity, inputs.inside, inputs.until)
    ranked = _promote_newest(ranked, fact_search, inputs)
    paths = fact_search.paths()
    if paths:
        ranked = _insert_evidence(ranked, paths, fact_search, count, inputs)
    return match_scores_to_order(ranked, "graph")[:count]


def _promote_newest(ranked: list[Ranked], fact_search: FactSearch, inputs: FactRanking) -> list[Ranked]:
    """If rows state different values of one relation, put the newest (of those that began by the time that the question
    names, if it names one) at the best of their places."""
    rows = {row.seq: row for row in ranked}
    by_relation: dict[tuple[int, int], dict[int, StoredFact]] = {}
    fact_counts: dict[int, int] = {}
    for fact in inputs.inside(inputs.source.facts_at(list(rows))):
        fact_counts[fact.seq] = fact_counts.get(fact.seq, 0) + 1
        if fact.confidence >= SURE and not fact.negated and fact.seq in rows:
            by_relation.setdefault((fact.subject, fact.relation), {})[fact.seq] = fact
    order = list(rows)
    for facts in by_relation.values():
        if len(facts) < 2 or len({fact.object for fact in facts.values()}) < 2:
            continue
        if max(fact_counts[seq] for seq in facts) > _MAX_FACTS_OF_ROW or not _replaces(facts, fact_search, inputs):
            continue
        places = sorted(order.index(seq) for seq in facts)
        newest = newest_first(facts.values(), inputs.until)
        for place, fact in zip(places, newest, strict=True):
            order[place] = fact.seq
        for fact in newest[1:]:
            if fact.object != newest[0].object and fact.valid_from <= newest[0].valid_from:
                rows[fact.seq] = add_note(rows[fact.seq], f"replaced by {newest[0].object_name}")
    return [rows[seq] for seq in order]


def _replaces(facts: dict[int, StoredFact], fact_search: FactSearch, inputs: FactRanking) -> bool:
    """Whether a newer value replaces an older one: the question mentions the relation, which has one value; or the
    texts differ only in the value."""
    relation = next(iter(facts.values())).relation_name
    if fact_search.fits(relation) and not has_many(relation):
        return True
    texts = inputs.texts(list(facts))
    without = set()
    for fact in facts.values():
        value = fact.object_name.casefold()
        without.add(texts.get(fact.seq, "").casefold().replace(value, "").rstrip(". "))
    return len(without) == 1 and "" not in without


def _insert_evidence(
    ranked: list[Ranked], paths: list[FactPath], fact_search: FactSearch, count: int, inputs: FactRanking
) -> list[Ranked]:
    """Insert the evidence of the best chains: first if a chain answers the question, else after the first row."""
    best = paths[0]
    share = fact_search.share(best)
    if share < _MIN_HELP:
        return ranked
    rows = {row.seq: row for row in ranked}
    max_inserted = max(1, int(inputs.share * count))
    chosen: dict[int, FactPath] = {}
    for path in paths:
        if path.score < _NEAR_BEST * best.score:
            break
        for fact in reversed(path.facts):
            if fact.seq in rows or not inputs.only_ranked:
                chosen.setdefault(fact.seq, path)
    if len(best.facts) == 1:
        chosen = {seq: path for seq, path in chosen.items() if path is best}
    to_insert = list(chosen)[:max_inserted]
    texts = inputs.texts([seq for seq in to_insert if seq not in rows])
    first = [] if share >= _MIN_ANSWER else ranked[:1]
    inserted = []
    for seq in to_insert:
        path = chosen[seq]
        row = rows.get(seq)
        if row is None:
            if seq not in texts:
                continue
            reason = None if not ranked or ranked[0].explanation is None else Explanation("hybrid", {})
            row = Ranked(seq, UNRANKED, 0.0, reason)
        row = add_note(row, str(path))
        inserted.append(row._replace(relevance=max(row.relevance, min(fact_search.share(path), 0.95))))
    known = {row.seq for row in (*first, *inserted)}
    return [
        *first,
        *(row for row in inserted if row.seq not in {best_row.seq for best_row in first}),
        *(row for row in ranked if row.seq not in known),
    ]
