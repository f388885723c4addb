"""How likely a hit answers its question, between 0 and 1, comparable between questions and stores.

Scores order the hits of one question and mean nothing beyond it. Relevance is a logistic model of what the best hits
show: how much of the question's words they hold, how near their vectors are, how far the first is ahead. It is trained
by training/relevance.py, which also checks it on kinds of memories that it was not trained on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]

FEATURES = ("words", "cosine", "both", "ahead", "asked", "first")
WEIGHTS = {
    "hybrid": (-4.89, 6.79, 0.99, 0.08, 0.09, 0.23, 0.23),
    "no vectors": (-5.50, 7.81, 0.0, 0.0, 0.10, 0.48, 0.04),
    "lexical": (-5.29, 8.90, 0.0, 0.0, 0.59, 0.0, 0.58),
    "vector": (-5.03, 0.0, 6.33, 0.0, 3.39, 0.0, 0.56),
}
"""A constant, then one weight per feature; by which features the store and the question have."""
OF_ANOTHER = -2.0
"""Added for a memory of another person than the question names. Not trained: no free data set swaps people."""


def features(words: Scores, cosines: Scores, scores: Scores, asked: int) -> npt.NDArray[np.float64]:
    """Return one row of FEATURES per hit, best first. `words` is BM25 divided by the sum of the words' weights."""
    held = np.clip(words, 0, 1.2).astype(np.float64)
    near = cosines.astype(np.float64)
    ahead = scores.astype(np.float64) - float(scores[0])
    ahead[0] = float(scores[0] - scores[1]) if scores.size > 1 else 0.0
    first = np.arange(scores.size) == 0
    return np.stack([held, near, held * near, ahead, np.full(scores.size, np.log1p(asked)), first], axis=1)


def relevance(found: npt.NDArray[np.float64], weights: tuple[float, ...], of_another: npt.NDArray[np.bool_]) -> Scores:
    """Return the relevance of each hit, 0 to 1."""
    total = weights[0] + found @ np.array(weights[1:]) + OF_ANOTHER * of_another
    likely: Scores = (1 / (1 + np.exp(-total))).astype(np.float32)
    return likely
