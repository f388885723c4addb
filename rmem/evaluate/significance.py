"""Test whether a difference is more than chance: permutation tests and the bootstrap. They are seeded, so that the same
figures always give the same answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

ROUNDS = 10_000
LEVEL = 0.05
_AT_ONCE = 2_000_000  # numbers drawn at a time
_CLOSE = 1e-12

Array = npt.NDArray[np.float64]


def paired_p(differences: Sequence[float], *, rounds: int = ROUNDS, seed: int = 0) -> float:
    """Return the two-sided p of a mean difference between two systems that answered the same questions.

    If the systems were the same, the sign of each difference would be a toss-up: how often do tossed signs give a
    mean at least as far from zero?
    """
    values = np.asarray(differences, np.float64)
    values = values[np.abs(values) > _CLOSE]
    if not values.size:
        return 1.0
    rng = np.random.default_rng(seed)
    seen = abs(float(values.sum()))
    extreme = done = 0
    while done < rounds:
        size = min(rounds - done, max(1, _AT_ONCE // values.size))
        signs = rng.integers(0, 2, (size, values.size), np.int8) * 2 - 1
        extreme += int((np.abs(signs @ values) >= seen - _CLOSE).sum())
        done += size
    return (extreme + 1) / (rounds + 1)


def paired_interval(differences: Sequence[float], *, rounds: int = ROUNDS, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean difference (questions drawn with replacement)."""
    values = np.asarray(differences, np.float64)
    rng = np.random.default_rng(seed)
    means: list[Array] = []
    done = 0
    while done < rounds:
        size = min(rounds - done, max(1, _AT_ONCE // values.size))
        means.append(values[rng.integers(0, values.size, (size, values.size))].mean(axis=1))
        done += size
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return float(low), float(high)


def unpaired_p(before: Sequence[float], after: Sequence[float], *, rounds: int = ROUNDS, seed: int = 0) -> float:
    """Return the two-sided p of a difference of means between two groups, by shuffling the labels."""
    pooled = np.asarray([*before, *after], np.float64)
    if not before or not after or np.ptp(pooled) < _CLOSE:
        return 1.0
    rng = np.random.default_rng(seed)
    size, total = len(after), float(pooled.sum())
    # The sum of one group determines the difference of means, so compare sums with their expected value.
    expected = total * size / pooled.size
    seen = abs(float(np.sum(after)) - expected)
    extreme = done = 0
    while done < rounds:
        count = min(rounds - done, max(1, _AT_ONCE // pooled.size))
        drawn = rng.permuted(np.tile(pooled, (count, 1)), axis=1)[:, :size].sum(axis=1)
        extreme += int((np.abs(drawn - expected) >= seen - _CLOSE).sum())
        done += count
    return (extreme + 1) / (rounds + 1)
