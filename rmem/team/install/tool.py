"""A coding agent that is, or could be, installed on this machine: where its files are and what is put into them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from .commands import Command
from .parts import Part, Whole

SKILL = "remanence"
MARK = "rmem uninstall"
SECONDS = 10  # a hook is done in a fraction of one; this is for a machine that swaps


@dataclass(frozen=True, slots=True)
class Tool:
    """`home` is its folder, `programs` its names on the PATH, `parts` what we put there: hooks first, the MCP server
    first where we have no hooks for it. `start` is its name for the start of a session (empty without hooks), `note` is
    what is left to the user, and `off` says that all hooks are switched off, and where."""

    name: str
    title: str
    home: Path
    programs: tuple[str, ...]
    parts: Sequence[Part]
    start: str = ""
    note: str = ""
    off: str = ""

    @property
    def found(self) -> bool:
        """Return whether the tool is on this machine: its folder exists, or a shell finds it."""
        return self.home.is_dir() or any(shutil.which(name) for name in self.programs)


def user_home() -> Path:
    """Return the home folder as the tools see it."""
    return Path(os.environ.get("HOME") or Path.home()) if os.name != "nt" else Path.home()


def folder(variable: str, otherwise: Path) -> Path:
    """Return a folder that an environment variable may move."""
    given = os.environ.get(variable, "").strip()
    return Path(given).expanduser().absolute() if given else otherwise


def skill(home: Path) -> Whole:
    """Return the skill file, which teaches an agent when to use its memory."""
    return Whole(home / "skills" / SKILL / "SKILL.md", packaged_text("skill.md"), lambda text: MARK in text, "skill")


@cache
def packaged_text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def handlers(agent: str, events: Sequence[str], command: Command, **more: object) -> dict[str, dict[str, object]]:
    return {event: {"type": "command", "command": command.hook(agent, event), **more} for event in events}
