"""Measure whether `hit.relevance` is calibrated: of the first hits with a relevance of 0.7, are seven of ten right?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

BINS = 10


class FirstHit(NamedTuple):
    """The relevance of a first hit, and whether the hit is right."""

    relevance: float
    right: bool


def measure_reliability(first_hits: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Return the figures of first hits, each given as its relevance and whether it is right."""
    hits = [FirstHit(*hit) for hit in first_hits]
    return {"hits": len(hits), "auc": auc(hits), "error": error(hits), "bins": bins(hits)}


def bins(hits: Sequence[FirstHit]) -> list[dict[str, float]]:
    """Return mean relevance and share of right hits, by tenths of relevance."""
    parts: list[list[FirstHit]] = [[] for _ in range(BINS)]
    for hit in hits:
        parts[min(int(hit.relevance * BINS), BINS - 1)].append(hit)
    return [
        {
            "hits": len(part),
            "said": sum(hit.relevance for hit in part) / len(part),
            "right": sum(hit.right for hit in part) / len(part),
        }
        for part in parts
        if part
    ]


def error(hits: Sequence[FirstHit]) -> float:
    """Return the mean difference between relevance and share of right hits, over all bins (ECE)."""
    off = sum(part["hits"] * abs(part["said"] - part["right"]) for part in bins(hits))
    return off / len(hits) if hits else 0.0


def auc(hits: Sequence[FirstHit]) -> float | None:
    """Return how often a right hit has a higher relevance than a wrong one; None without both."""
    right, wrong = ([hit.relevance for hit in hits if hit.right is is_right] for is_right in (True, False))
    if not right or not wrong:
        return None
    wins = sum((of_right > of_wrong) + 0.5 * (of_right == of_wrong) for of_right in right for of_wrong in wrong)
    return wins / (len(right) * len(wrong))
