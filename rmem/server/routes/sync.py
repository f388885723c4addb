"""Synchronisation of the memories of a team's members, and which repositories a workspace shares with them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query

from ... import checks
from ...errors import InputError
from ...team.admission import Sender, admit
from ...team.exchange import Receiver, changes
from ...team.notes import audience
from ...team.repositories import Sharing
from .. import documents, forms
from ..access import Admin, Reader, Role, Writer
from ..bodies import MOST_AT_ONCE, Document
from ..json_router import JsonRouter
from .answers import RUNNING

router = JsonRouter(prefix="/workspaces/{workspace}", tags=["team"], responses=RUNNING)


@router.json("GET", "/sync", documents.SyncAnswer, "What changed behind an entry of the audit log")
def pull(
    access: Reader,
    after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the last answer.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    repository: Annotated[list[str], Query(description="A repository that you have; repeatable.")] = [],  # noqa: B006
) -> Document:
    """Repeat the request with `next` while `more` is true. Only changes of repositories are returned that the workspace
    shares and that you have or were given by an administrator."""
    sharing = Sharing.of(access.brain)
    received = sharing.received(access.member, repository)
    had = sharing.wanted(access.member, repository)
    answer = asdict(changes(access.brain, after, limit, receiver=Receiver(_places(received), _places(had))))
    return {**answer, "repositories": sorted(received), "shared": sharing.shared}


def _places(repositories: Collection[str]) -> set[str]:
    return {audience("organisation", None, ""), *(audience("repository", name, "") for name in repositories)}


@router.json(
    "POST", "/sync", documents.AppliedAnswer, "Take in what another memory of the team knows", form=forms.SyncForm
)
def push(access: Writer, form: Document) -> Document:
    """Idempotent. Each memory is accepted separately: `refused` lists those that were not, with the field and the
    reason, `memories` those whose stored state differs from what was sent. A body holds at most 1,000 of each."""
    memories, gone = (_listed(name, form.get(name, [])) for name in ("memories", "gone"))
    if memories:
        access.need_room()
    shared = Sharing.of(access.brain).shared
    by = Sender(access.member, access.role >= Role.ADMIN, access.token_id, shared)
    return asdict(admit(access.brain, memories, gone, by))


def _listed(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise checks.refuse(name, "a list", value)
    if len(value) > MOST_AT_ONCE:
        raise InputError(f"{name} must hold at most {MOST_AT_ONCE} entries, got {len(value):,}", field=name)
    return value


@router.json("GET", "/repositories", documents.RepositoriesAnswer, "Which repositories the workspace shares")
def repositories(access: Reader) -> Document:
    """Administrators see what was given to whom, others what was given to them."""
    sharing = Sharing.of(access.brain)
    if access.role < Role.ADMIN:
        sharing.given = {who: ids for who, ids in sharing.given.items() if who == access.member}
    return asdict(sharing)


@router.json(
    "PUT",
    "/repositories",
    documents.RepositoriesAnswer,
    "Say which repositories the workspace shares",
    form=forms.RepositoriesForm,
)
def share(access: Admin, form: Document) -> Document:
    """`shared` null means all of them. Members receive those that they have; what is in `given` they receive although
    they have it not. What a member has received stays there."""
    sharing = Sharing.checked(form.get("shared"), form.get("given"))
    sharing.keep(access.brain)
    access.brain.store.record(access.member, "repositories", origin="rest", token=access.token_id)
    return asdict(sharing)
