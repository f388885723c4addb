"""States like a given one, compared value by value.

Numbers are compared as numbers: their distance in standard deviations of what the agent has known under that path, so
that health between 0 and 1 counts as much as gold between 0 and a million. Texts, True, False and None are the same or
not. Values that a memory lacks count against it; values that the question lacks do not matter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contents import laid_out
from ..index.best_scores import top
from ..index.columns import attribute_hash
from ..index.filtered_rows import FilteredRows
from ..index.numbers import as_number, path_hash

Distances = npt.NDArray[np.float64]

_OTHER = 2.0  # squared distance of two random numbers in deviations, and of two different texts
_MISSING = 4.0


@dataclass(frozen=True, slots=True)
class StateQuestion:
    """The values of a state: numbers by hashed path, and hashes of all other values."""

    paths: tuple[int, ...]
    values: tuple[float, ...]
    marks: tuple[int, ...]

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> StateQuestion:
        layout, held = laid_out(state)
        paths, values, marks = [], [], []
        for path, under, value in zip(layout.paths, layout.under, held, strict=True):
            number = as_number(value)
            if number is not None:
                paths.append(path_hash(path))
                values.append(number)
            else:
                marks.append(attribute_hash(under, value))
        return cls(tuple(paths), tuple(values), tuple(marks))

    def __len__(self) -> int:
        return len(self.values) + len(self.marks)


def deviations(found_rows: FilteredRows, question: StateQuestion) -> tuple[float, ...]:
    """Return the standard deviation of the numbers under each path among these rows."""
    return tuple(_deviation(found_rows.numbers(path)) for path in question.paths)


def _deviation(column: npt.NDArray[np.float64]) -> float:
    known = column[~np.isnan(column)]
    if not known.size:
        return 1.0
    peak = float(np.abs(known).max())
    if peak < 1e-300:  # zero, or so small that 1 / peak overflows
        return 1.0
    spread = float((known / peak).std()) * peak  # scaled, because squares of very large numbers overflow
    return spread if spread > 1e-12 * peak else peak


def similar_rows(
    found_rows: FilteredRows, question: StateQuestion, scales: tuple[float, ...], k: int
) -> tuple[npt.NDArray[np.int64], Distances]:
    """Return the positions of the k rows most similar to a state, and their distances. Ties go to later steps; rows
    without any path or value of the question are left out."""
    total = np.full(found_rows.size, _OTHER * len(question.marks))
    shared = np.zeros(found_rows.size, np.bool_)
    for path, value, scale in zip(question.paths, question.values, scales, strict=True):
        away = found_rows.numbers(path) - value
        away *= 1 / scale
        np.clip(away, -1e150, 1e150, out=away)  # NaN stays NaN
        away *= away
        held = ~np.isnan(away)
        shared |= held
        total += np.where(held, away, _MISSING)
    marked = found_rows.with_attributes(question.marks)
    for number in range(len(question.marks)):
        at, _ = marked.part(number)
        total[at] -= _OTHER
        shared[at] = True
    rows = found_rows.once("last steps first", lambda: np.argsort(found_rows.column("step"), kind="stable")[::-1])
    rows = rows[shared[rows]]
    best = rows[top(-total[rows], k)]
    return best, np.sqrt(np.maximum(total[best], 0.0) / max(len(question), 1))


def similarity(distance: float) -> float:
    """Convert a distance to a similarity: 1 for the same state, 0.5 at one deviation."""
    return 1 / (1 + distance) if math.isfinite(distance) else 0.0
