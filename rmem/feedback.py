"""Feedback on recalls: a Feedback says whether one hit was useful, and a Recall is the
question that it answered. Only feedback is written; a recall without feedback costs nothing."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import islice
from os import urandom
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from . import checks
from .errors import InputError
from .forks import new_lock

if TYPE_CHECKING:
    from .filters import Filter
    from .models import Hit

QUESTIONS = "judged_questions"
"""Metadata key of a store for what is stored of questions: "text", "hash" or "none"."""
FEEDBACK_ADDED, FEEDBACK_REMOVED = "feedback_added", "feedback_removed"
"""Metadata keys of a store whose values change whenever feedback is added or removed."""
_MAX_HITS = 50  # of a recall that can get feedback by its id
_MAX_RECALLS = 4096  # that can get feedback by their id


@dataclass(frozen=True, slots=True)
class Feedback:
    """Whether one hit of one recall was useful. Rank 0 without a memory means that no hit was."""

    recall_id: str
    memory_id: str
    question: str | None
    agent: str
    type: str
    rank: int
    score: float
    useful: bool
    time: float

    @property
    def passed_over(self) -> bool:
        """Whether this first hit got no feedback while a later one was useful. Its rank is negative."""
        return self.rank < 0

    @property
    def key(self) -> tuple[str, str]:
        """Return the identity: one verdict for each recall and memory."""
        return self.recall_id, self.memory_id

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class _Place(NamedTuple):
    """The rank of a hit, and the agent and type of its memory."""

    rank: int
    score: float
    agent: str
    type: str


@dataclass(slots=True, eq=False)
class Recall:
    """One recall, with what feedback on its hits needs."""

    question: str
    agent: str = ""
    """The agent that a recall without a useful hit counts for: the one in its filter, if any."""
    type: str = ""
    write: Callable[[Sequence[Feedback]], None] | None = field(default=None, repr=False)
    id: str = field(default_factory=lambda: urandom(12).hex())
    hits: dict[str, _Place] = field(default_factory=dict, repr=False)
    with_feedback: set[str] = field(default_factory=set, repr=False)
    asked: float = field(default_factory=time.time)
    """When."""

    def record_hits(self, hits: Sequence[Hit]) -> None:
        """Record the hits, and set the rank and the recall of each."""
        for rank, hit in enumerate(hits, 1):
            hit.rank, hit.recall = rank, self
        self.hits = {
            hit.memory.memory_id: _Place(rank, hit.score, hit.memory.agent_id, hit.memory.bookkeeping.memory_type)
            for rank, hit in enumerate(hits[:_MAX_HITS], 1)
        }

    def with_hits(self, places: Mapping[str, Sequence[Any]]) -> Self:
        """Return this recall with hits that another process found: their places, as in `hits`."""
        self.hits = {memory_id: _Place(*place) for memory_id, place in places.items()}
        return self

    def of_hit(self, hit: Hit, useful: bool) -> Feedback:
        memory = hit.memory
        return self._feedback(memory.memory_id, _Place(hit.rank, hit.score, memory.agent_id, memory.type), useful)

    def of_memory(self, memory_id: str, useful: bool) -> Feedback:
        place = self.hits.get(checks.memory_id("memory_id", memory_id))
        if place is None:
            raise InputError(f"memory_id must be one of the recall's first hits, got {memory_id!r}", field="memory_id")
        return self._feedback(memory_id, place, useful)

    def of_all(self, useful: bool) -> Feedback:
        """Build the feedback that no hit was useful, or that there was none."""
        if useful:
            raise InputError("memory_id must name the hit that was useful", field="memory_id")
        return self._feedback("", _Place(0, 0.0, self.agent, self.type), False)

    def _feedback(self, memory_id: str, place: _Place, useful: bool) -> Feedback:
        yes = checks.flag("useful", useful)
        return Feedback(
            self.id, memory_id, self.question, place.agent, place.type, place.rank, float(place.score), yes, time.time()
        )

    def record(self, feedback: Feedback) -> None:
        """Write feedback to the store of this recall."""
        if self.write is None:
            raise InputError("this hit came from another process; call brain.feedback(hit) here", field="hit")
        self.write(self.with_passed_over(feedback))

    def with_passed_over(self, feedback: Feedback) -> list[Feedback]:
        """Return the feedback and, if it says that a later hit was useful, that the first one was passed over."""
        self.with_feedback.add(feedback.memory_id)
        first = next(iter(self.hits), None)
        if first is None or first in self.with_feedback or not feedback.useful:
            return [feedback]
        place = self.hits[first]
        return [
            feedback,
            Feedback(self.id, first, self.question, place.agent, place.type, -1, place.score, False, feedback.time),
        ]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the question and the id only; another process has another Brain."""
        return type(self), (self.question, self.agent, self.type, None, self.id)


class Recalls:
    """The last recalls of a Brain, for feedback by their ids."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, Recall] = OrderedDict()
        self._lock = new_lock()

    def new(self, question: str, where: Filter, write: Callable[[Sequence[Feedback]], None], id: str = "") -> Recall:
        agents, types = where.agent or (), where.type or ()
        recall = Recall(question, agents[0] if len(agents) == 1 else "", types[0] if len(types) == 1 else "", write)
        recall.id = id or recall.id
        self.keep(recall)
        return recall

    def keep(self, recall: Recall) -> None:
        """Keep a recall for feedback by its id."""
        with self._lock:
            self._last[recall.id] = recall
            if len(self._last) > _MAX_RECALLS:
                self._last.popitem(last=False)

    def latest(self, count: int) -> list[Recall]:
        """Return the last recalls, newest first."""
        with self._lock:
            return list(islice(reversed(self._last.values()), count))

    def forget(self, concerned: Callable[[str], bool]) -> None:
        """Drop the recalls whose question `concerned` accepts; they can get no more feedback."""
        with self._lock:
            for recall in [recall for recall in self._last.values() if concerned(recall.question)]:
                del self._last[recall.id]

    def feedback_on(self, recalled: object, memory_id: str | None, useful: bool) -> list[Feedback]:
        """Build the feedback on a Hit, on a memory of a recall (Hits or id), or on a whole recall, and the feedback
        that follows from it."""
        recall = getattr(recalled, "recall", None) if not isinstance(recalled, str) else self._last.get(recalled)
        if not isinstance(recall, Recall):
            expected = (
                f"a Hit or Hits of Brain.recall, or the id of one of the last {_MAX_RECALLS} recalls of this Brain"
            )
            raise checks.refuse("recalled", expected, recalled)
        memory = getattr(recalled, "memory", None)
        if memory is not None and memory_id not in (None, memory.memory_id):
            raise InputError(f"memory_id must be the hit's own or left out, got {memory_id!r}", field="memory_id")
        if memory is not None:
            return recall.with_passed_over(recall.of_hit(cast("Hit", recalled), useful))
        feedback = recall.of_all(useful) if memory_id is None else recall.of_memory(memory_id, useful)
        return recall.with_passed_over(feedback)


def new_token() -> str:
    """Return a value that no metadata had before."""
    return urandom(8).hex()


def stored_question(question: str | None, wish: str | None) -> str | None:
    """Return what a store keeps of a question: its text, its hash or nothing, by `wish`."""
    if wish == "none" or question is None:
        return None
    return hash_question(question) if wish == "hash" else question


def hash_question(question: str) -> str:
    """Hash a question, so that an equal one can be recognised."""
    return sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:32]
