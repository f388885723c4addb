"""Health, readiness, metrics, and who the caller is."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from ..access import Access, RequestContext, anybody
from .answers import ANYBODY, PLAIN, Error

router = APIRouter(tags=["service"])
Anybody = Annotated[Access, Depends(anybody)]


@router.get("/health", responses=PLAIN)
async def health() -> dict[str, str]:
    """The server lives."""
    return {"status": "ok"}


@router.get("/ready", responses={**PLAIN, 503: {"model": Error, "description": "The store does not answer."}})
def ready(request: Request) -> dict[str, Any]:
    """The server reaches its store. Where it has replicas: how many of them answer no recalls, because they are away or
    too late."""
    context: RequestContext = request.scope["context"]
    service = context.service
    service.control.check()
    if not service.settings.replicas:
        return {"status": "ready"}
    return {"status": "ready", "replicas_left_out": service.spaces.replicas_left_out()}


@router.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}, 401: {"model": Error}}
)
async def metrics(request: Request) -> Response:
    """Numbers for Prometheus; the token lies in metrics.token of the data folder."""
    context: RequestContext = request.scope["context"]
    return Response(context.service.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/me", responses=ANYBODY)
def me(access: Anybody) -> dict[str, Any]:
    """Who the token belongs to."""
    caller = access.caller
    role = access.service.tokens.role_in_organization(caller)
    return {
        "member": caller.member,
        "organization": {"id": caller.org, "name": caller.org_name},
        "organizations": [caller.org],
        "role": None if role is None else role.name,
        "token": {"id": caller.token_id, "expires": None if caller.expires == float("inf") else caller.expires},
    }


@router.get("/organizations", responses=ANYBODY)
def organizations(access: Anybody) -> dict[str, Any]:
    """The organisation of the token."""
    caller = access.caller
    return {"organizations": [{"id": caller.org, "name": caller.org_name}]}
