"""Combine the scores of words and vectors, each in standard deviations of its own best scores.

Plain reciprocal-rank fusion lost to BM25 alone in our measurements, so scores are fused, not ranks. Mean and
deviation come from the best few hundred scores of a side: over all rows a rare word would stand a hundred
deviations out in a large store, and outweigh every vector.

Such scores compare the hits of one question. Where a score must mean something by itself, as in SQL, each side is
scaled to a share between 0 and 1 (`share_of_words`, `share_of_vector`) that does not depend on other rows."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]

Exact = npt.NDArray[np.float64]

_POOL = 500  # best scores that give mean and deviation, so that these are comparable between stores
_FLOOR = -2.0  # lowest standardised score


def scale_of(values: Scores, least: float = 0.0) -> tuple[float, float]:
    """Return mean and deviation of the best 500 values; a deviation of 0 means that all are equal. The fewer
    values there are, the less is known of their deviation: of n it is no smaller than `least` / √n, so that two values
    which are nearly the same do not stand far apart."""
    if not values.size:
        return 0.0, 0.0
    best = values if values.size <= _POOL else np.partition(values, values.size - _POOL)[values.size - _POOL :]
    wide = best.astype(np.float64)
    mean = float(wide.sum()) / wide.size
    wide -= mean
    deviation = max(math.sqrt(float(wide @ wide) / wide.size), least / math.sqrt(wide.size))
    return mean, deviation if deviation > 1e-6 else 0.0


def standardise(values: Scores, scale: tuple[float, float]) -> Scores:
    mean, deviation = scale
    if not deviation:
        return np.zeros_like(values)
    result: Scores = (values - np.float32(mean)) * np.float32(1 / deviation)
    return np.maximum(result, np.float32(_FLOOR), out=result)


def share_of_words(scores: Scores, possible: float) -> Exact:
    """Scale BM25 to 0..1: divide by the most that a row could score for these words."""
    if possible <= 0:
        return np.zeros(scores.size)
    return np.minimum(scores.astype(np.float64) / possible, 1.0)


def share_of_vector(cosines: Exact) -> Exact:
    """Scale cosines to 0..1."""
    return (1 + cosines) / 2


def blend(words: Exact, vectors: Exact, weight_words: float, weight_vectors: float) -> Exact:
    """Return the weighted mean of both shares, also between 0 and 1."""
    result: Exact = (weight_words * words + weight_vectors * vectors) / (weight_words + weight_vectors)
    return result
