"""Connections of a memory: its versions, duplicates and contradictions, what stands around it in its session, and facts
that would be lost with it."""

from __future__ import annotations

import math
from dataclasses import replace

from ...filters import Filter
from ...graph.model import Fact
from ...models import Memory
from ...team.review import pairs_of
from .. import documents
from ..access import Access, Reader
from ..bodies import Document, memory_document
from ..json_router import JsonRouter
from ..ownership import is_visible, visible
from .answers import RUNNING
from .graph import graph_of
from .memories import held

router = JsonRouter(prefix="/workspaces/{workspace}", tags=["memories"], responses=RUNNING)
_EXPLAINED, _VERSIONS = 50, 50
_AROUND, _SAME_TIME = 4, 1000  # neighbours on each side; memories of one time among which they are looked for


@router.json(
    "GET",
    "/connections/{memory_id:path}",
    documents.ConnectionsAnswer,
    "Versions of a memory, its session, its duplicates and contradictions, and the facts that only it states",
)
def connections(access: Reader, memory_id: str) -> Document:
    """`versions` are memories that superseded one another, `earlier` the texts of this one before edits, both oldest
    first. `around` is this memory between its neighbours in the session; those of one time are in the order in which
    they were remembered. `lost` are facts that no other memory states."""
    memory, graph = held(access, memory_id), graph_of(access)
    pairs = []
    for pair in pairs_of(access.brain, memory, Filter()):
        other = pair.newer.memory if pair.older.id == memory_id else pair.older.memory
        if is_visible(access, other.place):
            pairs.append({"memory": memory_document(other), "why": pair.why, "is_same": pair.is_same})
    versions = [*_before(access, memory, {memory_id}), memory, *_after(access, memory, {memory_id})]
    facts = graph.of_memory(memory_id)[:_EXPLAINED]
    return {
        "versions": [memory_document(version) for version in versions] if len(versions) > 1 else [],
        "earlier": [text._asdict() for text in memory.earlier],
        "pairs": pairs,
        "around": [memory_document(near) for near in _around(access, memory)],
        "lost": [_said(fact) for fact in facts if not graph.explain(fact).same],
    }


def _before(access: Access, memory: Memory, seen: set[str]) -> list[Memory]:
    """What a memory superseded, and what that superseded, the oldest first."""
    found = access.brain.memories(
        Filter(attributes={"superseded_by": memory.memory_id}), order="oldest", limit=_VERSIONS
    )
    chain: list[Memory] = []
    for version in visible(access, found):
        if version.memory_id not in seen and len(seen) < _VERSIONS:
            seen.add(version.memory_id)
            chain += [*_before(access, version, seen), version]
    return chain


def _after(access: Access, memory: Memory, seen: set[str]) -> list[Memory]:
    """What superseded a memory, and so on."""
    key = memory.contents.get("superseded_by")
    other = access.brain.get(key) if isinstance(key, str) and key not in seen and len(seen) < _VERSIONS else None
    if other is None or not is_visible(access, other.place):
        return []
    return [other, *_after(access, other, {*seen, other.memory_id})]


def _around(access: Access, memory: Memory) -> list[Memory]:
    """The memory between its neighbours in the session; nothing without a session."""
    if memory.session is None:
        return []
    store, when = access.brain.store, memory.timestamp
    inside = Filter(agent=(memory.agent_id,), session=(memory.session,))
    before = replace(inside, until=math.nextafter(when, -math.inf))
    after = replace(inside, since=math.nextafter(when, math.inf))
    found = [
        *reversed(store.select(before, order="newest", limit=_AROUND)),
        *store.select(replace(inside, since=when, until=when), order="oldest", limit=_SAME_TIME),
        *store.select(after, order="oldest", limit=_AROUND),
    ]
    at = next((at for at, near in enumerate(found) if near.memory_id == memory.memory_id), None)
    return [] if at is None else list(visible(access, found[max(0, at - _AROUND) : at + _AROUND + 1]))


def _said(fact: Fact) -> str:
    return f"{fact.subject} – {fact.relation} – {fact.object}"
