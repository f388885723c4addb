"""The repositories that this user works in, and the workspace of each whose `.rmem.toml` names one."""

from __future__ import annotations

import json

from . import paths
from .atomic_files import replace_file

KEY = "workspace"
"""The field of a memory that names its workspace; without it, that of the login is meant."""
_WORKSPACES, _REPOSITORIES = "workspaces.json", "repositories.json"


def known() -> list[str]:
    """Return the workspaces that repositories of this user name."""
    return _names(_WORKSPACES)


def note(workspace: str) -> None:
    """Record that a repository names this workspace."""
    _add(_WORKSPACES, workspace)


def repositories() -> list[str]:
    """Return the repositories of this user; sync pulls only their memories."""
    return _names(_REPOSITORIES)


def note_repository(id: str) -> bool:
    """Record a repository of this user; return whether it is new."""
    return _add(_REPOSITORIES, id)


def _names(file: str) -> list[str]:
    try:
        saved = json.loads((paths.folder() / file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in saved if isinstance(name, str)] if isinstance(saved, list) else []


def _add(file: str, name: str) -> bool:
    before = _names(file)
    if name in before:
        return False
    replace_file(paths.folder() / file, json.dumps([*before, name]).encode())
    return True
