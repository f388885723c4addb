"""Exchange and merge the memories of a team. The audit log lists what changed; a memory is sent as a document without
its vector. `merge` joins two versions and gives the same result in any order and however often they arrive. The rules
are those of docs/decisions/0024-merging.md:

- what was learned first keeps its words, unless somebody reworded it; all sources count, files and sources are united
- what somebody superseded stays superseded, from the earliest moment on
- of two scopes the one of the higher version holds
- a removal removes what the remover knew: a memory of a version that is not lower than the removal's stays
- personal memories do not travel

The server decides: members propose (`admission`), and what the server returns replaces what they have."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import checks
from ..brain import Brain
from ..contents import EARLIER
from ..errors import ConfigError, InputError
from ..memory_builder import build_memory, check_argument
from ..models import Memory
from ..stores.base import Edited
from ..stores.capabilities import AuditLog
from .memory import cleaned_for
from .notes import CLAIMED, CURRENT, FOREIGN, KINDS, MOST_SOURCES, SUPERSEDED, is_shared
from .validation import check, repaired_contents, sound
from .versions import (
    CHANGES,
    KEY,
    REMOVED,
    audience_hash,
    history_of,
    removal_of,
    version_of,
)

SYNC = "sync"
_FIELDS = ("id", "text", "kind", "agent", "author", "session", "when", "importance", "place", "contents")
_REGISTERS = ("valid_until", "superseded_by")

Document = dict[str, Any]


@dataclass(slots=True)
class SyncChanges:
    """Memories that changed, removals and the version that each removes, who did it, up to which entry of the log, and
    whether there are more."""

    memories: list[Document] = field(default_factory=list)
    gone: list[Document] = field(default_factory=list)
    by: dict[str, str] = field(default_factory=dict)
    next: int = 0
    more: bool = False


def document(memory: Memory) -> Document:
    """Convert a memory to the document that is sent."""
    return {
        "id": memory.memory_id,
        "text": memory.text,
        "kind": memory.type,
        "agent": memory.agent_id,
        "author": memory.actor,
        "session": memory.session,
        "when": memory.timestamp,
        "importance": memory.importance,
        "place": memory.place,
        "contents": {key: value for key, value in memory.contents.items() if key not in ("text", EARLIER)},
    }


def check_document(data: Mapping[str, Any], *, body: str = "contents") -> Document:
    """Check a received document; InputError names the bad field. `body` is what the caller calls its contents."""
    if not isinstance(data, Mapping):
        raise checks.refuse("memory", "a JSON object", data)
    checks.known_fields("a memory", data, _FIELDS)
    for name in _FIELDS:
        if name not in data:
            raise InputError(f"a memory must have the field {name!r}", field=name)
    place = checks.name("place", data["place"])
    if not is_shared(place):
        raise InputError(f"place must be repo:… or organisation, got {place!r}", field="place")
    contents = checks.json_object(body, data["contents"])
    if "text" in contents:
        raise InputError(f"{body} must not hold the key 'text': the text itself is kept there", field=body)
    check(contents, body=body)
    if contents.get("scope") == "personal":
        raise InputError(f"{body}.scope: a personal memory stays with its author", field=f"{body}.scope")
    return {
        **{name: check_argument(name, data[name]) for name in ("id", "text", "agent", "importance")},
        "kind": checks.one_of("kind", data["kind"], KINDS),
        "author": None if data["author"] is None else check_argument("actor", data["author"], "author"),
        "session": None if data["session"] is None else check_argument("session", data["session"]),
        "when": check_argument("when", checks.number("when", data["when"])),
        "place": place,
        "contents": contents,
    }


def check_removal(data: Any) -> Document:
    """Check a received removal; without a version it removes any version."""
    if not isinstance(data, Mapping):
        raise checks.refuse("gone", "a list of {id, version}", data)
    checks.known_fields("what is gone", data, ("id", KEY, "when"))
    version = data.get(KEY)
    return {
        "id": checks.memory_id("id", data.get("id")),
        KEY: None if version is None else checks.whole(KEY, version, low=1, high=2**53),
    }


# Merging


def merge(left: Document, right: Document) -> Document:
    """Merge two versions of one memory."""
    first, second = sorted((left, right), key=_age)
    mine, theirs = first["contents"], second["contents"]
    contents = {**theirs, **mine}
    if _age(first) == _age(second):  # neither is older: the choice must not depend on who is asked
        for key in mine.keys() & theirs.keys():
            contents[key] = min(mine[key], theirs[key], key=_json_text)
    contents["sources"] = merge_sources((), [*mine.get("sources", ()), *theirs.get("sources", ())])
    contents["count"] = max(len(contents["sources"]), mine.get("count", 1), theirs.get("count", 1))
    contents["sources"] = contents["sources"][-MOST_SOURCES:]
    contents[KEY] = max(version_of(mine), version_of(theirs))
    if files := sorted({*mine.get("files", ()), *theirs.get("files", ())}):
        contents["files"] = files
    ended = min((body for body in (mine, theirs) if "valid_until" in body), key=_end, default=None)
    _take(contents, ended, _REGISTERS)
    worded = min((first, second), key=lambda document: (-document["contents"].get("reworded", 0), _age(document)))
    _take(contents, worded["contents"], ("reworded",))
    shared = max((first, second), key=_choice)
    _take(contents, shared["contents"], ("scope", "shared", "shared_at"))
    return {
        **first,
        "text": worded["text"],
        "place": shared["place"],
        "importance": max(first["importance"], second["importance"]),
        "contents": contents,
    }


def accept(mine: Document, theirs: Document) -> Document:
    """Return the server's version of a memory, plus sources and files that the server does not know yet."""
    both = merge(mine, theirs)["contents"]
    contents = {**theirs["contents"], KEY: both[KEY], "count": both["count"]}
    contents["sources"] = merge_sources(theirs["contents"].get("sources", ()), both["sources"])[-MOST_SOURCES:]
    if "files" in both:
        contents["files"] = both["files"]
    return {**theirs, "contents": contents}


