"""The audit logs: of memories in a workspace, and of members, tokens and workspaces of an organisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from ... import checks
from ...errors import ConfigError
from ...stores.capabilities import AuditEntry, AuditLog
from .. import documents
from ..access import Access, Role, allowed, allowed_in_organization
from ..bodies import Document, cursor_of, parts_of
from ..exchange import json_response
from .answers import ANYBODY, IN_WORKSPACE

router = APIRouter(tags=["audit"])
Admin = Annotated[Access, Depends(allowed(Role.ADMIN))]
OrganizationAdmin = Annotated[Access, Depends(allowed_in_organization(Role.ADMIN))]
Since = Annotated[str | None, Query(description="Not before: 2026-05-01, “two weeks ago”.")]
Limit = Annotated[int, Query(ge=1, le=1000)]
Cursor = Annotated[str | None, Query(description="The next_cursor of the answer before.")]


@router.get(
    "/workspaces/{workspace}/audit",
    response_model=documents.AuditAnswer,
    responses=IN_WORKSPACE,
    summary="Who did what with which memory or table, newest first",
)
async def audit(
    access: Admin,
    memory: Annotated[str | None, Query(description="Only entries about this memory.")] = None,
    since: Since = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    def read(**which: Any) -> list[AuditEntry]:
        return list(_log(access).audit(memory=memory, **which))

    return json_response(await access.read(_entries, read, since, limit, cursor))


@router.get(
    "/audit",
    response_model=documents.AuditAnswer,
    responses=ANYBODY,
    summary="Who changed members, tokens and workspaces of the organisation, newest first",
)
async def audit_of_organization(
    access: OrganizationAdmin, since: Since = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    def read(**which: Any) -> list[AuditEntry]:
        return access.service.control.log.entries(access.org, **which)

    return json_response(await access.read(_entries, read, since, limit, cursor))


def _entries(read: Callable[..., list[AuditEntry]], since: str | None, limit: int, cursor: str | None) -> Document:
    before = None
    if cursor is not None:
        (before,) = parts_of(cursor, 1)
        checks.whole("cursor", before, low=1)
    start = None if since is None else checks.moment("since", since)
    found = read(since=start, limit=limit + 1, before=before)
    page = found[:limit]
    return {
        "entries": [entry._asdict() for entry in page],
        "next_cursor": cursor_of(page[-1].n) if len(found) > limit else None,
    }


_VERIFY: dict[str, Any] = {
    "response_model": documents.VerifiedAnswer,
    "summary": "Whether no entry was changed or taken away",
}


@router.get("/workspaces/{workspace}/audit/verify", responses=IN_WORKSPACE, **_VERIFY)
async def verify(access: Admin) -> Response:
    return _verified(await access.read(lambda: list(_log(access).broken_audit())))


@router.get("/audit/verify", responses=ANYBODY, **_VERIFY)
async def verify_of_organization(access: OrganizationAdmin) -> Response:
    return _verified(await access.read(access.service.control.log.broken, access.org))


def _verified(broken: list[int]) -> Response:
    return json_response({"sound": not broken, "broken": broken})


def _log(access: Access) -> AuditLog:
    """The store, where it keeps an audit log."""
    store = access.brain.store
    if not isinstance(store, AuditLog):
        raise ConfigError("this store keeps no audit log")
    return store
