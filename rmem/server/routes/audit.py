"""The audit logs: of memories in a workspace, and of members, tokens and workspaces of an organisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Annotated

from fastapi import Query

from ... import checks
from ...errors import ConfigError
from ...stores.capabilities import AuditEntry, AuditLog
from .. import documents
from ..access import Access, Admin, OrganizationAdmin
from ..bodies import Document, cursor_of, parts_of
from ..json_router import JsonRouter
from .answers import ANYBODY, IN_WORKSPACE

router = JsonRouter(tags=["audit"])
Since = Annotated[str | None, Query(description="Not before: 2026-05-01, “two weeks ago”.")]
Limit = Annotated[int, Query(ge=1, le=1000)]
Cursor = Annotated[str | None, Query(description="The next_cursor of the answer before.")]


@router.json(
    "GET",
    "/workspaces/{workspace}/audit",
    documents.AuditAnswer,
    "Who did what with which memory or table, newest first",
    responses=IN_WORKSPACE,
)
def audit(
    access: Admin,
    memory: Annotated[str | None, Query(description="Only entries about this memory.")] = None,
    since: Since = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Document:
    return _entries(partial(_log(access).audit, memory=memory), since, limit, cursor)


@router.json(
    "GET",
    "/audit",
    documents.AuditAnswer,
    "Who changed members, tokens and workspaces of the organisation, newest first",
    responses=ANYBODY,
)
def audit_of_organization(
    access: OrganizationAdmin, since: Since = None, limit: Limit = 100, cursor: Cursor = None
) -> Document:
    return _entries(partial(access.service.control.log.entries, access.org), since, limit, cursor)


def _entries(read: Callable[..., Sequence[AuditEntry]], since: str | None, limit: int, cursor: str | None) -> Document:
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


_VERIFY = documents.VerifiedAnswer, "Whether no entry was changed or taken away"


@router.json("GET", "/workspaces/{workspace}/audit/verify", *_VERIFY, responses=IN_WORKSPACE)
def verify(access: Admin) -> Document:
    return _verified(_log(access).broken_audit())


@router.json("GET", "/audit/verify", *_VERIFY, responses=ANYBODY)
def verify_of_organization(access: OrganizationAdmin) -> Document:
    return _verified(access.service.control.log.broken(access.org))


def _verified(broken: Iterable[int]) -> Document:
    found = list(broken)
    return {"sound": not found, "broken": found}


def _log(access: Access) -> AuditLog:
    """The store, where it keeps an audit log."""
    store = access.brain.store
    if not isinstance(store, AuditLog):
        raise ConfigError("this store keeps no audit log")
    return store
