"""What surrounds a memory: its neighbours and its session, who acted, when, and how it speaks."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import numpy.typing as npt

from ..index.bm25 import WordScores
from ..index.manner import ASKS, REACTS
from ..index.survey import Survey
from .fusion import scale_of, standardised
from .settings import RecallSettings
from .timewords import Span

Scores = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

_COMMON = 0.05  # words in more rows than this share say nothing about neighbours
_DAY = 86_400.0
_YEARS = 60
_MUCH_SAID, _MUCH_NAMED = 30, 8  # words and names from which on more of them is no better


def spread(survey: Survey, found: WordScores, weight: float, scratch: Scores) -> WordScores:
    """A question word also counts, weakly, next to the rows that hold it. `scratch` is zeros, and is again."""
    if not weight or not found.rows or found.rows > _COMMON * survey.size + 256:
        return found
    touched = [found.at]
    scratch[found.at] = found.scores
    for links in (survey.next, survey.previous):
        at, scores, share = found.at, found.scores, weight
        for _ in range(2):
            at = links[at]
            inside = at >= 0
            at, scores = at[inside], scores[inside]
            scratch[at] = np.maximum(scratch[at], scores * np.float32(share))
            touched.append(at)
            share /= 2
    everywhere = np.sort(np.concatenate(touched))
    everywhere = everywhere[np.append(True, everywhere[1:] != everywhere[:-1])]
    values = scratch[everywhere]
    scratch[everywhere] = 0
    return WordScores(everywhere, values)


def lent_by_neighbours(survey: Survey, fused: Scores, at: Positions | None, settings: RecallSettings) -> Scores:
    """What the rows around lend to each row (or to the rows `at`)."""
    padded = np.append(fused, np.float32(0))  # position -1 lends nothing
    before = survey.previous if at is None else survey.previous[at]
    after = survey.next if at is None else survey.next[at]
    direct = padded[before]
    lent: Scores = np.float32(settings.near) * (direct + padded[after])
    if settings.far:
        further_before = np.where(before >= 0, survey.previous[before], -1)
        further_after = np.where(after >= 0, survey.next[after], -1)
        lent += np.float32(settings.far) * (padded[further_before] + padded[further_after])
    if settings.answer:
        asks = (survey.flags[before] & ASKS != 0) & (before >= 0)
        lent += np.float32(settings.answer) * direct * asks
    return lent


def session_prior(groups: npt.NDArray[np.int32], scores: Scores, pool: int) -> Scores:
    """The best score of each row's session, in deviations over sessions; 0 outside any session."""
    prior = np.zeros_like(scores)
    inside = groups >= 0
    if not inside.any():
        return prior
    members = groups[inside]
    best = np.full(int(members.max()) + 1, -np.inf, np.float32)
    np.maximum.at(best, members, scores[inside])
    prior[inside] = standardised(best[members], scale_of(best[best > -np.inf], pool))
    return prior


def manner(survey: Survey, at: Positions | slice, settings: RecallSettings) -> dict[str, Scores]:
    """What a row is worth before any question: substance up, questions and mere reactions down."""
    flags = survey.flags[at]
    said = np.log1p(np.minimum(survey.column("distinct")[at], _MUCH_SAID).astype(np.float32))
    named = np.log1p(np.minimum(survey.column("specific")[at], _MUCH_NAMED).astype(np.float32))
    return {
        "length": np.float32(settings.length) * said,
        "specific": np.float32(settings.specific) * named,
        "asking": np.float32(-settings.asking) * (flags & ASKS != 0),
        "reacting": np.float32(-settings.reacting) * (flags & REACTS != 0),
    }


def inside_span(times: npt.NDArray[np.float64], span: Span, settings: RecallSettings) -> Scores:
    """1 inside the span, fading outside: over days around a date, over half its length around "yesterday"."""
    length = span.end.timestamp() - span.start.timestamp()
    if span.relative:
        before = after = max(length / 2, _DAY / 4)
    else:
        before, after = settings.time_before * _DAY, settings.time_after * _DAY
    result = np.zeros(times.size, np.float32)
    for start, end in _spans(span, times):
        away = np.maximum(start - times, 0.0) / max(before, 1.0) + np.maximum(times - end, 0.0) / max(after, 1.0)
        np.maximum(result, np.exp(-away).astype(np.float32), out=result)
    return result


def _spans(span: Span, times: npt.NDArray[np.float64]) -> list[tuple[float, float]]:
    """The span, or the same days in every year that the memories know."""
    if not span.every_year or not times.size:
        return [(span.start.timestamp(), span.end.timestamp())]
    last = datetime.fromtimestamp(float(times.max())).year
    first = max(datetime.fromtimestamp(float(times.min())).year - 1, last - _YEARS)
    spans = []
    for year in range(first, last + 1):
        try:
            start = span.start.replace(year=year).timestamp()
        except ValueError:  # 29 February
            continue
        spans.append((start, start + span.end.timestamp() - span.start.timestamp()))
    return spans
