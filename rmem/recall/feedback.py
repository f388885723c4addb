"""Feedback in the ranking: a memory that was useful for questions like this one rises, one that was not falls.

What is said of one question counts for another by how alike the two are, and all of it together moves a score by no
more than `RecallSettings.feedback`. How alike questions are is told by the static table, whatever embeds the memories:
it needs no model, so the questions need not be kept as vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..feedback import Feedback, hash_question
from ..forks import new_lock
from ..index.bits import VectorColumns
from .ranked import Ranked

if TYPE_CHECKING:
    from ..stores.base import RecordStore

Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]

MIN_COSINE = 0.7
"""Cosine of two questions above which feedback on one counts for the other; at 1 it counts in full."""
PASSED_OVER = 0.25
"""Weight against a first hit that got no feedback while a later one was useful; explicit feedback has weight 1."""
MAX_MOVED = 50
"""Number of the best hits that feedback can move."""
_MAX_DIFFERING = 0.38  # largest share of sign bits in which similar questions differ
_OVERLAP = 60.0  # seconds to read again: feedback of another machine may have an earlier time


class LearnedFeedback:
    """The feedback of a store, by question; reads new feedback of other processes, too."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._lock = new_lock()
        self._version: tuple[str | None, str | None] | None = None
        self._clear()

    def _clear(self) -> None:
        self._newest = float("-inf")
        self._places: dict[str, int] = {}  # question -> its row in the vectors
        self._verdicts: list[dict[tuple[str, str], float]] = []  # per question: (recall, memory) -> weight
        self._vectors: VectorColumns | None = None

    def evidence(self, store: RecordStore, question: str) -> dict[str, float]:
        """Return the feedback on memories for similar questions, by memory id; positive if useful."""
        with self._lock:
            self._update(store)
            if not self._verdicts:
                return {}
            found: defaultdict[str, float] = defaultdict(float)
            for place, share in self._similar_questions(question).items():
                for (_, memory_id), counts in self._verdicts[place].items():
                    found[memory_id] += share * counts
            return found

    def _update(self, store: RecordStore) -> None:
        """Read new feedback; read all again if some was removed."""
        version = store.feedback_version()
        if version == self._version:
            return
        if self._version is None or version[1] != self._version[1]:
            self._clear()
        start = None if self._newest == float("-inf") else self._newest - _OVERLAP
        self._add(store.feedback(start))
        self._version = version

    def _add(self, feedback: Iterable[Feedback]) -> None:
        new: list[str] = []
        for entry in feedback:
            self._newest = max(self._newest, entry.time)
            if entry.question is None or not entry.memory_id:
                continue
            place = self._places.get(entry.question)
            if place is None:
                place = self._places[entry.question] = len(self._verdicts)
                self._verdicts.append({})
                new.append(entry.question)
            self._verdicts[place][entry.key] = 1.0 if entry.useful else -PASSED_OVER if entry.passed_over else -1.0
        if new:
            vectors = self._embed(new)
            if self._vectors is None:
                self._vectors = VectorColumns(vectors.shape[1])
            self._vectors.append(vectors)

    def _similar_questions(self, question: str) -> dict[int, float]:
        """Return similar questions and their weights, 0 to 1."""
        assert self._vectors is not None
        ((rows, cosines),) = self._vectors.nearby(self._embed([question]), _MAX_DIFFERING)
        shares = np.square(np.clip((cosines - MIN_COSINE) / (1 - MIN_COSINE), 0, 1))
        weights = {place: share for place, share in zip(rows.tolist(), shares.tolist(), strict=True) if share > 0}
        for form in (question, hash_question(question)):
            if form in self._places:
                weights[self._places[form]] = 1.0
        return weights


def rank_by_feedback(
    store: RecordStore, ranked: Sequence[Ranked], evidence: Mapping[str, float], most: float
) -> Sequence[Ranked]:
    """Adjust scores by feedback and sort again. A score changes by at most `most`: by half of it for one feedback on
    this very question, by three quarters for three."""
    ids = store.ids_at([row.seq for row in ranked])
    if len(ids) < len(ranked):  # some were removed meanwhile
        return ranked
    result = []
    for row, memory_id in zip(ranked, ids, strict=True):
        verdict = evidence.get(memory_id, 0.0)
        change = most * verdict / (1 + abs(verdict))
        if change and row.explanation is not None:
            row.explanation.components["feedback"] = change
        result.append(row._replace(score=row.score + change) if change else row)
    return sorted(result, key=lambda row: -row.score)
