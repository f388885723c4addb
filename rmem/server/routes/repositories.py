"""Which repositories a workspace shares with its members."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from ...team.repositories import Sharing
from .. import documents, forms
from ..access import Access, Role, allowed
from ..bodies import Document
from ..exchange import body_schema, json_body, json_response
from .answers import RUNNING

router = APIRouter(prefix="/workspaces/{workspace}", tags=["team"], responses=RUNNING)


@router.get(
    "/repositories", response_model=documents.RepositoriesAnswer, summary="Which repositories the workspace shares"
)
async def repositories(access: Annotated[Access, Depends(allowed(Role.READ))]) -> Response:
    """Administrators see what was given to whom, others what was given to them."""
    return json_response(await access.read(_shared, access))


def _shared(access: Access) -> Document:
    sharing = Sharing.of(access.brain)
    if access.role < Role.ADMIN:
        sharing.given = {who: ids for who, ids in sharing.given.items() if who == access.member}
    return asdict(sharing)


@router.put(
    "/repositories",
    response_model=documents.RepositoriesAnswer,
    openapi_extra=body_schema(forms.RepositoriesForm),
    summary="Say which repositories the workspace shares",
)
async def share(
    access: Annotated[Access, Depends(allowed(Role.ADMIN))],
    form: Annotated[Document, Depends(json_body(forms.RepositoriesForm, "repositories"))],
) -> Response:
    """`shared` null means all of them. Members receive those that they have; what is in `given` they receive although
    they have it not. What a member has received stays there."""
    return json_response(await access.write(_share, access, form))


def _share(access: Access, form: Document) -> Document:
    sharing = Sharing.checked(form.get("shared"), form.get("given"))
    sharing.keep(access.brain)
    access.brain.store.record(access.member, "repositories", origin="rest", token=access.token_id)
    return asdict(sharing)
