"""Looking after the memories of a workspace: tiers, and what has faded."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from ... import checks, config
from ...errors import InputError
from ...tiers.forgetting import ForgettingPolicy
from .. import documents, forms
from ..access import Access, Role, allowed
from ..bodies import Document, told
from ..exchange import answer, asking, given
from ..ownership import is_visible
from ..turns import reading, writing
from .answers import RUNNING

router = APIRouter(prefix="/workspaces/{workspace}", tags=["upkeep"], responses=RUNNING)


@router.post(
    "/maintenance",
    response_model=documents.MaintenanceAnswer,
    openapi_extra=asking(forms.MaintenanceForm),
    summary="Tend the tiers, and prune what has faded",
)
async def maintenance(
    access: Annotated[Access, Depends(allowed(Role.WRITE))],
    form: Annotated[Document, Depends(given(forms.MaintenanceForm, "maintenance"))],
) -> Response:
    """What is pruned can be restored for a grace period; `grace_days: 0`, for good at once, needs the role ADMIN."""
    dry_run = checks.flag("dry_run", form.get("dry_run", False))
    policy = None if form.get("prune") is None else ForgettingPolicy.of(form["prune"])
    if policy is not None:
        if policy.below is policy.max_count is policy.max_bytes is None:
            raise InputError("prune must have below, max_count or max_bytes", field="prune")
        if not policy.grace_days:
            access.need(Role.ADMIN)
    return answer(await writing(_tended, access, form.get("agent"), policy, dry_run))


def _tended(access: Access, agent: Any, policy: ForgettingPolicy | None, dry_run: bool) -> Document:
    moved: Document = {"stm_to_im": 0, "im_to_ltm": 0, "agents": {}}
    if agent is not None:
        checks.name("agent", agent)
    with config.acting(access.member, access.token_id):
        pruned = [] if policy is None else access.brain.prune(policy, dry_run=dry_run)
        if not dry_run:
            moved = access.agents.force_memory_maintenance(agent)
    return {
        **moved,
        "pruned": [{"memory_id": key, "retention": retained} for key, retained in pruned],
        "dry_run": dry_run,
    }


@router.get(
    "/pruned",
    response_model=documents.AsideAnswer,
    summary="What was pruned and can be restored",
)
async def pruned(access: Annotated[Access, Depends(allowed(Role.READ))]) -> Response:
    return answer(await reading(_aside, access))


def _aside(access: Access) -> Document:
    aside = [one for one in access.brain.store.aside() if is_visible(access, one.memory.place)]
    return {
        "memories": [told(one.memory) for one in aside],
        "until": {one.memory.memory_id: one.until for one in aside},
    }
