"""`Ranked`, a row with its score, and how rows that were moved keep a score and an explanation that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from .explain import Explanation

UNRANKED = float("-inf")
"""The score of a row that is added to a ranking, until `match_scores_to_order` gives it one."""


class Ranked(NamedTuple):
    """A row by its seq, with its score."""

    seq: int
    score: float
    relevance: float
    explanation: Explanation | None


def add_note(row: Ranked, note: str) -> Ranked:
    """Add a note to the explanation of a row, if it has one."""
    if row.explanation is None:
        return row
    return row._replace(explanation=replace(row.explanation, notes=[*row.explanation.notes, note]))


def match_scores_to_order(rows: Sequence[Ranked], component: str) -> list[Ranked]:
    """Raise scores to match the order: a moved row gets the score of the row below it. The components of a score still
    add up to it; what was added is this one."""
    found: list[Ranked] = []
    below = min((row.score for row in rows if row.score != UNRANKED), default=0.0)
    for row in reversed(rows):
        score = below = max(row.score, below)
        if score != row.score:
            reason = row.explanation
            if reason is not None:
                others = sum(value for name, value in reason.components.items() if name != component)
                reason = replace(reason, components={**reason.components, component: score - others})
            row = row._replace(score=score, explanation=reason)
        found.append(row)
    return found[::-1]
