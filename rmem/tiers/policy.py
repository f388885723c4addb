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

FADING_STEPS = 100  # after so many steps a priority is worth `decay` of itself
_FOCUS = 0.1  # what the logarithm of the retrieval count adds to a priority
_SPARE = 16
_NEWEST = 10  # one in so many of a full tier is there for being new


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a tier holds of one agent; None is no bound."""

    memory_limit: int | None = None
    ttl: float | None = None
    max_steps: int | None = None


def leaving(
    found_rows: FilteredRows,
    bounds: Bounds,
    *,
    decay: float,
    now: float,
    newest_step: int,
    focus: Callable[[Positions], npt.NDArray[np.float64]],
) -> Positions:
    """Positions of the rows of one agent in one tier that have to leave it, ascending. `focus` tells how often rows
    were focused on; it is asked for few of them, because it has to read them."""
    behind = newest_step - found_rows.column("step")
    gone = np.zeros(found_rows.size, np.bool_)
    if bounds.ttl is not None:
        gone |= now - found_rows.column("time") > bounds.ttl
    if bounds.max_steps is not None:
        gone |= behind > bounds.max_steps
    staying = np.flatnonzero(~gone)
    if bounds.memory_limit is not None and staying.size > bounds.memory_limit:
        excess = staying.size - bounds.memory_limit
        newest = max(bounds.memory_limit // _NEWEST, min(bounds.memory_limit - 1, 1))
        staying = np.sort(staying[np.lexsort((staying, -behind[staying]))[: staying.size - newest]])
        worth = found_rows.column_at("importance", staying) * decay ** (np.maximum(behind[staying], 0) / FADING_STEPS)
        order = np.lexsort((staying, worth))  # of equals the older go
        likely = order[: 2 * excess + _SPARE]
        saved = worth[likely] + _FOCUS * np.log1p(focus(staying[likely]))
        gone[staying[likely[np.lexsort((staying[likely], saved))[:excess]]]] = True
    return np.flatnonzero(gone)
