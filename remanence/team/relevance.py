"""How relevant a hit is to a question, between 0 and 1, so that a bar can keep the rest out. Scores of recall order
the hits of one question; this compares across questions."""

from __future__ import annotations

from ..models import Hit

_NEAR, _CLOSE = 0.15, 0.65  # cosines that mean nothing, and everything


def relevance(hit: Hit, asked: int) -> float:
    """From an explained hit: how many of the `asked` words it answers and how close it is in meaning."""
    explained = hit.explanation
    if explained is None:
        raise ValueError("the hit must be explained")
    covered = min(1.0, len(explained.words) / max(asked, 1))
    cosine = explained.cosine or 0.0
    close = min(1.0, max(0.0, (cosine - _NEAR) / (_CLOSE - _NEAR)))
    return 0.5 * covered + 0.5 * close
