"""List what a team should review: memories that contradict each other, that may be out of date, and possible rules that
nobody has confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..errors import NotFoundError
from ..filters import Filter
from .identity import Repository
from .memory import TeamMemory
from .notes import CURRENT, WAITING, Experience, Note, audience
from .similarity import Saying, contradiction
from .validation import sound

_KINDS = ("preference", "decision", "codebase", "error_fix")
_NEIGHBOURS = 8
_CLOSE = 0.35  # cosine from which on two memories are compared


class Contradiction(NamedTuple):
    """Two memories of the same subject that cannot both hold; `newer` was learned later."""

    older: Experience
    newer: Experience
    why: str


def contradictions(team: TeamMemory, repository: Repository | str | None, limit: int = 100) -> list[Contradiction]:
    """Pairs that contradict each other, the latest first."""
    places = tuple(team.visible(repository))
    where = Filter(type=_KINDS, place=places, tags={"state": CURRENT})
    memories = list(sound(team.brain.memories(where, limit=None)))
    sayings = {memory.memory_id: Saying.of(memory.text) for memory in memories}
    found: dict[tuple[str, str], Contradiction] = {}
    for memory in memories:
        vector = memory.embeddings.full_vector
        if vector is None:
            continue
        for hit in team.brain.recall(memory.text, _NEIGHBOURS, where, mode="vector", vector=vector, touch=False):
            other = hit.memory
            first, second = sorted((memory, other), key=lambda one: (one.timestamp, one.memory_id))
            key = first.memory_id, second.memory_id
            if other.memory_id == memory.memory_id or key in found or hit.score < _CLOSE:
                continue
            if other.memory_id not in sayings:
                continue  # it came meanwhile, or is damaged
            why = contradiction(sayings[first.memory_id], sayings[second.memory_id])
            if why is not None:
                found[key] = Contradiction(Experience(first), Experience(second), why)
    return sorted(found.values(), key=lambda one: -one.newer.memory.timestamp)[:limit]


def out_of_date(team: TeamMemory, repository: Repository, limit: int = 100) -> list[Experience]:
    """Memories about files of a repository that are gone or changed a lot."""
    found: Sequence[Experience] = team.recent(repository=repository, limit=10_000)
    return [one for one in (team.checked(one, repository) for one in found) if one.stale][:limit]


def waiting(note: Note) -> Note:
    """A note that nobody is told of, and that does not leave this machine, until it is accepted."""
    return replace(note, scope="personal", state=WAITING)


def undecided(team: TeamMemory, limit: int = 100) -> list[Experience]:
    """What may be a rule of yours, the newest first."""
    where = Filter(place=(audience("personal", None, team.author),), tags={"state": WAITING})
    return [Experience(memory) for memory in team.brain.memories(where, limit=limit)]


def accept(team: TeamMemory, memory_id: str) -> str:
    """Make a rule of what waits, for whoever works in its repository; the id that it has from now on."""
    one = next((one for one in undecided(team, 10_000) if one.id == memory_id), None)
    if one is None:
        raise NotFoundError(memory_id)
    body = one.memory.contents
    note = Note(
        one.text, one.kind, author=one.author, agent=one.memory.agent_id, session=one.memory.session,
        when=one.memory.timestamp, importance=one.memory.importance, repository=one.repository,
        branch=body.get("branch"), commit=one.commit,
    )  # fmt: skip
    kept = team.remember(note).memory_id
    team.forget(memory_id)
    return kept
