"""What surrounds a memory: its neighbours and its session, when it was, and how it speaks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import numpy as np
import numpy.typing as npt

from ..index.manner import ASKS, REACTS
from ..index.survey import Survey
from ..timewords import Span
from .fusion import scale_of, standardised
from .settings import RecallSettings

Scores = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

_DAY = 86_400.0
_YEARS = 60
_HANDFUL = 20
_MUCH_SAID, _MUCH_NAMED = 30, 8  # words and names from which on more of them is no better


def lent_by_neighbours(
    survey: Survey, at: Positions, fused: Callable[[Positions], Scores], settings: RecallSettings
) -> Scores:
    """What the rows around lend to each of the rows `at`. `fused` scores rows; position -1 lends nothing."""

    before, after = survey.before(at), survey.after(at)
    around = [before, after]
    if settings.far:
        around += [survey.before(before), survey.after(after)]
    places = np.concatenate(around)
    values = np.where(places >= 0, fused(places), np.float32(0)).reshape(len(around), at.size)
    lent: Scores = np.float32(settings.near) * (values[0] + values[1])
    if settings.far:
        lent += np.float32(settings.far) * (values[2] + values[3])
    if settings.answer:
        lent += np.float32(settings.answer) * values[0] * ((survey.column_at("flags", before) & ASKS) != 0)
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


def manner(survey: Survey, at: Positions, settings: RecallSettings) -> dict[str, Scores]:
    """What a row is worth before any question: substance up, questions and mere reactions down. Among a handful of
    rows scores cannot be many deviations apart, so this counts less there."""
    trust = np.float32(survey.population / (survey.population + _HANDFUL))
    flags = survey.column_at("flags", at)
    said = np.log1p(np.minimum(survey.column_at("distinct", at), _MUCH_SAID).astype(np.float32))
    named = np.log1p(np.minimum(survey.column_at("specific", at), _MUCH_NAMED).astype(np.float32))
    return {
        "length": trust * np.float32(settings.length) * said,
        "specific": trust * np.float32(settings.specific) * named,
        "asking": trust * np.float32(-settings.asking) * (flags & ASKS != 0),
        "reacting": trust * np.float32(-settings.reacting) * (flags & REACTS != 0),
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
