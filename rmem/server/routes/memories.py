"""Memories over HTTP: remember, recall, list, get, update, forget, restore."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Annotated, Any, Literal

from fastapi import HTTPException, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from ... import checks, config
from ...errors import InputError, NotFoundError
from ...filters import Filter
from ...models import Memory
from ...team.memory import TeamMemory
from ...team.notes import KINDS, is_shared
from ...team.versions import audience_detail
from .. import documents, forms
from ..access import Access, Reader, Role, Writer
from ..bodies import (
    MOST_AT_ONCE,
    Document,
    cursor_of,
    fields_of,
    is_among,
    memory_document,
    parse_json,
    parts_of,
    tag_of,
)
from ..exchange import body_schema, json_response, tagged_response
from ..json_router import JsonRouter
from ..ownership import (
    check_change,
    check_fields,
    check_new,
    hidden,
    is_visible,
    may_change,
    visible,
    visible_stats,
)
from ..recalls import local_recall
from .answers import RUNNING, Error

router = JsonRouter(prefix="/workspaces/{workspace}", tags=["memories"], responses=RUNNING)

_BOUNDS = {
    "newest": "until",
    "oldest": "since",
    "importance": "max_importance",
    "step": "min_step",
    "last step": "max_step",
}
_SORTED: dict[str, Callable[[Memory], float]] = {
    "newest": lambda memory: memory.timestamp,
    "oldest": lambda memory: memory.timestamp,
    "importance": lambda memory: memory.importance,
    "step": lambda memory: memory.step_number,
    "last step": lambda memory: memory.step_number,
}
_REMEMBERED = list(forms.RememberForm.model_fields)


# Recalling, which is asked most and so is matched first


@router.post(
    "/recall",
    response_model=documents.RecallAnswer,
    openapi_extra=body_schema(forms.RecallForm),
    summary="Recall the memories that best answer a question",
)
async def recall(request: Request, access: Reader) -> Response:
    """Best first. `score_kind` says what the scores are: `fused` (hybrid), `bm25` (lexical) or `cosine` (vector).
    The `recall_id` is for feedback."""
    body = await request.body()
    return Response(await access.read(local_recall, access, body), media_type="application/json")


# Writing


@router.post(
    "/memories",
    status_code=201,
    response_model=documents.IdsAnswer,
    openapi_extra=body_schema(forms.RememberForm, several=True),
    summary="Remember one memory, or a list of them",
)
async def remember(request: Request, access: Writer) -> Response:
    """All memories of a list are stored, or none. When the answer arrives they are on disk and can be recalled."""
    body = parse_json(await request.body())
    items = body if isinstance(body, list) else [body]
    if not 0 < len(items) <= MOST_AT_ONCE:
        raise InputError(f"a list must hold 1 to {MOST_AT_ONCE} memories, got {len(items):,}", field="body")
    if not isinstance(body, list):
        fields_of(body, "a memory to remember", _REMEMBERED, ("text",))
        kept = [await access.write(_remember, access, body)]
    else:
        kept = await access.write(_remember_all, access, items)
    return json_response({"ids": kept}, 201)


def _remember(access: Access, item: Document) -> str:
    access.need_room()
    with access.once():
        memory = access.brain.remember(**check_new(access, item))
        record_new(access, [memory])
        return memory.memory_id


def _remember_all(access: Access, items: list[Any]) -> list[str]:
    given = [check_new(access, item) if isinstance(item, dict) else item for item in items]
    access.need_room()
    with access.once():
        kept = access.brain.remember_many(given, chunk=len(items))
        record_new(access, kept)
        return [memory.memory_id for memory in kept]


def record_new(access: Access, kept: Sequence[Memory]) -> None:
    """Record in the audit log who remembered what, and for whom."""
    for (scope, place), memories in groupby(
        kept, key=lambda memory: (memory.tags.get("scope") or _scope_of(memory.place), memory.place)
    ):
        detail = {"origin": "rest", "token": access.token_id, "scope": scope, **audience_detail(place)}
        access.brain.store.record(access.member, "remember", [memory.memory_id for memory in memories], **detail)


def _scope_of(place: str | None) -> str:
    if place == "organisation":
        return place
    return "repository" if (place or "").startswith("repo:") else "personal"


@router.json(
    "PATCH",
    "/memories/{memory_id:path}",
    documents.MemoryAnswer,
    "Change fields of a memory",
    form=forms.UpdateForm,
    responses={412: {"model": Error, "description": "The memory is no longer the one of If-Match."}},
)
def update(
    request: Request,
    access: Writer,
    memory_id: str,
    form: Document,
    keep_earlier: Annotated[bool, Query(description="Keep the replaced text; false erases all earlier texts.")] = True,
) -> Response:
    """With `If-Match` only if the memory is still the one with that ETag."""
    wanted = request.headers.get("if-match")
    before: list[tuple[str, str | None]] = []

    def unchanged(memory: Memory) -> None:
        check_fields(access, memory, form)
        before[:] = [(memory.text, memory.place)]
        if wanted is not None and not is_among(tag_of(memory), wanted):
            raise HTTPException(412, "the memory has been changed since; get it again")

    detail = {"origin": "rest", "token": access.token_id, "fields": sorted(form)}
    access.need_room()
    with access.once():
        memory = access.brain.update(memory_id, only_if=unchanged, keep_earlier=keep_earlier, **form)
        access.brain.store.record(access.member, "change", [memory_id], **detail)
        if before:  # else this request did it before
            memory = _announce(access, memory, *before[0])
    return json_response(memory_document(memory), headers={"ETag": tag_of(memory)})


def _announce(access: Access, memory: Memory, text: str, place: str | None) -> Memory:
    """Send members of the team the new words of a memory that they have, or its removal if it is for others now."""
    words, moved = memory.text != text, memory.place != place
    if memory.type not in KINDS or not (words or moved) or not (is_shared(place) or is_shared(memory.place)):
        return memory
    team = TeamMemory(access.brain, author=access.member, origin="rest", token=access.token_id)
    return team.announce(memory.memory_id, words=words, audience=moved)


@router.json("POST", "/memories/{memory_id:path}/pin", documents.PinnedAnswer, "Keep a memory from being pruned")
def pin(access: Writer, memory_id: str) -> Document:
    return _set_pin(access, memory_id, True)


@router.json("POST", "/memories/{memory_id:path}/unpin", documents.PinnedAnswer, "Let a memory fade again")
def unpin(access: Writer, memory_id: str) -> Document:
    return _set_pin(access, memory_id, False)


def _set_pin(access: Access, memory_id: str, pinned: bool) -> Document:
    check_change(access, held(access, memory_id))
    with access.once():
        access.brain.pin(memory_id, pinned)
    return {"memory_id": memory_id, "pinned": pinned}


@router.json("DELETE", "/memories/{memory_id:path}", documents.IdsAnswer, "Forget a memory for good")
def forget(access: Writer, memory_id: str) -> Document:
    known = access.brain.get(memory_id)
    if known is not None:
        check_change(access, known)
    with config.acting(access.member, access.token_id), access.once():
        gone = access.brain.forget(memory_id)
    if not gone:
        raise NotFoundError(memory_id)
    return {"ids": [memory_id]}


@router.json(
    "POST",
    "/forget",
    documents.ForgottenAnswer,
    "Forget the memories of a filter, or all that concerns a person or an agent",
    form=forms.ForgetForm,
)
def forget_many(access: Writer, form: Document) -> Document:
    """A `subject` needs the role ADMIN: it also searches what others remember. `dry_run` only returns the ids."""
    dry_run = checks.flag("dry_run", form.get("dry_run", False))
    if ("where" in form) == ("subject" in form):
        raise InputError("one of where and subject must be given, not both", field="where")
    if "subject" in form:
        access.need(Role.ADMIN)
        return {"ids": _forget_subject(access, form["subject"], dry_run), "dry_run": dry_run}
    where = Filter.of(form["where"])
    if not where:
        raise InputError("where must name at least one field, or everything would be forgotten", field="where")
    return {"ids": _forget_where(access, where, dry_run), "dry_run": dry_run}


def _forget_subject(access: Access, subject: str, dry_run: bool) -> list[str]:
    with config.acting(access.member, access.token_id):
        keys = access.brain.forget(subject=subject, dry_run=dry_run)
    if not dry_run:
        access.service.answers.empty(access.org, access.workspace_id)
    return keys


def _forget_where(access: Access, where: Filter, dry_run: bool) -> list[str]:
    store = access.brain.store
    found = visible(access, store.select(where))
    others = [memory for memory in found if not may_change(access, memory)]
    if others:
        raise HTTPException(
            403,
            f"where: {len(others):,} of {len(found):,} memories are others', such as {others[0].memory_id!r} of "
            f"{others[0].actor!r}; only their authors and administrators may remove them",
        )
    keys = [memory.memory_id for memory in found]
    if dry_run:
        return keys
    with config.acting(access.member, access.token_id), access.once():
        # also when nothing is left: it may be what this request has forgotten before
        return store.erase(keys, who=access.member, reason="filter")


@router.json("POST", "/restore", documents.RestoredAnswer, "Bring pruned memories back", form=forms.RestoreForm)
def restore(access: Writer, form: Document) -> Document:
    ids = form["ids"]
    if not isinstance(ids, list) or not 0 < len(ids) <= MOST_AT_ONCE:
        raise checks.refuse("ids", f"a list of 1 to {MOST_AT_ONCE} ids", ids)
    wanted = [checks.memory_id("ids", key) for key in ids]
    with config.acting(access.member, access.token_id), access.once():
        aside = {item.memory.memory_id: item.memory for item in access.brain.store.aside()}
        for key in wanted:
            if key in aside:
                check_change(access, aside[key])
        back = [memory.memory_id for memory in access.brain.restore(*wanted)]
    return {"restored": back, "missing": [key for key in wanted if key not in back]}


# Reading


class FilterParameters(BaseModel):
    """Which memories count, as parameters of a query."""

    model_config = ConfigDict(extra="forbid")

    agent: list[str] = []
    type: list[str] = []
    session: list[str] = []
    actor: list[str] = []
    place: list[str] = []
    tier: list[str] = []
    tag: Annotated[list[str], Field(description="KEY=VALUE; repeatable.")] = []
    min_step: int | None = None
    max_step: int | None = None
    since: str | None = None
    until: str | None = None
    min_importance: float | None = None
    max_importance: float | None = None
    where: Annotated[str | None, Field(description="Further fields of a filter, as JSON.")] = None

    def filter(self) -> Filter:
        named: dict[str, Any] = {
            name: getattr(self, name) for name in ("agent", "type", "session", "actor", "place", "tier")
        }
        for name in ("min_step", "max_step", "min_importance", "max_importance"):
            named[name] = getattr(self, name)
        for name in ("since", "until"):
            named[name] = moment_of(getattr(self, name))
        if self.tag:
            pairs = [text.partition("=") for text in self.tag]
            if not all(separator for _, separator, _ in pairs):
                raise checks.refuse("tag", "KEY=VALUE", self.tag)
            named["tags"] = {key: value for key, _, value in pairs}
        return Filter.of(
            where_of(self.where), **{key: value for key, value in named.items() if value not in (None, [])}
        )


class Listing(FilterParameters):
    """Which memories to list."""

    order: Literal["newest", "oldest", "importance", "step", "last step"] = "newest"
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    cursor: Annotated[str | None, Field(description="The next_cursor of the answer before.")] = None
    vectors: bool = False


def where_of(text: str | None) -> Any:
    """The `where` of a query, which is JSON."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        raise checks.refuse("where", "a JSON object", text) from None


