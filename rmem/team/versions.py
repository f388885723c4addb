"""The version of a memory: a counter that every change raises by one; a merge takes the higher one. A removal names the
version it knew, because clocks cannot be trusted (docs/decisions/0024-merging.md)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from ..brain import Brain
from ..stores.capabilities import AuditLog
from .notes import is_shared

KEY = "version"
FORGET = "forget"
REMOVED = "removed"
"""The field of an entry of the audit log that says that a memory went."""
CHANGES = ("remember", "learn again", "reword", "supersede", "share", FORGET, "sync")
"""The actions of the audit log that change what others see."""
_AUDIENCE = "audience"
_FADED = ("faded", "grace period over")  # a forgetting policy of this store chose it; the team did not


class Removal(NamedTuple):
    """A removal: memories with its id and a lower version are gone."""

    version: int
    shared: bool
    """Whether others may have had it."""


class History(NamedTuple):
    """What the audit log says of a memory: its last removal, whether others may have, or may have had, it, and the
    `audience_hash` of all places with which it was shared; older entries do not name them."""

    removal: Removal | None
    shared: bool
    audiences: frozenset[str]


def version_of(contents: Mapping[str, Any]) -> int:
    """Return the version of a memory; without one, how often it was learned."""
    found = contents.get(KEY, contents.get("count", 1))
    return found if isinstance(found, int) and found > 0 else 1


def removal_of(brain: Brain, memory_id: str) -> Removal | None:
    """Return the last removal of a memory in the audit log, or None."""
    return history_of(brain, memory_id).removal


def audience_hash(place: str) -> str:
    """Return what stands for a shared place in the audit log, which holds no names of repositories."""
    return blake2b(place.encode(), digest_size=8).hexdigest()


def audience_detail(place: str | None) -> dict[str, str]:
    """Return what the log's entry of a change says of whom the memory is shared with."""
    return {_AUDIENCE: audience_hash(place)} if place is not None and is_shared(place) else {}


def history_of(brain: Brain, memory_id: str) -> History:
    version, shared, last = 0, False, None
    audiences: set[str] = set()
    if not isinstance(brain.store, AuditLog):
        return History(None, True, frozenset())
    for entry in reversed(brain.store.audit(memory=memory_id)):
        recorded = entry.detail.get(KEY)
        if isinstance(seen := entry.detail.get(_AUDIENCE), str):
            audiences.add(seen)
        if entry.action == FORGET or entry.detail.get(REMOVED):
            if entry.detail.get("reason") not in _FADED:
                version = max(version, recorded) if isinstance(recorded, int) else version + 1
                last = Removal(version, shared)
        elif entry.action in CHANGES:
            version = max(version, recorded) if isinstance(recorded, int) else version + 1
            shared |= entry.action == "sync" or entry.detail.get("scope", "personal") != "personal"
    return History(last, shared, frozenset(audiences))
