"""Who removed and restored what in a workspace."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from ... import checks
from ...errors import ConfigError
from .. import documents
from ..access import Access, Role, allowed
from ..bodies import Document, cursor_of, parts_of
from ..exchange import answer
from ..turns import reading
from .answers import IN_WORKSPACE

router = APIRouter(prefix="/workspaces/{workspace}", tags=["audit"], responses=IN_WORKSPACE)
Admin = Annotated[Access, Depends(allowed(Role.ADMIN))]


@router.get("/audit", response_model=documents.AuditAnswer, summary="Who removed and restored what, newest first")
async def audit(
    access: Admin,
    memory: Annotated[str | None, Query(description="Only entries about this memory.")] = None,
    since: Annotated[str | None, Query(description="Not before: 2026-05-01, “two weeks ago”.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str | None, Query(description="The next_cursor of the answer before.")] = None,
) -> Response:
    return answer(await reading(_entries, access, memory, since, limit, cursor))


def _entries(access: Access, memory: str | None, since: str | None, limit: int, cursor: str | None) -> Document:
    before = None
    if cursor is not None:
        (before,) = parts_of(cursor, 1)
        checks.whole("cursor", before, low=1)
    start = None if since is None else checks.moment("since", since)
    found = _log(access).audit(memory=memory, since=start, limit=limit + 1, before=before)
    page = found[:limit]
    return {
        "entries": [entry._asdict() for entry in page],
        "next_cursor": cursor_of(page[-1].n) if len(found) > limit else None,
    }


@router.get(
    "/audit/verify", response_model=documents.VerifiedAnswer, summary="Whether no entry was changed or taken away"
)
async def verify(access: Admin) -> Response:
    broken = await reading(_broken, access)
    return answer({"sound": not broken, "broken": broken})


def _broken(access: Access) -> list[int]:
    return list(_log(access).broken_audit())


def _log(access: Access) -> Any:
    """The store, where it keeps an audit log."""
    store = access.brain.store
    if not hasattr(store, "audit"):
        raise ConfigError("this store keeps no audit log")
    return store
