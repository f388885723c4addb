"""Maintenance of the memories of a workspace: tiers, pruning, retention, quality of recall and the doctor."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Depends, Header, Query, Response
from fastapi.responses import StreamingResponse

from ... import checks, config, doctor
from ...errors import InputError
from ...evaluate.online import report as report_quality
from ...stores.base import Trace
from ...tiers.forgetting import ForgettingPolicy, prune
from .. import documents, forms
from ..access import Access, Admin, Reader, Role, Writer
from ..bodies import Document, memory_document
from ..exchange import body_schema, json_body, json_response
from ..json_router import JsonRouter
from ..ownership import is_known, is_visible
from .answers import RUNNING

router = JsonRouter(prefix="/workspaces/{workspace}", tags=["maintenance"], responses=RUNNING)
_BINS, _MOST = 10, 200
_NDJSON = "application/x-ndjson"
Report = Callable[[Document], object]


@router.post(
    "/maintenance",
    response_model=documents.MaintenanceAnswer,
    responses={200: {"content": {_NDJSON: {}}}},
    openapi_extra=body_schema(forms.MaintenanceForm),
    summary="Rebalance the tiers, and prune what has faded",
)
async def maintenance(
    access: Writer,
    form: Annotated[Document, Depends(json_body(forms.MaintenanceForm))],
    accept: Annotated[str, Header()] = "",
) -> Response:
    """What is pruned can be restored for a grace period; `grace_days: 0`, for good at once, needs the role ADMIN. The
    answer lists what is pruned, as far as the caller may see it, the most faded first, at most `limit`. Of a dry run
    as application/x-ndjson, lines with `done` and `total` come before the answer, as the work goes on."""
    dry_run = checks.flag("dry_run", form.get("dry_run", False))
    policy = None if form.get("prune") is None else ForgettingPolicy.of(form["prune"])
    if policy is not None:
        if policy.below is policy.max_count is policy.max_bytes is None:
            raise InputError("prune must have below, max_count or max_bytes", field="prune")
        if not policy.grace_days:
            access.need(Role.ADMIN)
    limit = None if form.get("limit") is None else checks.whole("limit", form["limit"])
    agent = None if form.get("agent") is None else checks.name("agent", form["agent"])
    if not dry_run:
        return json_response(await access.write(_maintain, access, agent, policy, dry_run, limit))
    if policy is None:
        return json_response(await access.read(_maintain, access, agent, policy, dry_run, limit))
    if _NDJSON not in accept:
        return json_response(await access.read_whole(_maintain, access, agent, policy, dry_run, limit))
    return StreamingResponse(
        _lines(lambda report: access.read_whole(_maintain, access, agent, policy, dry_run, limit, report)),
        media_type=_NDJSON,
    )


def _maintain(
    access: Access,
    agent: str | None,
    policy: ForgettingPolicy | None,
    dry_run: bool,
    limit: int | None,
    report: Report | None = None,
) -> Document:
    def on_progress(done: int, total: int | None) -> None:
        if report is not None:
            report({"done": done, "total": total})

    with config.acting(access.member, access.token_id):
        planned = [] if policy is None else prune(access.brain.store, policy, dry_run=True, on_progress=on_progress)
        # asked now: once pruned, nobody knows
        listed = set(islice((key for key, _ in planned if is_known(access, key)), limit))
        pruned = planned if policy is None or dry_run else access.brain.prune(policy)
        agents = access.agents
        moved = agents.plan_memory_maintenance(agent) if dry_run else agents.force_memory_maintenance(agent)
    return {
        **moved,
        "pruned": [{"memory_id": key, "retention": retained} for key, retained in pruned if key in listed],
        "pruned_count": len(pruned),
        "dry_run": dry_run,
    }


@router.post(
    "/retention",
    response_model=documents.RetentionAnswer,
    openapi_extra=body_schema(forms.RetentionForm),
    summary="How well memories are retained, and which fade next",
)
async def retention(access: Reader, form: Annotated[Document, Depends(json_body(forms.RetentionForm))]) -> Response:
    """`bins` counts memories by tenths of retention, from 0 to 1. `next` are the most faded that are not pinned, with
    the time at which each falls below the policy's `below` (0.05 without it) if nobody uses it."""
    policy = ForgettingPolicy.of(form.get("policy") or {})
    return json_response(
        await access.read_whole(_retention, access, policy, checks.whole("limit", form.get("limit", 20)))
    )


