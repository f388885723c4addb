"""What surrounds a memory: its neighbours and its session, who acted, when, and how much it says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..index.bm25 import WordScores
from ..index.survey import Survey
from .fusion import standardised
from .settings import RecallSettings
from .timewords import Span

Scores = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

ASKS, TELLS_TIME = 1, 2
_COMMON = 0.05  # words in more rows than this share say nothing about neighbours


def spread(survey: Survey, found: WordScores, weight: float, scratch: Scores) -> WordScores:
    """A question word also counts, weakly, next to the rows that hold it. `scratch` is zeros, and is again."""
    if not weight or not found.rows or found.rows > _COMMON * survey.size + 64:
        return found
    touched = [found.at]
    scratch[found.at] = found.scores
    for links in (survey.next, survey.previous):
        at, scores, share = found.at, found.scores, weight
        for _ in range(2):
            at = links[at]
            inside = at >= 0
            at, scores = at[inside], scores[inside]
            lent = scores * np.float32(share)
            scratch[at] = np.maximum(scratch[at], lent)
            touched.append(at)
            share /= 2
    everywhere = np.unique(np.concatenate(touched))
    scores = scratch[everywhere]
    scratch[everywhere] = 0
    return WordScores(everywhere, scores)


def lent_by_neighbours(survey: Survey, fused: Scores, at: Positions | None, settings: RecallSettings) -> Scores:
    """What the rows around lend to each row (or to the rows `at`)."""
    padded = np.append(fused, np.float32(0))  # position -1 lends nothing
    previous, following = survey.previous, survey.next
    before = previous if at is None else previous[at]
    after = following if at is None else following[at]
    lent: Scores = padded[before] + padded[after]
    lent *= np.float32(settings.near)
    if settings.far:
        further = np.append(previous, -1)[before], np.append(following, -1)[after]
        lent += np.float32(settings.far) * (padded[further[0]] + padded[further[1]])
    if settings.answer:
        asks = np.append((survey.flags & ASKS).astype(np.float32), np.float32(0))
        lent += np.float32(settings.answer) * padded[before] * asks[before]
    return lent


def session_prior(groups: npt.NDArray[np.int32], scores: Scores) -> Scores:
    """The best score of each row's session, standardised over sessions; 0 outside any session."""
    prior = np.zeros_like(scores)
    inside = groups >= 0
    if not inside.any():
        return prior
    present, local = np.unique(groups[inside], return_inverse=True)
    best = np.full(present.size, -np.inf, np.float32)
    np.maximum.at(best, local, scores[inside])
    prior[inside] = standardised(best)[0][local]
    return prior


def inside_span(times: npt.NDArray[np.float64], span: Span) -> Scores:
    """1 inside the span, fading over its own length (at least three days) outside."""
    start, end = span.start.timestamp(), span.end.timestamp()
    away = np.maximum(np.maximum(start - times, times - end), 0.0)
    scale = min(max(end - start, 3 * 86_400.0), 90 * 86_400.0)
    return np.exp(-away / scale).astype(np.float32)
