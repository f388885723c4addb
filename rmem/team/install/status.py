"""Collect what `rmem status` shows: which agents are connected and whether their hooks answer, where memory goes, the
repository's settings, what waits, what went wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ... import config
from ...errors import ConfigError
from .. import backlog, health, paths
from ..identity import repository
from ..repository_file import find, read_settings
from . import AGENTS, Command, files, tool
from .parts import State
from .selftest import try_hook
from .tool import Tool


def report(cwd: Path, store: str) -> dict[str, Any]:
    """All of it, as one document. Hooks that are installed are tried, which leaves nothing behind; otherwise nothing is
    made or changed."""
    folder = config.home() / "team"
    command = Command.here()
    login = _told(folder / "login.json")
    return {
        "agents": [agent_report(tool(name, command)) for name in AGENTS],
        "memory": {
            "store": store,
            "server": login.get("url"),
            "workspace": login.get("workspace"),
            "organisation": login.get("org"),
        },
        "repository": repository_report(cwd),
        **backlog.report(),
        **health.report(store),
        "last_capture": _told(folder / "last-capture.json") or None,
        "last_sync": _told(folder / paths.LAST_SYNC) or None,
        "log": str(folder / "hooks.log"),
    }


def agent_report(one: Tool) -> dict[str, Any]:
    """One agent: whether it is there, and how much of each part is wired; `hooks` is None where we have none for it."""
    told: dict[str, Any] = {"agent": one.name, "title": one.title, "found": one.found, "folder": str(one.home)}
    told["hooks"] = None
    problems = []
    for part in one.parts:
        try:
            state = part.state(files.read(part.path).text)
        except ConfigError as error:
            problems.append(f"{part.path}: {error}" if str(part.path) not in str(error) else str(error))
            state = State()
        told[part.role] = {
            "file": str(part.path),
            "wired": state.wired,
            "missing": state.missing,
            "outdated": state.outdated,
            **({"note": state.note} if state.note else {}),
        }
    return {
        **told,
        "off": one.off or None,
        "problems": problems,
        "state": _state(told, problems),
        "self_test": try_hook(one),
    }


def repository_report(cwd: Path) -> dict[str, Any] | None:
    """The repository that a folder lies in and what its file wishes; None outside any."""
    found = repository(cwd.absolute())
    if found is None:
        return None
    path = find(cwd)
    told: dict[str, Any] = {"id": found.id, "root": str(found.root), "file": None if path is None else str(path)}
    if path is None:
        return told
    try:
        wishes = read_settings(path)
    except ConfigError as error:
        return {**told, "problem": str(error)}
    return {
        **told,
        "workspace": wishes.workspace,
        "scope": wishes.scope,
        "capture": wishes.capture,
        "recall": wishes.recall,
        "ignored": list(wishes.ignored),
    }


def _state(told: dict[str, Any], problems: list[str]) -> str:
    if problems:
        return "broken"
    roles = [told[role] for role in ("hooks", "mcp", "skill") if told[role] is not None]
    # A skill may be there for another agent, and a server of the user's own is not ours.
    if not any((one["wired"] or one["outdated"]) and "note" not in one for one in roles[:-1]):
        return "not installed"
    if any(one["missing"] or one["outdated"] for one in roles):
        return "incomplete"
    return "installed"


def _told(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
