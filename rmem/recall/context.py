"""Scores from context: the neighbours and session of a memory, its time, and features of its text."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import numpy.typing as npt

from ..index.filtered_rows import FilteredRows
from ..index.text_features import ASKS, REACTS
from ..timewords import Span
from .fusion import scale_of, standardise
from .settings import RecallSettings

Scores = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

_DAY = 86_400.0
_YEARS = 60
_HANDFUL = 20
_BEND = 60.0  # words of a turn among such turns, from which on its context counts less than half
_BEFORE, _AFTER = 3.0, 14.0  # days in which the weight of a date decays: things are often told later
_SAID, _NAMED = (np.log1p(np.arange(much + 1, dtype=np.float32)) for much in (30, 8))
"""Scores by number of words, and of names; larger numbers count like the last entry."""


def dependence(found_rows: FilteredRows, at: Positions) -> Scores:
    """Return how much each row depends on its context, 0 to 1: short turns among short turns most, long texts and the
    notes of one person not at all."""
    long: Scores = found_rows.column_at("length", at).astype(np.float32)
    long *= np.float32(found_rows.average_length / _BEND**2)
    long *= long
    long += 1
    speaks = found_rows.in_dialogue(at)
    speaks |= found_rows.column_at("actor", at) == found_rows.nobody
    weights: Scores = speaks.astype(np.float32) / long
    return weights


class Surroundings:
    """The neighbours of some rows, and the part of their score that does not depend on the question."""

    def __init__(self, found_rows: FilteredRows, at: Positions, settings: RecallSettings) -> None:
        before, after = found_rows.before(at), found_rows.after(at)
        self.places = np.concatenate([before, after, found_rows.before(before), found_rows.after(after)])  # -1 for none
        self.dependence = dependence(found_rows, at)
        self.answers = found_rows.column_at("flags", before) & ASKS != 0
        self._sessions = found_rows.sessions_at(at)
        self._last = int(self._sessions.max(initial=-1))
        self._in_session = self.dependence * (self._sessions >= 0)
        self._in_dialogue = self.dependence * found_rows.in_dialogue(at)
        self._substance = _substance(found_rows, at, settings) * self._in_dialogue
        importance = found_rows.column_at("importance", at).astype(np.float32)
        self.importance = np.float32(settings.importance) * (importance - np.float32(0.5))

    def lent(self, values: Scores, settings: RecallSettings) -> Scores:
        """Return the score that neighbours add to each row; `values` are the scores of `places`."""
        values = values.reshape(-1, self.answers.size)
        lent: Scores = values.sum(axis=0)
        lent += 2 * values[0] * self.answers
        lent *= np.float32(settings.context)
        return lent * self.dependence

    def session_prior(self, scores: Scores, competing: Scores, settings: RecallSettings) -> Scores:
        """Return what the best score of its session adds to each row; nothing outside sessions (-1)."""
        best = np.full(self._last + 2, -np.inf, np.float32)
        np.maximum.at(best, self._sessions, scores)
        prior = standardise(best, scale_of(best[:-1][best[:-1] > -np.inf]))
        prior *= np.float32(3 * settings.context)
        prior[-1] = 0
        return _beside_others(prior[self._sessions] * self.dependence, self._in_session, competing)

    def substance_prior(self, competing: Scores) -> Scores:
        """Return what the substance of a turn adds to each row; nothing outside dialogues."""
        return _beside_others(self._substance, self._in_dialogue, competing)


def _beside_others(added: Scores, weights: Scores, competing: Scores) -> Scores:
    """Lower what is added to rows with a weight by its mean over the competing rows, times the share of these that get
    nothing: among rows of one sort it chooses, but it must not lift all turns above all notes."""
    with_weight = float(competing @ weights)
    without = float(competing @ (weights == 0)) / float(competing.sum())
    if not with_weight or not without:
        return added
    mean = float(competing @ added) / with_weight
    return added - np.float32(mean * without) * weights


def _substance(found_rows: FilteredRows, at: Positions, settings: RecallSettings) -> Scores:
    """Return what turns of a dialogue say: words, names and numbers. It counts less among a handful of rows, whose
    scores cannot be many deviations apart."""
    flags = found_rows.column_at("flags", at)
    said = _SAID.take(found_rows.column_at("distinct", at), mode="clip")
    said = said + _NAMED.take(found_rows.column_at("specific", at), mode="clip")
    said -= 2 * (flags & ASKS != 0)
    said -= flags & REACTS != 0
    weight = settings.substance * found_rows.population / (found_rows.population + _HANDFUL)
    return said * np.float32(weight)


def inside_span(times: npt.NDArray[np.float64], span: Span) -> Scores:
    """Return 1 inside the span, decaying outside: over days around a date, over half its length around "yesterday",
    over half a day before "since Monday"."""
    length = span.end.timestamp() - span.start.timestamp()
    if span.relative:
        before = after = _DAY / 2 if span.is_open else max(length / 2, _DAY / 4)
    else:
        before, after = _BEFORE * _DAY, _AFTER * _DAY
    result = np.zeros(times.size, np.float32)
    for start, end in _spans(span, times):
        away = np.maximum(start - times, 0.0) / max(before, 1.0) + np.maximum(times - end, 0.0) / max(after, 1.0)
        np.maximum(result, np.exp(-away).astype(np.float32), out=result)
    return result


def _spans(span: Span, times: npt.NDArray[np.float64]) -> list[tuple[float, float]]:
    """Return the span, or the same days in every year of the memories."""
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