def merge_sources(preferred: Iterable[Mapping[str, Any]], others: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Merge sources, ordered by time. Of two forms of one source, keep the preferred one, else the first in text
    order."""
    found: dict[str, Mapping[str, Any]] = {}
    for source in others:
        key = source_key(source)
        found[key] = min(source, found.get(key, source), key=_json_text)
    found |= {source_key(source): source for source in preferred}
    return [
        dict(entry)
        for entry in sorted(found.values(), key=lambda entry: (float(entry.get("when", 0)), _json_text(entry)))
    ]


def source_key(source: Mapping[str, Any]) -> str:
    """Return the identity of a source. The author is not part of it: a server may know it better."""
    return _json_text([source.get(name) for name in ("agent", "session", "when")])


def _take(contents: dict[str, Any], body: Mapping[str, Any] | None, names: Sequence[str]) -> None:
    """Set fields that belong together to the values of one side."""
    if body is not None:
        for name in names:
            contents.pop(name, None)
        contents |= {name: body[name] for name in names if name in body}


def _choice(sent: Document) -> tuple[int, float, str]:
    """Return the sort key of a scope: its version, then its time for equal versions."""
    body = sent["contents"]
    return body.get("shared", 0), float(body.get("shared_at", 0)), sent["place"]


def _age(sent: Document) -> tuple[float, str]:
    """Return the sort key of when a memory was first learned; ties are broken the same way everywhere."""
    rest = [sent[name] for name in ("text", "kind", "agent", "author", "session", "when")]
    return float(sent["contents"].get("valid_from", sent["when"])), _json_text(rest)


def _end(body: Mapping[str, Any]) -> tuple[float, str]:
    return float(body["valid_until"]), str(body.get("superseded_by", ""))


def _json_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


# What changed


@dataclass(frozen=True, slots=True)
class Receiver:
    """Who asks for changes: the places whose memories they get, and those whose removals concern them."""

    places: Collection[str]
    had: Collection[str]


def changes(
    brain: Brain,
    after: int,
    limit: int = 200,
    *,
    but: Sequence[str] = (),
    only: Callable[[Memory], bool] | None = None,
    receiver: Receiver | None = None,
    member: str | None = None,
) -> SyncChanges:
    """Return what changed after an entry of the audit log, except by the actions `but`, for memories that `only`
    accepts and that concern the `receiver`. Memories of nobody else are attributed to `member`, if given."""
    found = SyncChanges(next=after)
    entries = audit_log(brain).changed_after(after, [action for action in CHANGES if action not in but], limit)
    found.more = len(entries) == limit
    latest: dict[str, str] = {}
    for entry in entries:
        found.next = entry.n
        if entry.memory is not None:
            latest[entry.memory] = entry.who
    for memory_id, who in latest.items():
        memory = brain.get(memory_id)
        if memory is not None and (memory.type not in KINDS or (only is not None and not only(memory))):
            continue
        if memory is not None and is_shared(memory.place) and (receiver is None or memory.place in receiver.places):
            if member is not None and FOREIGN not in memory.tags:
                memory.actor = member
            found.memories += [document(whole) for whole in sound([memory])]
        else:
            version = _removed_version(brain, memory_id, memory, receiver)
            if version is None:
                continue
            found.gone.append({"id": memory_id, KEY: version})
        found.by[memory_id] = who
    return found


def _removed_version(brain: Brain, memory_id: str, memory: Memory | None, receiver: Receiver | None) -> int | None:
    """Return the version that a receiver must remove, of a memory that is gone or no longer shared with them; None if
    they never had it, or the log is too old to say so."""
    history = history_of(brain, memory_id)
    if receiver is not None and not any(audience_hash(place) in history.audiences for place in receiver.had):
        return None
    if memory is not None:
        return version_of(memory.contents) if history.shared else None
    removal = history.removal
    return removal.version if removal is not None and removal.shared else None


def audit_log(brain: Brain) -> AuditLog:
    if not isinstance(brain.store, AuditLog):
        raise ConfigError(f"{brain.store.kind} keeps no audit log, which sharing needs")
    return brain.store


# Applying what a server sends


def apply_document(
    brain: Brain, sent: Document, *, member: str, origin: str, who: str, pending: Collection[str] = ()
) -> bool:
    """Apply the server's document of a memory; return whether something changed. The server does not know the local
    changes of `pending` memories yet."""
    # A removal that the server knows of was decided there; one that it has not heard of yet counts here.
    removal = removal_of(brain, sent["id"]) if sent["id"] in pending else None

    def taken(known: Memory | None) -> Edited | None:
        if known is None:
            if removal is not None and version_of(sent["contents"]) < removal.version:
                return None
            wanted = sent
        elif not is_shared(known.place):
            return None
        else:
            before = document(known)
            before["contents"] = repaired_contents(before["contents"])
            both = merge(before, sent) if sent["id"] in pending else accept(before, sent)
            wanted = {**both, "author": sent["author"]}
            if wanted == document(known):
                return None
        tags = {} if sent["author"] == member else {FOREIGN: origin}
        memory = cleaned_for(brain, memory_of(wanted, known, tags), authors_of(wanted))
        return Edited(memory, who, SYNC, {"origin": origin, KEY: version_of(wanted["contents"])})

    return changed_by(brain, sent["id"], taken)


def apply_removal(brain: Brain, sent: Document, *, origin: str, who: str) -> bool:
    """Remove a memory that the server removed, unless it changed here since; return whether it was removed."""

    def taken(known: Memory | None) -> Edited | None:
        if known is None or not is_shared(known.place):
            return None
        version = sent[KEY] or version_of(known.contents) + 1
        if version_of(known.contents) >= version:
            return None
        return Edited(None, who, SYNC, {"origin": origin, REMOVED: True, KEY: version})

    return changed_by(brain, sent["id"], taken)


def changed_by(brain: Brain, memory_id: str, edit: Callable[[Memory | None], Edited | None]) -> bool:
    """Edit a memory; return whether something changed."""
    done: list[bool] = []

    def record(memory: Memory | None) -> Edited | None:
        edited = edit(memory)
        done[:] = [edited is not None]
        return edited

    brain.edit(memory_id, record)
    return done == [True]


def tags_of(place: str, contents: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of a shared memory: without them neither agents nor the review see it."""
    scope = "organisation" if place == "organisation" else "repository"
    return {"state": SUPERSEDED if "valid_until" in contents else CURRENT, "scope": scope}


def memory_of(sent: Document, known: Memory | None, tags: Mapping[str, str]) -> Memory:
    """Build the memory of a document; keep the vector and the session position of the known one."""
    body = sent["contents"]
    made = build_memory(
        text=sent["text"],
        id=sent["id"],
        agent=sent["agent"],
        type=sent["kind"],
        session=sent["session"],
        actor=sent["author"],
        importance=sent["importance"],
        when=sent["when"],
        place=sent["place"],
        metadata=body,
        tags={
            **({} if known is None else {key: value for key, value in known.tags.items() if key != FOREIGN}),
            **tags_of(sent["place"], body),
            **tags,
        },
    )
    if known is not None:
        made.step_number, made.tier, made.position = known.step_number, known.tier, known.position
        made.bookkeeping.creation_time = known.bookkeeping.creation_time
        made.bookkeeping.compression_level = known.bookkeeping.compression_level
        earlier = known.contents.get(EARLIER) if made.place == known.place else None
        if earlier is not None:
            made.contents[EARLIER] = earlier
        if made.text == known.text:
            made.embeddings = known.embeddings
    return made


def authors_of(sent: Document) -> list[str]:
    """Return the people that a document names."""
    named = [sent["author"]]
    for source in sent["contents"].get("sources", ()):
        named += [source.get("author"), source.get(CLAIMED)]
    return [name for name in dict.fromkeys(named) if name]
