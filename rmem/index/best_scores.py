"""Select the positions of the best of many scores, without sorting all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Distances = npt.NDArray[np.uint8 | np.uint16]
RowNumbers = npt.NDArray[np.int64]

_SORT_UP_TO = 64  # scores up to which sorting all is faster than a partition
_PARTITION_UP_TO = 16_384  # scores up to which a partition is faster than sampling a threshold


def top(scores: npt.NDArray[np.floating[Any]], count: int) -> RowNumbers:
    """Return the positions of the `count` highest scores, best first; ties go to the earlier position."""
    if scores.size <= max(count, _SORT_UP_TO):
        return np.argsort(-scores, kind="stable")[:count]
    few = scores if scores.size <= _PARTITION_UP_TO else scores[least(-scores, count)]
    edge = np.partition(few, few.size - count)[few.size - count]
    candidates = np.flatnonzero(scores >= edge)  # including ties with the last, of which the earliest are taken
    return candidates[np.argsort(-scores[candidates], kind="stable")[:count]]


def least(values: npt.NDArray[Any], count: int) -> RowNumbers:
    """Return at least `count` positions of the lowest values, unordered, and not many more.

    A partition of a million values costs ten milliseconds; a threshold guessed from a sample costs a pass.
    """
    size = values.size
    if count >= size:
        return np.arange(size)
    step = size // 4096
    if step > 1:
        sample = values[::step]
        keep = min(sample.size - 1, int(count / step * 1.3) + 16)
        threshold = np.partition(sample, keep)[keep]
        if values.dtype.kind == "u":
            return _least_distances(values, int(threshold), count)
        found = np.flatnonzero(values <= threshold)
        if count <= found.size <= 4 * count + 1024:
            return found
    return np.argpartition(values, count - 1)[:count]


def _least_distances(distances: Distances, threshold: int, count: int) -> RowNumbers:
    """Do the same for Hamming distances, of which many are equal: find the smallest threshold that suffices, near the
    one given, and take all below it and as many at it as are missing."""
    while np.count_nonzero(distances <= threshold) < count:
        threshold += 1
    while threshold and np.count_nonzero(distances < threshold) >= count:
        threshold -= 1
    found = np.flatnonzero(distances <= threshold)
    if found.size <= 2 * count:
        return found
    near = distances[found]
    return np.concatenate([found[near < threshold], found[near == threshold]])[:count]


def most(values: npt.NDArray[np.float32], count: int) -> RowNumbers:
    """Return about `count` positions of the highest values above zero, unordered; all of them if they are few."""
    step = values.size // 4096
    if step > 1:
        sample = values[::step]
        keep = max(0, sample.size - 16 - int(count / step * 1.3))
        threshold = np.sort(sample)[keep]  # sort, because with mostly zeros a partition takes five times as long
        if threshold > 0:
            found = np.flatnonzero(values >= threshold)
            if count <= found.size <= 4 * count + 1024:
                return found
    above = np.flatnonzero(values > 0)
    return above if above.size <= count else above[least(-values[above], count)]
