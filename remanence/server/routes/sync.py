"""What the memories of a team's members tell each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from ... import checks
from ...team.exchange import apply, changes, checked
from .. import documents, forms
from ..access import Access, Role, allowed
from ..bodies import Document
from ..exchange import answer, asking, given
from ..turns import reading, writing
from .answers import RUNNING

router = APIRouter(prefix="/workspaces/{workspace}", tags=["team"], responses=RUNNING)


@router.get("/sync", response_model=documents.SyncAnswer, summary="What changed behind an entry of the audit log")
async def pull(
    access: Annotated[Access, Depends(allowed(Role.READ))],
    after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the last answer.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """Ask again with `next` while there is `more`."""
    return answer(await reading(_changes, access, after, limit))


def _changes(access: Access, after: int, limit: int) -> Document:
    return asdict(changes(access.brain, after, limit))


@router.post(
    "/sync",
    response_model=documents.AppliedAnswer,
    openapi_extra=asking(forms.SyncForm),
    summary="Take in what another memory of the team knows",
)
async def push(
    access: Annotated[Access, Depends(allowed(Role.WRITE))],
    form: Annotated[Document, Depends(given(forms.SyncForm, "changes"))],
) -> Response:
    """Told twice, it changes nothing twice. All is checked before anything is written."""
    return answer(await writing(_applied, access, form))


def _applied(access: Access, form: Document) -> Document:
    memories = [checked(one) for one in _listed("memories", form.get("memories", []))]
    gone = [_gone(one) for one in _listed("gone", form.get("gone", []))]
    return {"changed": apply(access.brain, memories, gone, who=access.member)}


def _listed(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise checks.refuse(name, "a list", value)
    return value


def _gone(one: Any) -> Document:
    if not isinstance(one, Mapping):
        raise checks.refuse("gone", "a list of {id, when}", one)
    checks.known_fields("what is gone", one, ("id", "when"))
    return {"id": checks.memory_id("id", one.get("id")), "when": checks.moment("when", one.get("when"))}
