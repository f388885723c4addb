"""Who may see and change a memory, on every route. Personal memories are visible to their author alone. Shared ones
(whose place is a repository or the organisation) are visible to all; only their author and administrators change or
remove them. Memories with other places, or none, belong to the workspace."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from fastapi import HTTPException

from ..agents.entries import MemoryEntry
from ..filters import Filter
from ..memory_builder import apply_changes, build_changes, build_memory_of
from ..models import Memory
from ..stores.base import StoreStats
from ..team.bounds import check_bounds
from ..team.exchange import check_document, document, tags_of
from ..team.notes import KINDS, is_shared
from ..team.versions import version_of
from .access import Access, Role

_PERSONAL = "personal:"
_SCOPE = {"scope": "personal"}
_SENT = {"text", "type", "when", "place", "metadata"}  # what a change of makes another memory for members of a team


def is_visible(access: Access, place: str | None) -> bool:
    """Whether the caller may see a memory with this place."""
    if access.service.settings.own_store is not None:
        return True
    return place is None or not place.startswith(_PERSONAL) or place == f"{_PERSONAL}{access.member}"


def may_change(access: Access, memory: Memory) -> bool:
    return access.role >= Role.ADMIN or not is_shared(memory.place) or memory.actor in (None, access.member)


def check_change(access: Access, memory: Memory) -> None:
    """Refuse to change or remove another member's memory."""
    if not is_visible(access, memory.place):
        raise HTTPException(404, f"there is no memory {memory.memory_id!r}")
    if not may_change(access, memory):
        raise HTTPException(
            403,
            f"this is a memory of {memory.actor!r}; only its author and administrators may change or remove it",
        )


def check_place(access: Access, place: str) -> None:
    """Refuse to write into a colleague's personal place."""
    if not is_visible(access, place):
        raise HTTPException(403, f"place: personal memories of others than {access.member!r} cannot be written")


