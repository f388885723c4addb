"""List what a team should review: memories that contradict each other or say the same, that may be out of date, and
possible rules that nobody has confirmed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from ..brain import Brain
from ..errors import InputError, NotFoundError
from ..filters import Filter
from ..models import Memory
from ..stores.capabilities import AuditLog
from .identity import Repository
from .memory import TeamMemory
from .notes import CURRENT, WAITING, Experience, Note, audience
from .similarity import NoteFeatures, contradiction, says_the_same
from .validation import sound

_KINDS = ("preference", "decision", "codebase", "error_fix")
_NEIGHBOURS = 8
_CLOSE = 0.35  # cosine from which on two memories are compared


class Pair(NamedTuple):
    """Two memories on one subject that contradict each other or say the same; `newer` was learned later."""

    older: Experience
    newer: Experience
    why: str
    is_same: bool = False


def contradictions(team: TeamMemory, repository: Repository | str | None, limit: int = 100) -> list[Pair]:
    """Return pairs that contradict each other, latest first."""
    where = comparable(team, repository)
    return [pair for pair in pairs(team.brain, team.brain.memories(where, limit=None), where) if not pair.is_same][
        :limit
    ]


def comparable(team: TeamMemory, repository: Repository | str | None) -> Filter:
    """Return the filter of memories that are compared with each other."""
    return Filter(type=_KINDS, place=tuple(team.visible(repository)), tags={"state": CURRENT})


def pairs(brain: Brain, memories: Iterable[Memory], where: Filter) -> list[Pair]:
    """Compare each of some memories with its nearest; return pairs, latest first. Commits are compared with what people
    and agents said, not with each other."""
    found: dict[tuple[str, str], Pair] = {}
    for memory in sound(memories):
        if not Experience(memory).is_imported:
            for pair in pairs_of(brain, memory, where):
                found.setdefault((pair.older.id, pair.newer.id), pair)
    return sorted(found.values(), key=lambda match: -match.newer.memory.timestamp)


def pairs_of(brain: Brain, memory: Memory, where: Filter) -> Iterator[Pair]:
    """Return what contradicts a memory or says the same, among its nearest. Two commits do neither: each says what was
    done at its time."""
    vectors = memory.embeddings
    if vectors.full_vector is vectors.compressed_vector is vectors.abstract_vector is None:
        return
    own, is_commit = NoteFeatures.of(memory.text), Experience(memory).is_imported
    hits = brain.recall(memory.text, _NEIGHBOURS, where, mode="vector", vector=vectors.full_vector, touch=False)
    near = [hit.memory for hit in hits if hit.score >= _CLOSE and hit.memory.memory_id != memory.memory_id]
    for other in sound(near):
        if is_commit and Experience(other).is_imported:
            continue
        features = {memory.memory_id: own, other.memory_id: NoteFeatures.of(other.text)}
        first, second = sorted((memory, other), key=lambda note: (note.timestamp, note.memory_id))
        why = contradiction(features[first.memory_id], features[second.memory_id])
        if why is not None:
            yield Pair(Experience(first), Experience(second), why)
        elif says_the_same(own, features[other.memory_id]):
            yield Pair(Experience(first), Experience(second), "both say the same", is_same=True)


def out_of_date(team: TeamMemory, repository: Repository, limit: int = 100) -> list[Experience]:
    """Return memories about files of a repository that are gone or changed a lot. Those of commits are left out: each
    says what was done at its time."""
    said = (one for one in team.recent(repository=repository, limit=10_000) if not one.is_imported)
    return list(islice((one for one in said if team.check_stale(one, repository).stale), limit))


def pending_note(note: Note) -> Note:
    """Return a note that is neither shown nor shared until it is accepted."""
    return replace(note, scope="personal", state=WAITING)


def undecided(team: TeamMemory, limit: int = 100) -> list[Experience]:
    """Return possible rules that wait for confirmation, newest first."""
    where = Filter(place=(audience("personal", None, team.author),), tags={"state": WAITING})
    return [Experience(memory) for memory in team.brain.memories(where, limit=limit)]


def accept(team: TeamMemory, memory_id: str) -> str:
    """Turn a pending note into a rule of its repository; return its new id."""
    experience = next((experience for experience in undecided(team, 10_000) if experience.id == memory_id), None)
    if experience is None:
        raise NotFoundError(memory_id)
    note = replace(_to_note(experience), when=experience.memory.timestamp, scope="repository")
    kept = team.remember(note).memory_id
    team.forget(memory_id)
    return kept


def restore(team: TeamMemory, memory_id: str) -> str:
    """Make a superseded memory hold again instead of its successor; return its id."""
    experience = team.get(memory_id)
    if experience is None:
        raise NotFoundError(memory_id)
    successor = experience.memory.contents.get("superseded_by")
    if successor is None:
        raise InputError(
            f"memory_id must be a memory that was superseded, and {memory_id!r} was not", field="memory_id"
        )
    kept = team.remember(_to_note(experience)).memory_id
    if successor in team.brain.store and successor != kept:
        team.supersede(successor, kept, time.time())
    return kept


def _to_note(experience: Experience) -> Note:
    """Convert a memory back to a note, learned now."""
    return Note(
        experience.text, experience.kind, author=experience.author,
        agent=experience.memory.agent_id, session=experience.memory.session,
        importance=experience.memory.importance, scope=experience.scope, repository=experience.repository,
        branch=experience.memory.contents.get("branch"), commit=experience.commit,
    )  # fmt: skip


def dismiss(team: TeamMemory, memory_id: str, why: str, other: str | None = None) -> None:
    """Record that a finding is not a problem; it is not listed again for the same reason."""
    team.audit("dismiss", [memory_id], why=why, other=other)


def is_dismissed(team: TeamMemory, memory_id: str, why: str | None, other: str | None = None) -> bool:
    """Return whether the audit log has a dismissal of this finding."""
    store = team.brain.store
    if not isinstance(store, AuditLog):
        return False
    dismissals = (entry.detail for entry in store.audit(memory=memory_id) if entry.action == "dismiss")
    return any(detail.get("why") == why and detail.get("other") == other for detail in dismissals)
