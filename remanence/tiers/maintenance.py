"""Looking after the tiers of an agent: what has to leave short-term memory goes to intermediate memory, what has to
leave that goes to long-term memory. Nothing is dropped."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..filters import Filter
from ..stores.base import RecordStore
from .policy import Bounds, Positions, leaving
from .storage import TieredStore

_DOWN = (("stm", "im"), ("im", "ltm"))
_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The rules: what each tier holds of one agent, and how fast priorities fade."""

    bounds: Mapping[str, Bounds]
    decay: float

    def tend(self, tiers: TieredStore, agent: str) -> dict[str, int]:
        """Move what has to move; how many went each way."""
        return {f"{source}_to_{target}": self._move(tiers, agent, source, target) for source, target in _DOWN}

    def _move(self, tiers: TieredStore, agent: str, source: str, target: str) -> int:
        """Chunk by chunk, each looked for anew: another process may tend the same agent."""
        moved, more = 0, True
        while more:
            keys, more = self._leaving(tiers.archive, agent, source)
            moved += tiers.move(agent, keys, source, target) if keys else 0
        return moved

    def _leaving(self, archive: RecordStore, agent: str, tier: str) -> tuple[list[str], bool]:
        """Some that have to leave a tier, and whether there are more."""
        survey = archive.survey(Filter(agent=(agent,), tier=(tier,)))
        if not survey.size:
            return [], False
        newest = int(archive.survey(Filter(agent=(agent,))).column("step").max())

        def focus(at: Positions) -> npt.NDArray[np.float64]:
            seqs = survey.seq[at].tolist()
            counts = archive.recalls_at(seqs)
            return np.array([counts.get(seq, 0) for seq in seqs], np.float64)

        at = leaving(survey, self.bounds[tier], decay=self.decay, now=time.time(), newest_step=newest, focus=focus)
        return archive.ids_at(survey.seq[at[:_CHUNK]].tolist()), at.size > _CHUNK
