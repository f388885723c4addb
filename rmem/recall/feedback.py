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
from .hybrid import Ranked

if TYPE_CHECKING:
    from ..stores.base import RecordStore

Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]

ALIKE = 0.7
"""Cosine of two questions from which on what was said of one counts for the other; it counts in full at 1."""
PASSED_OVER = 0.25
"""What it counts against a first hit that a later one was marked and it was not; a verdict counts 1."""
MOVED = 50
"""So many of the best hits can be moved by feedback."""
_DIFFERING = 0.38  # share of the sign bits in which questions alike differ at most
_OVERLAP = 60.0  # seconds; what another machine wrote may be dated earlier than what was read before it


class LearnedFeedback:
    """The feedback of a store, by question. It follows the store, so several processes learn from each other."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._lock = new_lock()
        self._version: tuple[str | None, str | None] | None = None
        self._clear()

    def _clear(self) -> None:
        self._newest = float("-inf")
        self._places: dict[str, int] = {}  # question → its row in the vectors
        self._said: list[dict[tuple[str, str], float]] = []  # for each question: (recall, memory) → what it counts
        self._vectors: VectorColumns | None = None

    def evidence(self, store: RecordStore, question: str) -> dict[str, float]:
        """What was said of memories for questions like this one: positive where they were useful."""
        with self._lock:
            self._follow(store)
            if not self._said:
                return {}
            found: defaultdict[str, float] = defaultdict(float)
            for place, share in self._alike(question).items():
                for (_, memory_id), counts in self._said[place].items():
                    found[memory_id] += share * counts
            return found

    def _follow(self, store: RecordStore) -> None:
        """Read what is new; all of it where something was removed."""
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
        for one in feedback:
            self._newest = max(self._newest, one.time)
            if one.question is None or not one.memory_id:
                continue
            place = self._places.get(one.question)
            if place is None:
                place = self._places[one.question] = len(self._said)
                self._said.append({})
                new.append(one.question)
            self._said[place][one.key] = 1.0 if one.useful else -PASSED_OVER if one.passed_over else -1.0
        if new:
            vectors = self._embed(new)
            if self._vectors is None:
                self._vectors = VectorColumns(vectors.shape[1])
            self._vectors.append(vectors)

    def _alike(self, question: str) -> dict[int, float]:
        """The questions that are like this one, and what each counts, from 0 to 1."""
        assert self._vectors is not None
        ((near, cosines),) = self._vectors.nearby(self._embed([question]), _DIFFERING)
        shares = np.square(np.clip((cosines - ALIKE) / (1 - ALIKE), 0, 1))
        alike = {place: share for place, share in zip(near.tolist(), shares.tolist(), strict=True) if share > 0}
        for same in (question, hash_question(question)):
            if same in self._places:
                alike[self._places[same]] = 1.0
        return alike


def moved(store: RecordStore, ranked: Sequence[Ranked], evidence: Mapping[str, float], most: float) -> Sequence[Ranked]:
    """Rows in the order that feedback gives them. No score moves by more than `most`: by half of it for one verdict on
    this very question, by three quarters for three."""
    ids = store.ids_at([row.seq for row in ranked])
    if len(ids) < len(ranked):  # some have gone meanwhile
        return ranked
    result = []
    for row, memory_id in zip(ranked, ids, strict=True):
        said = evidence.get(memory_id, 0.0)
        change = most * said / (1 + abs(said))
        if change and row.explanation is not None:
            row.explanation.components["feedback"] = change
        result.append(row._replace(score=row.score + change) if change else row)
    return sorted(result, key=lambda row: -row.score)
