"""The activity feed of a workspace: what is written, recalled and injected into agents."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from ...filters import Filter
from ...stores.capabilities import AuditLog
from .. import documents
from ..access import Reader, Role
from ..bodies import Document
from ..json_router import JsonRouter
from ..ownership import is_visible, visible
from .answers import RUNNING

router = JsonRouter(prefix="/workspaces/{workspace}", tags=["memories"], responses=RUNNING)
_MOST = 100
_SHOWN = 200  # characters of a memory


@router.json("GET", "/activity", documents.ActivityAnswer, "What happened since a moment, newest first")
def activity(access: Reader, since: Annotated[float, Query(ge=0, description="Seconds since the epoch.")]) -> Document:
    """Lists new memories that the caller may see; entries of the audit log (administrators see all, others their own);
    and, for administrators, recalls that this server answered."""
    brain, found, written = access.brain, list[Document](), set[str]()
    is_admin = access.role >= Role.ADMIN
    if isinstance(brain.store, AuditLog):
        for entry in brain.store.audit(since=since, limit=_MOST):
            memory = None if entry.memory is None else brain.get(entry.memory)
            if (is_admin or entry.who == access.member) and (memory is None or is_visible(access, memory.place)):
                text = "" if memory is None else memory.text[:_SHOWN]
                found.append(_entry(entry.time, entry.action, entry.who, text, entry.memory))
                written |= {entry.memory} if entry.memory and entry.action == "remember" else set()
    for memory in visible(access, brain.memories(Filter(since=since), limit=_MOST)):
        if memory.memory_id not in written:
            who, text = memory.actor or memory.agent_id, memory.text[:_SHOWN]
            found.append(_entry(memory.timestamp, "remember", who, text, memory.memory_id))
    if is_admin:
        found += [
            _entry(recall.asked, "recall", "", recall.question[:_SHOWN], None)
            for recall in brain.last_recalls(_MOST)
            if recall.asked >= since
        ]
    found.sort(key=lambda entry: -entry["time"])
    return {"entries": found[:_MOST]}


def _entry(when: float, action: str, who: str, text: str, memory_id: str | None) -> Document:
    return {"time": when, "action": action, "who": who, "text": text, "memory_id": memory_id}
