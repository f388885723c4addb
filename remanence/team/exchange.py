"""What two memories of one team tell each other, and how they agree. The audit log is the list of what changed; a
memory travels as a document without its vector, and meets its counterpart by `merged`, which gives the same result in
whatever order and however often things arrive:

- what was learned first keeps its words; all sources count, files and sources are united
- what somebody superseded stays superseded, from the earliest moment on
- of two scopes the one chosen last holds
- what was forgotten goes, unless it was learned again after that
- personal memories do not travel"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import checks, config
from ..brain import Brain
from ..errors import ConfigError, InputError
from ..models import Memory
from ..stores.sql.records import SqlRecords
from .notes import CURRENT, KINDS, SUPERSEDED

CHANGES = ("remember", "learn again", "supersede", "share", "forget", "sync")
_FIELDS = ("id", "text", "kind", "agent", "author", "session", "when", "importance", "place", "contents")
_SOURCES = 50
_ON_ITS_WAY = 60.0  # seconds that a memory may come after its entry in the log
_PERSONAL = "personal:"

Document = dict[str, Any]


@dataclass(slots=True)
class Changes:
    """Memories that changed, those that went and when, up to which entry of the log, and whether there are more."""

    memories: list[Document] = field(default_factory=list)
    gone: list[Document] = field(default_factory=list)
    next: int = 0
    more: bool = False


def document(memory: Memory) -> Document:
    """A memory as it travels."""
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
        "contents": {key: value for key, value in memory.contents.items() if key != "text"},
    }


def checked(data: Mapping[str, Any]) -> Document:
    """A document that came from elsewhere, or an InputError that names the field."""
    if not isinstance(data, Mapping):
        raise checks.refuse("memory", "a JSON object", data)
    checks.known_fields("a memory", data, _FIELDS)
    for name in _FIELDS:
        if name not in data:
            raise InputError(f"a memory must have the field {name!r}", field=name)
    place = checks.name("place", data["place"])
    if not place.startswith(("repo:", "organisation")):
        raise InputError(f"place must be a repository or the organisation, got {place!r}", field="place")
    contents = checks.json_object("contents", data["contents"])
    if not isinstance(contents.get("sources", []), list):
        raise checks.refuse("contents.sources", "a list", contents["sources"])
    return {
        "id": checks.memory_id("id", data["id"]),
        "text": checks.text("text", data["text"]),
        "kind": checks.one_of("kind", data["kind"], KINDS),
        "agent": checks.name("agent", data["agent"]),
        "author": None if data["author"] is None else checks.name("author", data["author"]),
        "session": None if data["session"] is None else checks.name("session", data["session"]),
        "when": checks.moment("when", data["when"]),
        "importance": checks.share("importance", data["importance"]),
        "place": place,
        "contents": contents,
    }


def merged(one: Document, other: Document) -> Document:
    """Two versions of one memory as one."""
    first, second = sorted((one, other), key=_age)
    mine, theirs = first["contents"], second["contents"]
    contents = {**theirs, **mine}
    if _age(first) == _age(second):  # neither is older: the choice must not depend on who is asked
        for key in mine.keys() & theirs.keys():
            contents[key] = min(mine[key], theirs[key], key=lambda value: json.dumps(value, sort_keys=True))
    sources = {
        json.dumps(told, sort_keys=True): told for told in [*theirs.get("sources", ()), *mine.get("sources", ())]
    }
    ordered = sorted(sources.items(), key=lambda pair: (float(pair[1].get("when", 0)), pair[0]))
    contents["sources"] = [told for _, told in ordered][-_SOURCES:]
    contents["count"] = max(len(ordered), int(mine.get("count", 1)), int(theirs.get("count", 1)))
    if files := sorted({*mine.get("files", ()), *theirs.get("files", ())}):
        contents["files"] = files
    ended = min((body for body in (mine, theirs) if "valid_until" in body), key=_end, default=None)
    if ended is not None:
        contents |= {key: ended[key] for key in ("valid_until", "superseded_by") if key in ended}
    shared = max((first, second), key=lambda told: (float(told["contents"].get("shared_at", 0)), told["place"]))
    if "scope" in shared["contents"]:
        contents["scope"] = shared["contents"]["scope"]
    if "shared_at" in shared["contents"]:
        contents["shared_at"] = shared["contents"]["shared_at"]
    importance = max(first["importance"], second["importance"])
    return {**first, "place": shared["place"], "importance": importance, "contents": contents}


def _age(told: Document) -> tuple[float, str]:
    """When it was learned first; of two that were learned at the same moment always the same is the older."""
    rest = [told[name] for name in ("text", "kind", "agent", "author", "session", "when")]
    return float(told["contents"].get("valid_from", told["when"])), json.dumps(rest)


def _end(body: Mapping[str, Any]) -> tuple[float, str]:
    return float(body["valid_until"]), str(body.get("superseded_by", ""))


def changes(
    brain: Brain, after: int, limit: int = 200, *, but: Sequence[str] = (), only: Callable[[Memory], bool] | None = None
) -> Changes:
    """What changed behind an entry of the audit log, by other actions than some, of the memories that `only` lets
    through."""
    found = Changes(next=after)
    entries = _log(brain).changed_after(after, [action for action in CHANGES if action not in but], limit)
    found.more = len(entries) == limit
    told: dict[str, Document] = {}
    for number, when, action, memory_id in entries:
        memory = brain.get(memory_id) if memory_id else None
        if memory is None and memory_id and action != "forget" and time.time() - when < _ON_ITS_WAY:
            found.more = False
            break  # it is being written; the next look finds it
        found.next = number
        if memory is not None and only is not None and not only(memory):
            continue
        if memory is not None and memory.type in KINDS and not _is_personal(memory):
            told[memory.memory_id] = document(memory)
        elif memory_id and (action == "forget" or (memory is not None and "shared_at" in memory.contents)):
            told[memory_id] = {"id": memory_id, "when": when}  # forgotten, or no longer shared
    for one in told.values():
        (found.memories if "text" in one else found.gone).append(one)
    return found


def _is_personal(memory: Memory) -> bool:
    return (memory.place or _PERSONAL).startswith(_PERSONAL)


def apply(brain: Brain, memories: Iterable[Document], gone: Iterable[Mapping[str, Any]], *, who: str) -> int:
    """Take in what another memory told; how many of ours changed."""
    changed = 0
    for told in memories:
        changed += _take_in(brain, told, who)
    for one in gone:
        memory = brain.get(str(one["id"]))
        if memory is not None and not _is_personal(memory) and _last_learned(memory) <= float(one["when"]):
            with config.acting(who):
                changed += bool(brain.forget(memory.memory_id))
    return changed


def _take_in(brain: Brain, told: Document, who: str) -> bool:
    known = brain.get(told["id"])
    wanted = told if known is None else merged(document(known), told)
    if known is not None and wanted == document(known):
        return False
    brain.store.record(who, "sync", [told["id"]])
    body = wanted["contents"]
    fields = {
        "type": wanted["kind"],
        "session": wanted["session"],
        "actor": wanted["author"],
        "importance": wanted["importance"],
        "when": wanted["when"],
        "place": wanted["place"],
        "metadata": body,
        "tags": {
            "state": SUPERSEDED if "valid_until" in body else CURRENT,
            "scope": str(body.get("scope", "repository")),
        },
    }
    if known is None:
        brain.remember(wanted["text"], id=wanted["id"], agent=wanted["agent"], **fields)
        return True
    if wanted["text"] != known.text:
        fields["text"] = wanted["text"]
    brain.update(wanted["id"], **fields)
    return True


def _last_learned(memory: Memory) -> float:
    sources = memory.contents.get("sources", ())
    return max((float(told.get("when", 0)) for told in sources), default=memory.timestamp)


def _log(brain: Brain) -> SqlRecords:
    if not isinstance(brain.store, SqlRecords):
        raise ConfigError(f"{type(brain.store).__name__} keeps no audit log, which sharing needs")
    return brain.store
