"""The measures of a ranking: recall@k, nDCG@k and the reciprocal rank, each for one question."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

MEASURES = ("recall", "ndcg")
"""Those with a depth; `mrr` goes as deep as the ranking."""


def gains(ranking: Sequence[str], wanted: Mapping[str, int], grades: Sequence[float]) -> list[float]:
    """Return the grade of each place of a ranking. `wanted` maps a memory to an item of `grades`; if several memories
    are the same item, only the first counts."""
    seen: set[int] = set()
    result = []
    for key in ranking:
        thing = wanted.get(key)
        result.append(0.0 if thing is None or thing in seen else grades[thing])
        if thing is not None:
            seen.add(thing)
    return result


def recall(found: Sequence[float], grades: Sequence[float], k: int) -> float:
    """Return the share of the wanted items among the first k."""
    return sum(gain > 0 for gain in found[:k]) / len(grades)


def ndcg(found: Sequence[float], grades: Sequence[float], k: int) -> float:
    """Return nDCG@k: gains discounted by the logarithm of their rank, as a share of the best possible order."""
    best = _discounted_sum(sorted(grades, reverse=True)[:k])
    return _discounted_sum(found[:k]) / best


def reciprocal_rank(found: Sequence[float]) -> float:
    """Return 1 / rank of the first wanted item; 0 if there is none."""
    return next((1 / rank for rank, gain in enumerate(found, 1) if gain > 0), 0.0)


def measure(found: Sequence[float], grades: Sequence[float], depths: Sequence[int]) -> dict[str, float]:
    """Compute every measure of one question: `{"recall@5": …, "ndcg@5": …, …, "mrr": …}`."""
    result = {}
    for k in depths:
        result[f"recall@{k}"] = recall(found, grades, k)
        result[f"ndcg@{k}"] = ndcg(found, grades, k)
    return {**result, "mrr": reciprocal_rank(found)}


def _discounted_sum(values: Sequence[float]) -> float:
    return sum(value / math.log2(rank + 1) for rank, value in enumerate(values, 1))
