"""The statistics of one agent's memory, for `get_memory_statistics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..filters import Filter
from ..models import TIERS

if TYPE_CHECKING:
    from .system import MemorySystem
    from .types import MemoryStatistics

_BINS = 10


def of_agent(system: MemorySystem, agent: str) -> MemoryStatistics:
    store = system.brain.store
    found_rows = store.filtered_rows(Filter(agent=(agent,)))
    tiers = np.bincount(found_rows.column("tier"), minlength=len(TIERS)).tolist()
    times = found_rows.column("time")
    importance = found_rows.column("importance")
    bins = np.bincount(np.minimum(importance * _BINS, _BINS - 1).astype(np.int64), minlength=_BINS)
    sizes = store.sizes(Filter(agent=(agent,)))
    packed, before = sum(size.packed for size in sizes.values()), sum(size.unpacked for size in sizes.values())
    return {
        "agent_id": agent,
        "total_memories": found_rows.size,
        "memory_type_distribution": found_rows.kinds(),
        "tier_distribution": dict(zip(TIERS, tiers, strict=True)),
        "compression": {
            "ratio": before / packed if packed else 1.0,
            "bytes_before": before,
            "bytes_after": packed,
            "by_tier": {tier: {"bytes_before": s.unpacked, "bytes_after": s.packed} for tier, s in sizes.items()},
        },
        "importance_histogram": {
            f"{low / _BINS:.1f}-{(low + 1) / _BINS:.1f}": count for low, count in enumerate(bins.tolist())
        },
        "average_importance": float(importance.mean()) if found_rows.size else None,
        "oldest": float(times.min()) if found_rows.size else None,
        "newest": float(times.max()) if found_rows.size else None,
        "first_step": int(found_rows.column("step").min()) if found_rows.size else None,
        "last_step": int(found_rows.column("step").max()) if found_rows.size else None,
        "cache": system.cache.statistics(),
        "hot_tiers": {tier: hot.breaker.state for tier, hot in system.tiers.hot.items()},
        "state_failures": system.state_failures[agent],
    }