def check_new(access: Access, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a memory to remember, with its author; refuse one in another member's name, one that would
    replace another member's memory, and one that is beyond the bounds."""
    given, known = _check_owner(access, fields)
    place = given.get("place")
    if given.get("type") in KINDS and isinstance(place, str) and is_shared(place):
        memory = build_memory_of(given)
        _check_bounds(memory, known, "metadata")
        given["tags"] = {**tags_of(place, memory.contents), **memory.tags}
    return given


def _check_owner(access: Access, fields: Mapping[str, Any]) -> tuple[dict[str, Any], Memory | None]:
    """Return the fields of a memory with its author, and the memory that it would replace."""
    given, place = dict(fields), fields.get("place")
    if place is None and isinstance(tags := fields.get("tags"), Mapping) and tags.get("scope") == "personal":
        given["place"] = place = f"{_PERSONAL}{access.member}"
    if isinstance(place, str):
        check_place(access, place)
        if is_shared(place) or place.startswith(_PERSONAL):
            if given.setdefault("actor", access.member) not in (None, access.member):
                raise HTTPException(
                    403, f"actor: the author of this memory is {access.member!r}, as the token says; leave it out"
                )
            given["actor"] = access.member
    known = access.brain.get(given["id"]) if isinstance(given.get("id"), str) and given["id"] else None
    if known is not None:
        check_change(access, known)
    return given, known


def _check_bounds(memory: Memory, known: Memory | None, body: str) -> None:
    """Refuse a memory of the team that is beyond what members are sent."""
    sent = check_document({**document(memory), "id": memory.memory_id or "new"}, body=body)
    check_bounds(sent, 0 if known is None else version_of(known.contents), body=body)


def check_fields(access: Access, memory: Memory, changes: Mapping[str, Any]) -> None:
    """Refuse a change that would give a memory another author, or make it somebody else's personal one."""
    check_change(access, memory)
    place, actor = changes.get("place", memory.place), changes.get("actor", memory.actor)
    if isinstance(place, str):
        check_place(access, place)
    shared = is_shared(memory.place) or (isinstance(place, str) and (is_shared(place) or place.startswith(_PERSONAL)))
    if shared and "actor" in changes and actor != memory.actor and actor != access.member:
        raise HTTPException(403, "actor: the author of a shared memory cannot be changed")
    if _SENT & changes.keys():
        changed = memory.copied()
        changed.bookkeeping = copy(memory.bookkeeping)
        apply_changes(changed, changes, build_changes(changes))
        if changed.type in KINDS and is_shared(changed.place):
            _check_bounds(changed, memory, "metadata")


def visible_lines(access: Access, lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of an export, several at a time, without others' personal memories."""
    for several in lines:
        if _PERSONAL.encode() not in several:
            yield several
            continue
        whole = several.split(b"\n")
        yield b"\n".join(line for line in whole if not line or is_visible(access, json.loads(line).get("place")))


def check_lines(access: Access, lines: Iterable[bytes]) -> None:
    """Refuse an import that changes others' memories, or is in their name. Lines that cannot be read are left to the
    import itself, which says what is wrong with them."""
    if access.role >= Role.ADMIN:
        return
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            named = {name: record[name] for name in ("place", "actor") if record.get(name) is not None}
            _check_owner(access, {**named, "id": record.get("memory_id")})


def imported_memory(access: Access, record: Mapping[str, Any]) -> Memory:
    """Return the memory of a line of an export; refuse one that is beyond the bounds."""
    memory = Memory.from_dict(record)
    if memory.type in KINDS and is_shared(memory.place):
        _check_bounds(memory, access.brain.get(memory.memory_id), "contents")
    return memory


def hidden(access: Access, where: Filter) -> list[Memory]:
    """Return the memories that match a filter but that the caller may not see: those with the tag of personal ones,
    which team memories have, also of members who left; and those in the places of other members."""
    fields, found = where.to_dict(), dict[str, Memory]()
    tags = fields.get("tags", {})
    places = _places_of_others(access)
    if "place" in fields:
        places &= set(fields["place"])
    if tags.get("scope", "personal") == "personal":
        tagged = access.brain.store.select(Filter.of({**fields, "tags": {**tags, **_SCOPE}}))
        found |= {memory.memory_id: memory for memory in tagged}
    if places:
        there = access.brain.store.select(Filter.of({**fields, "place": sorted(places)}))
        found |= {memory.memory_id: memory for memory in there}
    return [memory for memory in found.values() if not is_visible(access, memory.place)]


def visible_stats(access: Access) -> StoreStats:
    """Return the statistics of the store, with its counts less the memories that the caller may not see. Sizes, words
    and the span of time are those of the whole store."""
    stats, others = access.brain.store.stats(), hidden(access, Filter())
    if not others:
        return stats
    spaces = Counter((memory.agent_id, memory.session) for memory in others if memory.session is not None)
    gone = sum(
        access.brain.store.count(Filter(agent=(agent,), session=(session,))) == number
        for (agent, session), number in spaces.items()
    )
    return replace(
        stats,
        memories=stats.memories - len(others),
        by_agent=_less(stats.by_agent, (memory.agent_id for memory in others)),
        by_type=_less(stats.by_type, (memory.type for memory in others)),
        by_tier=_less(stats.by_tier, (memory.tier for memory in others)),
        sessions=stats.sessions - gone,
        vectors=stats.vectors - sum(memory.embeddings.full_vector is not None for memory in others),
    )


def _less(counts: Mapping[str, int], gone: Iterable[str]) -> dict[str, int]:
    rest = Counter(counts)
    rest.subtract(gone)
    return {name: number for name, number in rest.items() if number > 0}


def _places_of_others(access: Access) -> set[str]:
    members = access.service.control.all_members(access.org, access.workspace_id)
    return {f"{_PERSONAL}{member}" for member in members if member != access.member}


def visible(access: Access, memories: Iterable[Memory]) -> list[Memory]:
    return [memory for memory in memories if is_visible(access, memory.place)]


def is_known(access: Access, memory_id: str) -> bool:
    """Whether the caller may see the memory with this id."""
    memory = access.brain.get(memory_id)
    return memory is None or is_visible(access, memory.place)


def known_entries(access: Access, entries: Iterable[MemoryEntry]) -> list[MemoryEntry]:
    """Entries of an agent's memory without those of others' personal memories."""
    return [entry for entry in entries if is_visible(access, entry.place)]
