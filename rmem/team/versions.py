"""The version of a memory: a counter that every change raises by one; a merge takes the higher one. A removal names the
version it knew, because clocks cannot be trusted (docs/decisions/0024-merging.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..brain import Brain
from ..stores.capabilities import AuditLog

KEY = "version"
FORGET = "forget"
REMOVED = "removed"
"""The field of an entry of the audit log that says that a memory went."""
CHANGES = ("remember", "learn again", "reword", "supersede", "share", FORGET, "sync")
"""The actions of the audit log that change what others see."""
_FADED = ("faded", "grace period over")  # a forgetting policy of this store chose it; the team did not


class Removal(NamedTuple):
    """A removal: memories with its id and a lower version are gone."""

    version: int
    shared: bool
    """Whether others may have had it."""


def version_of(contents: Mapping[str, Any]) -> int:
    """Return the version of a memory; without one, how often it was learned."""
    found = contents.get(KEY, contents.get("count", 1))
    return found if isinstance(found, int) and found > 0 else 1


def removal_of(brain: Brain, memory_id: str) -> Removal | None:
    """Return the last removal of a memory in the audit log, or None."""
    return _history(brain, memory_id)[0]


def was_shared(brain: Brain, memory_id: str) -> bool:
    """Return whether others may have, or may have had, a memory."""
    return _history(brain, memory_id)[1]


def _history(brain: Brain, memory_id: str) -> tuple[Removal | None, bool]:
    version, shared, last = 0, False, None
    if not isinstance(brain.store, AuditLog):
        return None, True
    for entry in reversed(brain.store.audit(memory=memory_id)):
        recorded = entry.detail.get(KEY)
        if entry.action == FORGET or entry.detail.get(REMOVED):
            if entry.detail.get("reason") not in _FADED:
                version = max(version, recorded) if isinstance(recorded, int) else version + 1
                last = Removal(version, shared)
        elif entry.action in CHANGES:
            version = max(version, recorded) if isinstance(recorded, int) else version + 1
            shared |= entry.action == "sync" or entry.detail.get("scope", "personal") != "personal"
    return last, shared
