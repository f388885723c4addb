"""From the arguments of `remember` and `update` to a checked memory. Nothing here knows about stores or embedders."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from . import checks
from .errors import InputError, VectorError
from .index.bits import unit
from .models import TIERS, Embeddings, Memory, Metadata

Vector = npt.NDArray[np.float32]

WRITABLE = (
    "text", "agent", "type", "session", "actor", "tags", "importance", "when", "metadata", "step", "position",
    "place", "vector", "id", "tier",
)  # fmt: skip
_WRITABLE_SET = frozenset(WRITABLE)
_CHANGEABLE = [name for name in WRITABLE if name not in ("id", "agent")]
_NEVER_NONE = ("text", "type", "importance", "when", "step", "tier", "vector", "tags", "metadata")


def draft(
    text: object = None,
    agent: object = "default",
    type: object = "memory",
    session: object = None,
    actor: object = None,
    tags: object = None,
    importance: object = 0.5,
    when: object = None,
    metadata: object = None,
    step: object = None,
    position: object = None,
    place: object = None,
    vector: object = None,
    id: object = None,
    tier: object = "stm",
) -> Memory:
    """A checked memory that has no vector yet, nor an id, unless they are given."""
    written = checks.text("text", text)
    own = checks.json_object("metadata", metadata if metadata is not None else {})
    if "text" in own:
        raise InputError("metadata must not hold the key 'text': the text itself is kept there", field="metadata")
    now = time.time()
    return Memory(
        memory_id="" if id is None else checks.memory_id("id", id),
        agent_id=checks.name("agent", agent),
        step_number=-1 if step is None else checks.whole("step", step),
        timestamp=now if when is None else checks.moment("when", when),
        contents={"text": written, **own},
        metadata=Metadata(
            creation_time=now,
            last_access_time=now,
            importance_score=checks.share("importance", importance),
            memory_type=checks.name("type", type),
        ),
        embeddings=Embeddings(full_vector=None if vector is None else given_vector("vector", vector)),
        text=written,
        session=None if session is None else checks.name("session", session),
        actor=None if actor is None else checks.name("actor", actor),
        tags=checks.labels("tags", tags if tags is not None else {}),
        tier=checks.one_of("tier", tier, TIERS),
        position=None if position is None else checks.point("position", position),
        place=None if place is None else checks.name("place", place),
    )


def draft_of(fields: Mapping[str, Any]) -> Memory:
    """The draft with these fields, of which there may be no others than the arguments of `remember`."""
    if not _WRITABLE_SET.issuperset(fields):
        checks.known_fields("a memory to remember", fields, WRITABLE)
    return draft(**fields)


def draft_of_changes(changes: Mapping[str, Any]) -> Memory:
    """A draft that holds what is to be changed in a memory; its other fields mean nothing."""
    checks.known_fields("an update", changes, _CHANGEABLE)
    if not changes:
        raise InputError("an update must change at least one field", field="changes")
    for key in _NEVER_NONE:
        if key in changes and changes[key] is None:
            raise checks.refuse(key, "given a value", None)
    return draft(**{"text": "unchanged", **changes})


def take_changes(memory: Memory, changes: Mapping[str, Any], drafted: Memory) -> None:
    """Change a memory to what was drafted; what a change does not name stays, and the vector goes with the text."""
    if "text" in changes:
        memory.text = drafted.text
        memory.contents = {**memory.contents, "text": drafted.text}
    if "metadata" in changes:
        memory.contents = {**drafted.contents, "text": memory.text}
    if "text" in changes or drafted.embeddings.full_vector is not None:
        memory.embeddings = drafted.embeddings
    if "when" in changes:
        memory.timestamp = drafted.timestamp
    if "step" in changes:
        memory.step_number = drafted.step_number
    if "importance" in changes:
        memory.metadata.importance_score = drafted.importance
    if "type" in changes:
        memory.metadata.memory_type = drafted.type
    for key in ("session", "actor", "tags", "tier", "position", "place"):
        if key in changes:
            setattr(memory, key, getattr(drafted, key))


def given_vector(field: str, value: object) -> Vector:
    """A vector from the caller, of unit length."""
    array = checks.vector(field, value)
    if not array.any():
        raise VectorError(f"{field} must not be all zeros", field=field)
    scaled: Vector = unit(array[None, :])[0]
    return scaled
