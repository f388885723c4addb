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
from .policy import Bounds, Positions, rows_to_move
from .storage import TieredStore, Vector

_MOVES = (("stm", "im"), ("im", "ltm"))
_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class TierMaintenance:
    """Moves memories down the tiers: `bounds` of each tier per agent, and how fast priorities `decay`."""

    bounds: Mapping[str, Bounds]
    decay: float

    def rebalance(self, tiers: TieredStore, agent: str) -> dict[str, int]:
        """Move the memories of an agent that exceed the bounds of their tier; return how many moved each way."""
        return {f"{source}_to_{target}": self._move(tiers, agent, source, target) for source, target in _MOVES}

    def plan(self, tiers: TieredStore, agent: str) -> dict[str, int]:
        """Return how many memories would move now, each way; those that move into a tier may push others out of it."""
        moving = {}
        for source, target in _MOVES:
            found_rows = tiers.archive.filtered_rows(Filter(agent=(agent,), tier=(source,)))
            moving[f"{source}_to_{target}"] = int(self._excess_rows(tiers.archive, agent, source, found_rows).size)
        return moving

    def _move(self, tiers: TieredStore, agent: str, source: str, target: str) -> int:
        """Move in chunks, and search again for each: another process may rebalance the same agent."""
        moved, more = 0, True
        while more:
            found_rows = tiers.archive.filtered_rows(Filter(agent=(agent,), tier=(source,)))
            at = self._excess_rows(tiers.archive, agent, source, found_rows)
            seqs, more = found_rows.seq[at[:_CHUNK]], at.size > _CHUNK
            keys = tiers.archive.ids_at(seqs.tolist())
            vectors = _original_vectors(tiers.archive, found_rows, seqs, keys) if target != TIERS[-1] else None
            moved += tiers.move(agent, keys, source, target, vectors) if keys else 0
        return moved

    def _excess_rows(self, archive: RecordStore, agent: str, tier: str, found_rows: FilteredRows) -> Positions:
        if not found_rows.size:
            return np.empty(0, np.int64)
        newest = int(archive.filtered_rows(Filter(agent=(agent,))).column("step").max())

        def focus(at: Positions) -> npt.NDArray[np.float64]:
            seqs = found_rows.seq[at].tolist()
            counts = archive.recalls_at(seqs)
            return np.array([counts.get(seq, 0) for seq in seqs], np.float64)

        return rows_to_move(
            found_rows, self.bounds[tier], decay=self.decay, now=time.time(), newest_step=newest, focus=focus
        )


def _original_vectors(
    archive: RecordStore, found_rows: FilteredRows, seqs: npt.NDArray[np.int64], keys: Sequence[str]
) -> dict[str, Vector]:
    """Read the original vectors of memories that move down; needed if another process already moved them further down,
    where vectors are compressed."""
    if found_rows.dimension is None or not isinstance(archive, RowVectors) or len(keys) != seqs.size:
        return {}
    found = archive.vectors_at(seqs, found_rows.dimension)
    return {key: vector for key, vector in zip(keys, found, strict=True) if vector.any()}
