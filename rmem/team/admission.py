"""Decide what a server accepts from a member. Authorship comes from the token: a memory belongs to whoever sent it
first. Its author and administrators may change everything about it; other members with the role WRITE may confirm and
supersede it. A refused memory is reported with its reason and does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import checks
from ..brain import Brain
from ..errors import InputError
from ..models import Memory
from ..stores.base import Edited
from .bounds import check_bounds, check_id, check_version
from .exchange import (
    SYNC,
    Document,
    changed_by,
    check_document,
    check_removal,
    document,
    memory_of,
    merge,
    merge_sources,
    source_key,
)
from .notes import CLAIMED, MOST_SOURCES, is_shared
from .validation import repaired_contents
from .versions import FORGET, KEY, REMOVED, audience_detail, removal_of, version_of


@dataclass(slots=True)
class AdmissionResult:
    """How many memories changed; what was refused and why; memories whose stored form differs from what was sent."""

    changed: int = 0
    refused: list[Document] = field(default_factory=list)
    memories: list[Document] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sender:
    """The member that a token belongs to; `repositories` are those that the workspace shares, None for all."""

    member: str
    is_admin: bool = False
    token: str = ""
    repositories: Collection[str] | None = None

    def owns(self, memory: Memory) -> bool:
        return self.is_admin or memory.actor in (None, self.member)

    def edit_by(self, memory: Memory | None, action: str, **detail: Any) -> Edited:
        audience = audience_detail(None if memory is None else memory.place)
        return Edited(memory, self.member, action, {"origin": "sync", "token": self.token, **detail, **audience})


def admit(brain: Brain, memories: Iterable[Any], gone: Iterable[Any], by: Sender) -> AdmissionResult:
    """Apply memories and removals one by one."""
    done = AdmissionResult()
    for item in memories:
        _admit_each(done, item, lambda item=item: _admit_memory(brain, check_document(item), by, done))  # type: ignore[misc]
    for item in gone:
        _admit_each(done, item, lambda item=item: _admit_removal(brain, check_removal(item), by, done))  # type: ignore[misc]
    return done


def _admit_each(done: AdmissionResult, item: Any, admit: Callable[[], bool]) -> None:
    try:
        done.changed += admit()
    except InputError as error:
        done.refused.append({"id": _id_in(item), "field": error.field, "error": str(error)})


def _id_in(item: Any) -> str | None:
    """Return the id of a refused memory, if it has one."""
    try:
        return checks.memory_id("id", item.get("id")) if isinstance(item, Mapping) else None
    except InputError:
        return None


def _admit_memory(brain: Brain, sent: Document, by: Sender, done: AdmissionResult) -> bool:
    removal = removal_of(brain, sent["id"])
    kept: list[Document | None] = [None]
    _check_place(sent["place"], by)

    def taken(known: Memory | None) -> Edited | None:
        kept[0] = None
        before = (0 if removal is None else removal.version) if known is None else version_of(known.contents)
        check_bounds(sent, before)
        if known is None:
            check_id(sent["id"])
            if removal is None and sent["author"] not in (None, by.member):
                raise _not_yours("author", sent["author"], by)
            if removal is not None and version_of(sent["contents"]) < removal.version:
                return None  # the next pull tells them that it is gone
            wanted = {**sent, "author": by.member, "contents": _attribute_sources(sent["contents"], (), by)}
        elif not is_shared(known.place):
            raise InputError(f"there is a memory {sent['id']!r} already, which is not shared", field="id")
        else:
            if sent["author"] not in (None, by.member, known.actor):
                raise _not_yours("author", sent["author"], by)
            wanted = _merge_sent(document(known), sent, by, owned=by.owns(known))
        kept[0] = wanted
        if known is not None and wanted == document(known):
            return None
        memory = memory_of(wanted, known, {})
        return by.edit_by(memory, SYNC, **{KEY: version_of(wanted["contents"])})

    changed = changed_by(brain, sent["id"], taken)
    if kept[0] is not None and kept[0] != sent:
        done.memories.append(kept[0])
    return changed


def _merge_sent(known: Document, sent: Document, by: Sender, *, owned: bool) -> Document:
    """Merge a sent document into the known one: all of it if the sender owns it, else only that they learned it too and
    what supersedes it."""
    known = {**known, "contents": repaired_contents(known["contents"])}
    old = known["contents"].get("sources", ())
    brought = {**sent, "author": known["author"], "contents": _attribute_sources(sent["contents"], old, by)}
    both = merge(known, brought)
    body = {**(both if owned else known)["contents"]}
    for name in ("count", "files", KEY, "valid_until", "superseded_by"):
        if name in both["contents"]:
            body[name] = both["contents"][name]
    body["sources"] = merge_sources(old, both["contents"]["sources"])[-MOST_SOURCES:]
    return {**(both if owned else known), "author": known["author"], "contents": body}


def _attribute_sources(contents: Mapping[str, Any], known: Iterable[Mapping[str, Any]], by: Sender) -> dict[str, Any]:
    """Keep known sources as they are, and attribute new ones to the sender, whomever they name."""
    old = {source_key(source): source for source in known}
    sources = []
    for source in contents.get("sources", ()):
        claimed = source.get(CLAIMED) or source.get("author")
        own = {**source, "author": by.member} | ({CLAIMED: claimed} if claimed and claimed != by.member else {})
        sources.append(old.get(source_key(source), own))
    return {**contents, "sources": sources}


def _admit_removal(brain: Brain, sent: Document, by: Sender, done: AdmissionResult) -> bool:
    refused: list[InputError | None] = [None]

    def taken(known: Memory | None) -> Edited | None:
        refused[0] = None
        if known is None or not is_shared(known.place):
            return None
        version = version_of(known.contents)
        removed = sent[KEY] or version + 1
        check_version(KEY, removed, version)
        if by.owns(known) and version < removed:
            return by.edit_by(None, FORGET, **{REMOVED: True, KEY: removed}, **audience_detail(known.place))
        if not by.owns(known):
            refused[0] = _not_yours("id", known.actor or "", by)
        # The member who removed it gets it back: a version that is not lower than the removal's stays.
        known.contents = {**known.contents, KEY: max(version, removed)}
        return by.edit_by(known, SYNC, **{KEY: max(version, removed)})

    changed = changed_by(brain, sent["id"], taken)
    if refused[0] is not None:
        done.refused.append({"id": sent["id"], "field": "id", "error": str(refused[0])})
    return changed


def _check_place(place: str, by: Sender) -> None:
    repository = place.removeprefix("repo:")
    if by.repositories is not None and place.startswith("repo:") and repository not in by.repositories:
        raise InputError(f"place: this workspace does not share the repository {repository!r}", field="place")


def _not_yours(field: str, author: str, by: Sender) -> InputError:
    return InputError(
        f"{field}: this is a memory of {author!r}, and the token is of {by.member!r}; only its author and "
        "administrators may do this",
        field=field,
    )
