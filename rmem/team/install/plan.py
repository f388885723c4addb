"""Plan and apply an install or uninstall. A tool's files change together or not at all; a file that cannot be read or
changed safely stops its tool and no other."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import ConfigError
from . import files
from .files import FileSnapshot, Ledger
from .parts import Made, Part
from .tool import Tool

_WIDEST = 160
Planner = Callable[[FileSnapshot, Sequence[Part]], "FileChange | None"]


@dataclass(slots=True)
class FileChange:
    """One file: what it is now, what it will be (None: gone), and in words what differs. `clean` if nothing of ours is
    in it now, `known` if nobody but us wrote what is there now."""

    seen: FileSnapshot
    after: bytes | None
    summary: list[str]
    made: Made = field(default_factory=list)
    clean: bool = True
    known: bool = False

    @property
    def path(self) -> Path:
        return self.seen.path

    @property
    def kind(self) -> str:
        return "create" if self.seen.data is None else "remove" if self.after is None else "change"

    def diff(self) -> list[str]:
        """Return removed and added lines, without context lines, which may be private."""
        before = (self.seen.text or "").splitlines()
        after = [] if self.after is None else self.after.decode().removeprefix("\ufeff").splitlines()
        lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
        return [_short(line) for line in lines if not line.startswith("@@")]


@dataclass(slots=True)
class InstallPlan:
    """All changes for one tool, or the reason why there are none."""

    tool: Tool
    changes: list[FileChange] = field(default_factory=list)
    refused: str = ""


def plan_install(tool: Tool) -> InstallPlan:
    """Plan what is missing or outdated."""
    return _plan(tool, _with_parts)


def plan_uninstall(tool: Tool, ledger: Ledger, staying: Sequence[Tool] = ()) -> InstallPlan:
    """Plan the removal of what is ours. Keep a file that a `staying` tool also needs."""
    needed = {part.path for other in staying if _is_wired(other) for part in other.parts}
    return _plan(tool, lambda seen, parts: None if seen.path in needed else _without_parts(seen, parts, ledger))


def distinct(plans: Sequence[InstallPlan]) -> None:
    """Leave a file that several tools share to the first of them."""
    taken: set[Path] = set()
    for plan in plans:
        plan.changes = [change for change in plan.changes if change.path not in taken]
        taken |= {change.path for change in plan.changes}


def install(plan: InstallPlan, ledger: Ledger) -> None:
    """Apply the plan. If a file cannot be written, restore those before it."""
    done: list[FileChange] = []
    try:
        for change in plan.changes:
            data = change.after or b""
            folders = files.write(change.seen, data)
            done.append(change)
            ledger.record_install(plan.tool.name, change.seen, data, change.made, folders, change.clean)
    except ConfigError:
        _put_back(done, ledger)
        raise


def uninstall(plan: InstallPlan, ledger: Ledger) -> None:
    """Apply the plan. Back up files that changed since the install."""
    done: list[FileChange] = []
    try:
        for change in plan.changes:
            if not change.known:
                ledger.keep(plan.tool.name, change.seen)
            files.write(change.seen, change.after)
            done.append(change)
    except ConfigError:
        _put_back(done, ledger)
        raise
    for change in plan.changes:
        ledger.record_removal(change.seen)


def _plan(tool: Tool, change_of: Planner) -> InstallPlan:
    plan = InstallPlan(tool)
    for path in dict.fromkeys(part.path for part in tool.parts):
        parts = [part for part in tool.parts if part.path == path]
        try:
            seen = files.read(path)
            change = change_of(seen, parts)
        except ConfigError as error:
            message = str(error)
            plan.refused = message if str(path) in message else f"{path}: {message}"
            plan.changes = []
            return plan
        if change is not None:
            if seen.mode is not None and not seen.mode & 0o222:
                plan.refused, plan.changes = f"{path} is read-only", []
                return plan
            plan.changes.append(change)
    return plan


def _with_parts(seen: FileSnapshot, parts: Sequence[Part]) -> FileChange | None:
    text = seen.text
    made: Made = []
    steps: list[str] = []
    clean = True
    for part in parts:
        state = part.state(text)
        clean = clean and not state.wired and not state.outdated
        text, more = part.add(text)
        made += more
        steps += [f"add {_describe(part, what)}" for what in state.missing]
        steps += [f"renew {_describe(part, what)}" for what in state.outdated]
    data = seen.encode(text or "")
    return None if data == seen.data else FileChange(seen, data, steps, made, clean)


def _without_parts(seen: FileSnapshot, parts: Sequence[Part], ledger: Ledger) -> FileChange | None:
    if seen.data is None:
        return None
    steps: list[str] = []
    entry = ledger.entry(seen.path)
    made = None if entry is None else [tuple(path) for path in entry.made]
    text = seen.text
    for part in parts:
        if text is not None:
            state = part.state(text)
            steps += [f"remove {_describe(part, what)}" for what in [*state.wired, *state.outdated] if not state.note]
            text = part.remove(text, made)
    restorable, original = ledger.original(seen)
    if restorable:
        return FileChange(seen, original, steps, known=True)
    if text == seen.text:
        return None
    ours_alone = entry is not None and entry.before is None and (text or "").strip() in ("", "{}")
    return FileChange(seen, None if text is None or ours_alone else seen.encode(text), steps)


def _is_wired(tool: Tool) -> bool:
    """Return whether a tool has our hooks, or our MCP server if it has no hooks."""
    try:
        state = tool.parts[0].state(files.read(tool.parts[0].path).text)
    except ConfigError:
        return False
    return bool(state.wired or state.outdated) and not state.note


def _put_back(done: Sequence[FileChange], ledger: Ledger) -> None:
    for change in reversed(done):
        files.write(files.read(change.path), change.seen.data)
        if change.seen.data is None:
            ledger.record_removal(change.seen)


def _describe(part: Part, what: str) -> str:
    return f"hook {what}" if part.role == "hooks" else f"MCP server {what}" if part.role == "mcp" else what


def _short(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[:_WIDEST]}…"
