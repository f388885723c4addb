"""Synchronisation of the memories of a team's members."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from ... import checks
from ...errors import InputError
from ...team.admission import Sender, admit
from ...team.exchange import Receiver, changes
from ...team.notes import audience
from ...team.repositories import Sharing
from .. import documents, forms
from ..access import Access, Role, allowed
from ..bodies import MOST_AT_ONCE, Document
from ..exchange import body_schema, json_body, json_response
from .answers import RUNNING

router = APIRouter(prefix="/workspaces/{workspace}", tags=["team"], responses=RUNNING)


@router.get("/sync", response_model=documents.SyncAnswer, summary="What changed behind an entry of the audit log")
async def pull(
    access: Annotated[Access, Depends(allowed(Role.READ))],
    after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the last answer.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    repository: Annotated[list[str], Query(description="A repository that you have; repeatable.")] = [],  # noqa: B006
) -> Response:
    """Repeat the request with `next` while `more` is true. Only changes of repositories are returned that the workspace
    shares and that you have or were given by an administrator."""
    return json_response(await access.read(_changes, access, after, limit, repository))


def _changes(access: Access, after: int, limit: int, repositories: list[str]) -> Document:
    sharing = Sharing.of(access.brain)
    received = sharing.received(access.member, repositories)
    had = sharing.wanted(access.member, repositories)
    answer = asdict(changes(access.brain, after, limit, receiver=Receiver(_places(received), _places(had))))
    return {**answer, "repositories": sorted(received), "shared": sharing.shared}


def _places(repositories: Collection[str]) -> set[str]:
    return {audience("organisation", None, ""), *(audience("repository", name, "") for name in repositories)}


@router.post(
    "/sync",
    response_model=documents.AppliedAnswer,
    openapi_extra=body_schema(forms.SyncForm),
    summary="Take in what another memory of the team knows",
)
async def push(
    access: Annotated[Access, Depends(allowed(Role.WRITE))],
    form: Annotated[Document, Depends(json_body(forms.SyncForm, "changes"))],
) -> Response:
    """Idempotent. Each memory is accepted separately: `refused` lists those that were not, with the field and the
    reason, `memories` those whose stored state differs from what was sent. A body holds at most 1,000 of each."""
    return json_response(await access.write(_admitted, access, form))


def _admitted(access: Access, form: Document) -> Document:
    memories, gone = (_listed(name, form.get(name, [])) for name in ("memories", "gone"))
    if memories:
        access.need_room()
    shared = Sharing.of(access.brain).shared
    by = Sender(access.member, access.role >= Role.ADMIN, access.token_id, shared)
    return asdict(admit(access.brain, memories, gone, by))


def _listed(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise checks.refuse(name, "a list", value)
    if len(value) > MOST_AT_ONCE:
        raise InputError(f"{name} must hold at most {MOST_AT_ONCE} entries, got {len(value):,}", field=name)
    return value
