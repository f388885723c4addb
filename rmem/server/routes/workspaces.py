"""Workspaces of an organisation and their members."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Path
from pydantic import BaseModel, ConfigDict, Field

from ... import config
from ..access import Access, Admin, OrganizationAdmin, Reader, anybody
from ..control import Member, WorkspaceRecord, role_named
from .answers import ANYBODY, CHANGING, IN_WORKSPACE, Cursor, Limit, after, page

router = APIRouter(tags=["workspaces"])
MemberName = Annotated[str, Path(max_length=200)]


class NewWorkspace(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=63, examples=["team-a"])


class NewMember(BaseModel):
    model_config = ConfigDict(extra="forbid")

    member: str = Field(max_length=200, examples=["alice"])
    role: str = Field(examples=["WRITE"])


@router.get("/workspaces", responses=ANYBODY)
def list_workspaces(
    access: Annotated[Access, Depends(anybody)], limit: Limit = 1000, cursor: Cursor = None
) -> dict[str, Any]:
    """The workspaces that the caller may use."""
    tokens, found, last = access.service.tokens, list[dict[str, Any]](), after(cursor)
    while len(found) <= limit:
        several = access.service.control.workspaces(access.org, after=last, limit=limit + 1)
        for record in several:
            workspace_role = tokens.workspace_role(access.caller, record.name)
            if workspace_role is not None:
                found.append({**_shown(record), "role": workspace_role.role.name})
        if len(several) <= limit:
            break
        last = several[-1].name
    return page("workspaces", found, [workspace["name"] for workspace in found], limit)


@router.post("/workspaces", status_code=201, responses=CHANGING)
def create_workspace(body: NewWorkspace, access: OrganizationAdmin) -> dict[str, Any]:
    """Make a workspace."""
    control = access.service.control
    with config.acting(access.member, access.token_id), access.once():
        return control.once(lambda: _shown(control.create_workspace(access.org, body.name)))


@router.get("/workspaces/{workspace}", responses=IN_WORKSPACE)
def show_workspace(access: Reader) -> dict[str, Any]:
    """One workspace, and the caller's role in it."""
    record = access.service.control.workspace(access.org, access.workspace)
    if record is None:
        raise HTTPException(404, f"there is no workspace {access.workspace!r}")
    return {**_shown(record), "role": access.role.name}


@router.delete("/workspaces/{workspace}", responses=CHANGING)
def delete_workspace(access: Admin) -> dict[str, Any]:
    """Delete a workspace with all its memories and tables."""
    if access.service.settings.own_store is not None:
        raise HTTPException(403, "this is your own store, not a workspace of a server; delete its file yourself")
    with config.acting(access.member, access.token_id):
        gone = access.service.control.delete_workspace(access.org, access.workspace)
    if gone is None:
        raise HTTPException(404, f"there is no workspace {access.workspace!r}")
    access.spaces.remove(gone.org, gone.id, gone.name, gone.server)
    return {"deleted": gone.name}


@router.get("/workspaces/{workspace}/members", responses=IN_WORKSPACE)
def list_members(access: Admin, limit: Limit = 1000, cursor: Cursor = None) -> dict[str, Any]:
    """Those who have a role in this workspace alone."""
    return _page(access, access.workspace_id, limit, cursor)


@router.post("/workspaces/{workspace}/members", responses=CHANGING)
def set_member(body: NewMember, access: Admin) -> dict[str, Any]:
    """Give somebody a role in this workspace, or another one."""
    return _set(access, body, access.workspace_id)


@router.delete("/workspaces/{workspace}/members/{member}", responses=CHANGING)
def remove_member(member: MemberName, access: Admin) -> dict[str, Any]:
    """Take somebody's role in this workspace away."""
    return _remove(access, member, access.workspace_id)


@router.get("/members", responses=ANYBODY)
def list_members_of_all(access: OrganizationAdmin, limit: Limit = 1000, cursor: Cursor = None) -> dict[str, Any]:
    """Those who have a role in every workspace of the organisation."""
    return _page(access, None, limit, cursor)


@router.post("/members", responses=CHANGING)
def set_member_of_all(body: NewMember, access: OrganizationAdmin) -> dict[str, Any]:
    """Give somebody a role in every workspace of the organisation, or another one."""
    return _set(access, body, None)


@router.delete("/members/{member}", responses=CHANGING)
def remove_member_of_all(member: MemberName, access: OrganizationAdmin) -> dict[str, Any]:
    """Take somebody's role in the organisation away."""
    return _remove(access, member, None)


def _page(access: Access, workspace: str | None, limit: int, cursor: str | None) -> dict[str, Any]:
    found = access.service.control.members(access.org, workspace, after=after(cursor), limit=limit + 1)
    return page("members", [_member(member) for member in found], [member.member for member in found], limit)


def _set(access: Access, body: NewMember, workspace: str | None) -> dict[str, Any]:
    role = role_named("role", body.role)
    with config.acting(access.member, access.token_id):
        return _member(access.service.control.set_member(access.org, body.member, role, workspace))


def _remove(access: Access, member: str, workspace: str | None) -> dict[str, Any]:
    control = access.service.control

    def removed() -> dict[str, Any]:
        if not control.remove_member(access.org, member, workspace):
            raise HTTPException(404, f"there is no member {member!r} here")
        return {"removed": member}

    with config.acting(access.member, access.token_id), access.once():
        return control.once(removed)


def _shown(record: WorkspaceRecord) -> dict[str, Any]:
    return {"id": record.id, "name": record.name, "created": record.created}


def _member(member: Member) -> dict[str, Any]:
    return {"member": member.member, "role": member.role.name, "created": member.created}
