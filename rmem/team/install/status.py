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
from .parts import PartState
from .selftest import try_hook
from .tool import Tool


def report(cwd: Path, store: str) -> dict[str, Any]:
    """Collect everything as one document. Installed hooks are run once, which leaves nothing behind."""
    folder = config.home() / "team"
    command = Command.here()
    login = _read_json(folder / "login.json")
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
        "last_capture": _read_json(folder / "last-capture.json") or None,
        "last_sync": _read_json(folder / paths.LAST_SYNC) or None,
        "log": str(folder / "hooks.log"),
    }


def agent_report(tool: Tool) -> dict[str, Any]:
    """Report one agent: whether it is present, and how much of each part is wired; `hooks` is None if it has none."""
    report: dict[str, Any] = {"agent": tool.name, "title": tool.title, "found": tool.found, "folder": str(tool.home)}
    report["hooks"] = None
    problems = []
    for part in tool.parts:
        try:
            state = part.state(files.read(part.path).text)
        except ConfigError as error:
            problems.append(f"{part.path}: {error}" if str(part.path) not in str(error) else str(error))
            state = PartState()
        report[part.role] = {
            "file": str(part.path),
            "wired": state.wired,
            "missing": state.missing,
            "outdated": state.outdated,
            **({"note": state.note} if state.note else {}),
        }
    return {
        **report,
        "off": tool.off or None,
        "problems": problems,
        "state": _state(report, problems),
        "self_test": try_hook(tool),
    }


def repository_report(cwd: Path) -> dict[str, Any] | None:
    """Report a folder's repository and its settings; None outside a repository."""
    found = repository(cwd.absolute())
    if found is None:
        return None
    path = find(cwd)
    report: dict[str, Any] = {"id": found.id, "root": str(found.root), "file": None if path is None else str(path)}
    if path is None:
        return report
    try:
        settings = read_settings(path)
    except ConfigError as error:
        return {**report, "problem": str(error)}
    return {
        **report,
        "workspace": settings.workspace,
        "scope": settings.scope,
        "capture": settings.capture,
        "recall": settings.recall,
        "ignored": list(settings.ignored),
    }


def _state(report: dict[str, Any], problems: list[str]) -> str:
    if problems:
        return "broken"
    roles = [report[role] for role in ("hooks", "mcp", "skill") if report[role] is not None]
    # A skill may be there for another agent, and a server of the user's own is not ours.
    if not any((state["wired"] or state["outdated"]) and "note" not in state for state in roles[:-1]):
        return "not installed"
    if any(state["missing"] or state["outdated"] for state in roles):
        return "incomplete"
    return "installed"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return saved if isinstance(saved, dict) else {}
