"""Choose which memories leave a tier. Age and steps are hard bounds; where there is no room, those with the lowest
priority leave. Priority decays with every step of the agent and is raised by every focus on a memory. The newest stay
for a while whatever their priority, so that neither they nor the most important leave first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..index.filtered_rows import FilteredRows

Positions = npt.NDArray[np.int64]

FADING_STEPS = 100  # a priority is multiplied by `decay` every 100 steps
_FOCUS = 0.1  # weight of the logarithm of the retrieval count in a priority
_SPARE = 16
_NEWEST = 10  # the newest tenth of a full tier stays whatever its priority


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a tier holds of one agent: memories, seconds and steps of age; None means no limit."""

    memory_limit: int | None = None
    ttl: float | None = None
    max_steps: int | None = None


def rows_to_move(
    found_rows: FilteredRows,
    bounds: Bounds,
    *,
    decay: float,
    now: float,
    newest_step: int,
    focus: Callable[[Positions], npt.NDArray[np.float64]],
) -> Positions:
    """Return the positions of the rows of one agent that exceed the bounds of their tier, ascending. `focus` returns
    how often rows were retrieved; it is called for few of them, because it reads them from the store."""
    steps_old = newest_step - found_rows.column("step")
    leaves = np.zeros(found_rows.size, np.bool_)
    if bounds.ttl is not None:
        leaves |= now - found_rows.column("time") > bounds.ttl
    if bounds.max_steps is not None:
        leaves |= steps_old > bounds.max_steps
    candidates = np.flatnonzero(~leaves)
    if bounds.memory_limit is not None and candidates.size > bounds.memory_limit:
        excess = candidates.size - bounds.memory_limit
        newest = max(bounds.memory_limit // _NEWEST, min(bounds.memory_limit - 1, 1))
        candidates = np.sort(candidates[np.lexsort((candidates, -steps_old[candidates]))[: candidates.size - newest]])
        priority = found_rows.column_at("importance", candidates) * decay ** (
            np.maximum(steps_old[candidates], 0) / FADING_STEPS
        )
        order = np.lexsort((candidates, priority))  # of equals the older leave
        lowest = order[: 2 * excess + _SPARE]
        with_focus = priority[lowest] + _FOCUS * np.log1p(focus(candidates[lowest]))
        leaves[candidates[lowest[np.lexsort((candidates[lowest], with_focus))[:excess]]]] = True
    return np.flatnonzero(leaves)
