"""Looking after the tiers of an agent: what has to leave short-term memory goes to intermediate memory, what has to
leave that goes to long-term memory. Nothing is dropped."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..filters import Filter
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
        moved = {}
        for source, target in _DOWN:
            keys = self._leaving(tiers, agent, source)
            for start in range(0, len(keys), _CHUNK):
                tiers.move(agent, keys[start : start + _CHUNK], source, target)
            moved[f"{source}_to_{target}"] = len(keys)
        return moved

    def _leaving(self, tiers: TieredStore, agent: str, tier: str) -> list[str]:
        archive = tiers.archive
        survey = archive.survey(Filter(agent=(agent,), tier=(tier,)))
        if not survey.size:
            return []
        newest = int(archive.survey(Filter(agent=(agent,))).column("step").max())

        def focus(at: Positions) -> npt.NDArray[np.float64]:
            seqs = survey.seq[at].tolist()
            counts = archive.recalls_at(seqs)
            return np.array([counts.get(seq, 0) for seq in seqs], np.float64)

        at = leaving(survey, self.bounds[tier], decay=self.decay, now=time.time(), newest_step=newest, focus=focus)
        return archive.ids_at(survey.seq[at].tolist())