def moment_of(text: str | None) -> float | str | None:
    """Parse a time: a number, or words as they are."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


@router.json(
    "GET",
    "/memories",
    documents.MemoriesAnswer,
    "List memories inside a filter",
    responses={304: {"description": "The caller has this answer already."}},
)
def memories(request: Request, access: Reader, listing: Annotated[Listing, Query()]) -> Response:
    # A cursor has the sort value of the last memory and the number of equal ones returned, so that none is skipped or
    # repeated when others write between two pages.
    store, where = access.brain.store, listing.filter()
    bound, value = _BOUNDS[listing.order], _SORTED[listing.order]
    edge, told_there, rest = None, 0, where
    if listing.cursor is not None:
        order, edge, told_there = parts_of(listing.cursor, 3)
        if order != listing.order or not isinstance(edge, int | float):
            raise checks.refuse("cursor", "the next_cursor of an answer in the same order", listing.cursor)
        rest = Filter.of({**where.to_dict(), bound: edge})
    found = store.select(rest, order=listing.order, limit=listing.limit + 1, offset=checks.whole("cursor", told_there))
    page, cursor = found[: listing.limit], None
    if len(found) > len(page):
        last = value(page[-1])
        there = sum(value(memory) == last for memory in page)
        cursor = cursor_of(listing.order, last, there + (told_there if last == edge else 0))
    memories = [memory_document(memory, vectors=listing.vectors) for memory in visible(access, page)]
    total = store.count(where) - len(hidden(access, where))
    return tagged_response(request, {"memories": memories, "total": total, "next_cursor": cursor})


@router.json(
    "GET",
    "/memories/{memory_id:path}",
    documents.MemoryAnswer,
    "One memory",
    responses={304: {"description": "The caller has this memory already."}},
)
def memory(request: Request, access: Reader, memory_id: str, vectors: bool = False) -> Response:
    """The ETag changes when the memory is changed, not when it is merely recalled."""
    found = held(access, memory_id)
    return tagged_response(request, memory_document(found, vectors=vectors), tag_of(found))


def held(access: Access, memory_id: str) -> Memory:
    found = access.brain.get(memory_id)
    if found is None or not is_visible(access, found.place):
        raise NotFoundError(memory_id)
    return found


@router.json("GET", "/stats", documents.StatsAnswer, "What the workspace holds")
def stats(access: Reader) -> Document:
    store = access.brain.store
    held = {"embedder": store.get_meta("embedder"), **asdict(visible_stats(access))}
    return {**held, "unreadable": store.unreadable()}
