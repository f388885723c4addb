"""Tokens of an organisation: make, list and revoke them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path
from pydantic import BaseModel, ConfigDict, Field

from ... import config
from ..access import OrganizationAdmin
from ..control import TokenRecord, role_named
from ..tokens import MAX_DAYS
from .answers import ANYBODY, CHANGING, Cursor, Limit, after, page

router = APIRouter(tags=["tokens"])


class NewToken(BaseModel):
    """`role` and `workspace` narrow what the member may do with this token."""

    model_config = ConfigDict(extra="forbid")

    member: str = Field(max_length=200)
    role: str = "ADMIN"
    workspace: str | None = Field(None, max_length=63)
    days: float = Field(90.0, gt=0, le=MAX_DAYS, description="Until it expires.")
    label: str = Field("", max_length=200)


@router.get("/tokens", responses=ANYBODY)
def list_tokens(access: OrganizationAdmin, limit: Limit = 1000, cursor: Cursor = None) -> dict[str, Any]:
    """The tokens of the organisation, without the tokens themselves. `effective_role` is what a token may do now: the
    lesser of its own role and its member's, and null for a member who was removed."""
    found = access.service.control.tokens(access.org, after=after(cursor), limit=limit + 1)
    return page("tokens", [_shown(record) for record in found], [record.id for record in found], limit)


@router.post("/tokens", status_code=201, responses=CHANGING)
def create_token(body: NewToken, access: OrganizationAdmin) -> dict[str, Any]:
    """Make a token for a member. Only this answer contains it; it cannot be read again."""
    workspace = None
    if body.workspace is not None:
        record = access.service.control.workspace(access.org, body.workspace)
        if record is None:
            raise HTTPException(404, f"there is no workspace {body.workspace!r}")
        workspace = record.id
    role = role_named("role", body.role)

    def issued() -> dict[str, Any]:
        token, made = access.service.tokens.issue(
            access.org, body.member, role=role, workspace=workspace, days=body.days, label=body.label
        )
        return {"token": token, **_shown(made)}

    with config.acting(access.member, access.token_id), access.once():
        return access.service.control.once(issued)


@router.delete("/tokens/{id}", responses=CHANGING)
def revoke_token(id: Annotated[str, Path(max_length=64)], access: OrganizationAdmin) -> dict[str, Any]:
    """Revoke a token: from now on it opens nothing."""
    with config.acting(access.member, access.token_id):
        known = access.service.control.revoke_token(access.org, id)
    if not known:
        raise HTTPException(404, f"there is no token {id!r}")
    return {"revoked": id}


def _shown(record: TokenRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "member": record.member,
        "label": record.label,
        "role": record.role.name,
        "effective_role": None if record.effective_role is None else record.effective_role.name,
        "workspace_id": record.workspace,
        "created": record.created,
        "expires": record.expires,
        "state": record.state,
    }
