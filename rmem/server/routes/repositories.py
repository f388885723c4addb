"""Which repositories a workspace shares with its members."""

from __future__ import annotations

from dataclasses import asdict

from ...team.repositories import Sharing
from .. import documents, forms
from ..access import Admin, Reader, Role
from ..bodies import Document
from ..json_router import JsonRouter
from .answers import RUNNING

router = JsonRouter(prefix="/workspaces/{workspace}", tags=["team"], responses=RUNNING)


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
