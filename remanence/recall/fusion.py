"""Bringing the two sides together: words and vectors, each in standard deviations of its own best scores.

Plain reciprocal-rank fusion lost to BM25 alone in our measurements, so scores are fused, not ranks. Mean and
deviation come from the best few hundred scores of a side: those of all rows would make a rare word stand a
hundred deviations out in a large store, and drown every vector."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]

_FLOOR = -2.0  # how badly a row can do


def scale_of(values: Scores, pool: int) -> tuple[float, float]:
    """Mean and deviation of the best `pool` values; a deviation of 0 means that they tell nothing apart."""
    if not values.size:
        return 0.0, 0.0
    best = values if values.size <= pool else np.partition(values, values.size - pool)[values.size - pool :]
    wide = best.astype(np.float64)
    mean = float(wide.sum()) / wide.size
    wide -= mean
    deviation = math.sqrt(float(wide @ wide) / wide.size)
    return mean, deviation if deviation > 1e-6 else 0.0


def standardised(values: Scores, scale: tuple[float, float]) -> Scores:
    mean, deviation = scale
    if not deviation:
        return np.zeros_like(values)
    result: Scores = (values - np.float32(mean)) * np.float32(1 / deviation)
    return np.maximum(result, np.float32(_FLOOR), out=result)
