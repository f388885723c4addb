"""Estimate how likely a hit answers its question, 0 to 1, comparable between questions and stores.

Scores order the hits of one question and mean nothing beyond it. Relevance is a logistic model of three signals: how
much of the question's words the hit contains, how near its vector is, and its share among all candidates. It is
trained by training/relevance.py, which also checks it on kinds of memories that it was not trained on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]

SIGNALS = ("words", "cosine", "share")
WEIGHTS = {
    "hybrid": (0.99, 0.98, 3.14, 0.43),
    "no vectors": (2.50, 1.40, 0.0, 0.45),
    "lexical": (2.36, 1.74, 0.0, 0.43),
    "vector": (-4.65, 0.0, 7.14, 0.0),
}
"""A constant, then one weight per signal; by which signals the store and the mode have."""
OF_ANOTHER = -2.0
"""Added for a memory of another person than the question names. Not trained: no free data set swaps people."""
_FLOOR = 0.02  # share of the question's words that counts like none
_TEMPERATURE = 2.0  # deviations of the score; smaller ones ask whether a hit is first, larger ones how many compete
_COMPETITORS = 500


def signals(held: Scores, cosines: Scores, scores: Scores, competing: Scores) -> npt.NDArray[np.float64]:
    """Return one row of SIGNALS per hit. `held` is BM25 divided by the sum of the words' weights; `scores` are in
    deviations, and `competing` are those of all candidates."""
    words = np.log(np.clip(held, 0, 1.2).astype(np.float64) + _FLOOR)
    if competing.size > _COMPETITORS:
        competing = np.partition(competing, competing.size - _COMPETITORS)[-_COMPETITORS:]
    best = float(competing.max())
    total = float(np.exp((competing - np.float32(best)) / np.float32(_TEMPERATURE)).sum())
    share = scores.astype(np.float64) - best - _TEMPERATURE * np.log(total)
    return np.stack([words, cosines.astype(np.float64), share], axis=1)


def relevance(found: npt.NDArray[np.float64], weights: tuple[float, ...], of_another: npt.NDArray[np.bool_]) -> Scores:
    """Return the relevance of each hit, 0 to 1."""
    total = weights[0] + found @ np.array(weights[1:]) + OF_ANOTHER * of_another
    likely: Scores = (1 / (1 + np.exp(-total))).astype(np.float32)
    return likely
