"""Which workspace a repository's memories go to, where its `.remanence.toml` names one."""

from __future__ import annotations

import json

from . import places
from .drafts import replace_file

KEY = "workspace"
"""The field of a memory that names its workspace; without it, that of the login is meant."""


def known() -> list[str]:
    """The workspaces that repositories of this user route to."""
    try:
        told = json.loads((places.folder() / "workspaces.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in told if isinstance(name, str)] if isinstance(told, list) else []


def note(workspace: str) -> None:
    """Remember that there is a repository that routes to this workspace."""
    before = known()
    if workspace in before:
        return
    replace_file(places.folder() / "workspaces.json", json.dumps([*before, workspace]).encode())