def _retention(access: Access, policy: ForgettingPolicy, limit: int) -> Document:
    now, bins, known = time.time(), [0] * _BINS, list[tuple[float, Trace]]()
    for trace in access.brain.store.traces():
        retained = policy.retention_of(trace, now)
        bins[min(int(retained * _BINS), _BINS - 1)] += 1
        if not trace.pinned:
            known.append((retained, trace))
    below = 0.05 if policy.below is None else policy.below
    fading: list[Document] = []
    for retained, trace in sorted(known, key=lambda item: item[0]):
        if len(fading) >= min(limit, _MOST):
            break
        memory = access.brain.get(trace.memory_id)
        if memory is not None and is_visible(access, memory.place):
            falls = policy.falls_at(trace, below)
            fading.append({"memory": memory_document(memory), "retention": retained, "falls": falls})
    return {"memories": sum(bins), "bins": bins, "next": fading}


@router.json("GET", "/quality", dict[str, Any], "How well recall does in use, and its drift")
def quality(
    access: Reader,
    by: Literal["day", "week"] = "week",
    agent: Annotated[list[str], Query()] = [],  # noqa: B006
) -> Document:
    """By the feedback on recalls: success rate, hit ratio and mean reciprocal rank, over all, by window of time, and
    for each agent and type; `drift` compares the last window with the one before."""
    return report_quality(access.brain.store.feedback(), agent=agent, by=by)


@router.get(
    "/examination",
    response_model=documents.ExaminationAnswer,
    responses={200: {"content": {_NDJSON: {}}}},
    summary="Whether the store is sound",
)
async def examination(access: Admin, accept: Annotated[str, Header()] = "") -> Response:
    """Runs `rmem doctor`, which reads the whole store; on the user's own store it also checks hooks and sharing.
    `latencies` are of the server since its start, by route: seconds within which half, 95 % and 99 % were answered.
    As application/x-ndjson, lines with `check`, `done` and `total` come before the answer, as the work goes on."""
    if _NDJSON in accept:
        return StreamingResponse(_lines(lambda report: access.read_whole(_examine, access, report)), media_type=_NDJSON)
    return json_response(await access.read_whole(_examine, access))


async def _lines(work_on: Callable[[Report], Awaitable[Document]]) -> AsyncIterator[bytes]:
    """Yield what long work reports, from its thread, and then its answer."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[Document]()

    async def answer() -> None:
        await lines.put(await work_on(lambda line: loop.call_soon_threadsafe(lines.put_nowait, line)))

    work = loop.create_task(answer())
    work.add_done_callback(lambda _: lines.put_nowait({}))  # the end, also of work that failed
    try:
        while line := await lines.get():
            yield json.dumps(line).encode() + b"\n"
        await work
    finally:
        work.cancel()


def _examine(access: Access, report: Report | None = None) -> Document:
    def on_check(name: str, done: int, total: int) -> None:
        if report is not None:
            report({"check": name, "done": done, "total": total})

    found = [*doctor.examine(access.address, on_check), *doctor.check_audit(access.brain.store)]
    if access.service.settings.own_store is not None:
        from ...team import health
        from ...team.install.status import report as state_of_agents

        found += health.findings(state_of_agents(Path.cwd(), access.address))
    else:  # where the server keeps things concerns its operator alone
        found = [replace(item, detail="") if item.name in ("store", "versions") else item for item in found]
    return {"findings": [asdict(item) for item in found], "latencies": access.service.metrics.latencies()}


@router.json("GET", "/pruned", documents.AsideAnswer, "What was pruned and can be restored")
def pruned(access: Reader) -> Document:
    aside = [item for item in access.brain.store.aside() if is_visible(access, item.memory.place)]
    return {
        "memories": [memory_document(item.memory) for item in aside],
        "until": {item.memory.memory_id: item.until for item in aside},
    }
