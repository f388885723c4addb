"""The version of a memory: a count of the changes that led to it, which every change raises by one and a merge takes
the higher of. Versions say what was known when somebody removed a memory; clocks do not
(docs/decisions/0020-merging.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..brain import Brain
from ..stores.sql.audit import AuditEntry
from ..stores.sql.records import SqlRecords

KEY = "version"
FORGET = "forget"
CHANGES = ("remember", "learn again", "supersede", "share", FORGET, "sync", "withdraw")
"""The actions of the audit log that change what others see."""
_OVER = "grace period over"  # a forgetting policy of this store chose it; the team did not


class Removal(NamedTuple):
    """That a memory was removed: memories with its id and a lower version are gone."""

    version: int
    shared: bool
    """Whether others may have had it."""


def version_of(contents: Mapping[str, Any]) -> int:
    """The version of a memory; those of before there were versions count how often they were learned."""
    found = contents.get(KEY, contents.get("count", 1))
    return found if isinstance(found, int) and found > 0 else 1


def removal_of(brain: Brain, memory_id: str, *, until: int | None = None) -> Removal | None:
    """The last removal of a memory (until an entry of the audit log); None if it was not removed."""
    if not isinstance(brain.store, SqlRecords):
        return None
    before = None if until is None else until + 1
    return _removal(brain.store.audit(memory=memory_id, before=before))


def _removal(newest_first: list[AuditEntry]) -> Removal | None:
    version, shared, last = 0, False, None
    for entry in reversed(newest_first):
        told = entry.detail.get(KEY)
        if entry.action in (FORGET, "withdraw"):
            if entry.detail.get("reason") == _OVER:
                continue
            version = told if isinstance(told, int) else version + 1
            last = Removal(version, shared)
        elif entry.action in CHANGES:
            version = max(version, told) if isinstance(told, int) else version + 1
            shared |= entry.action == "sync" or entry.detail.get("scope", "repository") != "personal"
    return last
