"""The command that installed hooks run, and how it is recognised again: `rmem hook <agent> <event>`, and `rmem mcp`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER = "remanence"
_HOOK = re.compile(
    r"""(?:^|[\s/\\"'])(?:rmem(?:\.exe)?|remanence\.cli)["']?\s+hook\s+(?P<agent>[\w-]+)\s+(?P<event>[\w.]+)\s*$""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Command:
    """How to call `rmem`: by name if a shell finds it, else by its full path."""

    words: tuple[str, ...] = ("rmem",)

    @classmethod
    def here(cls) -> Command:
        """Return the running `rmem`, by name if it is on the PATH without an activated environment."""
        if shutil.which("rmem", path=lasting_path()):
            return cls()
        running = Path(sys.argv[0])
        if running.stem.lower() == "rmem" and running.exists():
            return cls((str(running.absolute()),))
        beside = Path(sys.executable).with_name("rmem.exe" if os.name == "nt" else "rmem")
        return cls((str(beside),)) if beside.exists() else cls((sys.executable, "-m", "rmem"))

    def hook(self, agent: str, event: str) -> str:
        return " ".join([*(_quote(word) for word in self.words), "hook", agent, event])

    @property
    def program(self) -> str:
        return self.words[0]

    @property
    def arguments(self) -> list[str]:
        """Return the arguments that start the MCP server."""
        return [*self.words[1:], "mcp"]


def parse_hook(command: Any) -> tuple[str, str] | None:
    """Return agent and event of one of our hook commands; None for others."""
    found = _HOOK.search(command) if isinstance(command, str) else None
    return None if found is None else (found["agent"], found["event"])


def serves(words: Any) -> bool:
    """Return whether a command starts our MCP server."""
    if not isinstance(words, Sequence) or isinstance(words, str) or len(words) < 2 or words[-1] != "mcp":
        return False
    program = str(words[0]).replace("\\", "/").rpartition("/")[2].lower()
    return program in ("rmem", "rmem.exe") or "remanence.cli" in words or list(words[1:3]) == ["-m", "rmem"]


def lasting_path() -> str:
    """Return the PATH without an activated environment, which other programs do not have."""
    environment = os.environ.get("VIRTUAL_ENV")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if environment:
        folders = [folder for folder in folders if not Path(folder).is_relative_to(environment)]
    return os.pathsep.join(folders)


def _quote(word: str) -> str:
    if os.name == "nt":
        return f'"{word}"' if " " in word else word
    return shlex.quote(word)
