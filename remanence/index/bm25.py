"""BM25 over a survey: idf = ln(1 + (N - n + ½) / (n + ½)), its statistics taken inside the filter, so that a
filter answers exactly as a store that held nothing else would."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .analyser import Word
from .survey import Survey

K1, B = 0.9, 0.4


@dataclass(slots=True)
class WordScores:
    """What one question word gives to the rows that hold it."""

    at: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]

    @property
    def rows(self) -> int:
        return int(self.at.size)


def idf(rows: int, holding: int) -> float:
    return math.log(1 + (rows - holding + 0.5) / (holding + 0.5))


def term_scores(survey: Survey, term: int, k1: float, b: float) -> WordScores:
    found = survey.matches(term)
    if not found.at.size:
        return WordScores(found.at, np.empty(0, np.float32))
    counts = found.counts.astype(np.float32)
    lengths = survey.length[found.at]
    norm = lengths.astype(np.float32) * np.float32(k1 * b / max(survey.average_length, 1e-9))
    norm += np.float32(k1 * (1 - b))
    norm += counts
    counts *= np.float32(idf(survey.size, found.at.size) * (k1 + 1))
    counts /= norm
    return WordScores(found.at, counts)


def best_of(parts: Sequence[tuple[WordScores, float]], size: int) -> WordScores:
    """The best of several terms for each row: terms that stand for one word never add up."""
    parts = [part for part in parts if part[0].rows]
    if not parts:
        return WordScores(np.empty(0, np.int64), np.empty(0, np.float32))
    if len(parts) == 1:
        return WordScores(parts[0][0].at, parts[0][0].scores * np.float32(parts[0][1]))
    total = sum(part.rows for part, _ in parts)
    if total * 8 > size:
        dense = np.zeros(size, np.float32)
        for part, weight in parts:
            dense[part.at] = np.maximum(dense[part.at], part.scores * np.float32(weight))
        at = np.flatnonzero(dense)
        return WordScores(at, dense[at])
    at = np.concatenate([part.at for part, _ in parts])
    scores = np.concatenate([part.scores * np.float32(weight) for part, weight in parts])
    order = np.argsort(at, kind="stable")
    at, scores = at[order], scores[order]
    starts = np.flatnonzero(np.r_[True, at[1:] != at[:-1]])
    return WordScores(at[starts], np.maximum.reduceat(scores, starts))


def bm25(survey: Survey, words: Sequence[Word], k1: float = K1, b: float = B) -> npt.NDArray[np.float32]:
    """A score for every row; each word counts by the best of its hashes."""
    total = np.zeros(survey.size, np.float32)
    for word in words:
        found = best_of([(term_scores(survey, term, k1, b), 1.0) for term in word.hashes], survey.size)
        total[found.at] += found.scores
    return total
