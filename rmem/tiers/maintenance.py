"""Move memories between the tiers of an agent: from short-term to intermediate, from intermediate to long-term memory.
Nothing is dropped."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..filters import Filter
from ..index.filtered_rows import FilteredRows
from ..models import TIERS
from ..stores.base import RecordStore
from ..stores.capabilities import RowVectors
from .policy import Bounds, Positions, leaving
from .storage import TieredStore, Vector

_DOWN = (("stm", "im"), ("im", "ltm"))
_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class TierMaintenance:
    """The rules: what each tier holds of one agent, and how fast priorities fade."""

    bounds: Mapping[str, Bounds]
    decay: float

    def rebalance(self, tiers: TieredStore, agent: str) -> dict[str, int]:
        """Move what has to move; how many went each way."""
        return {f"{source}_to_{target}": self._move(tiers, agent, source, target) for source, target in _DOWN}

    def plan(self, tiers: TieredStore, agent: str) -> dict[str, int]:
        """How many would move now, each way; what moves down into a tier may push others out of it."""
        moving = {}
        for source, target in _DOWN:
            found_rows = tiers.archive.filtered_rows(Filter(agent=(agent,), tier=(source,)))
            moving[f"{source}_to_{target}"] = int(self._leaving(tiers.archive, agent, source, found_rows).size)
        return moving

    def _move(self, tiers: TieredStore, agent: str, source: str, target: str) -> int:
        """Chunk by chunk, each looked for anew: another process may rebalance the same agent."""
        moved, more = 0, True
        while more:
            found_rows = tiers.archive.filtered_rows(Filter(agent=(agent,), tier=(source,)))
            at = self._leaving(tiers.archive, agent, source, found_rows)
            seqs, more = found_rows.seq[at[:_CHUNK]], at.size > _CHUNK
            keys = tiers.archive.ids_at(seqs.tolist())
            vectors = _vectors(tiers.archive, found_rows, seqs, keys) if target != TIERS[-1] else None
            moved += tiers.move(agent, keys, source, target, vectors) if keys else 0
        return moved

    def _leaving(self, archive: RecordStore, agent: str, tier: str, found_rows: FilteredRows) -> Positions:
        if not found_rows.size:
            return np.empty(0, np.int64)
        newest = int(archive.filtered_rows(Filter(agent=(agent,))).column("step").max())

        def focus(at: Positions) -> npt.NDArray[np.float64]:
            seqs = found_rows.seq[at].tolist()
            counts = archive.recalls_at(seqs)
            return np.array([counts.get(seq, 0) for seq in seqs], np.float64)

        return leaving(
            found_rows, self.bounds[tier], decay=self.decay, now=time.time(), newest_step=newest, focus=focus
        )


def _vectors(
    archive: RecordStore, found_rows: FilteredRows, seqs: npt.NDArray[np.int64], keys: Sequence[str]
) -> dict[str, Vector]:
    """What memories on their way down take with them, in case that another process has brought them further down in
    this moment: for them it is the way up."""
    if found_rows.dimension is None or not isinstance(archive, RowVectors) or len(keys) != seqs.size:
        return {}
    found = archive.vectors_at(seqs, found_rows.dimension)
    return {key: vector for key, vector in zip(keys, found, strict=True) if vector.any()}
