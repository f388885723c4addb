"""Connect coding agents to the team memory: `rmem install`, `rmem uninstall` and `rmem status`. One module for each
agent says what goes where; `plan` shows and applies it, `jsonc` and `toml` edit, `files` reads, writes and keeps
backups."""

from __future__ import annotations

from importlib import import_module

from ..events import AGENTS
from .commands import Command
from .tool import Tool

__all__ = ["AGENTS", "Command", "Tool", "tool"]


def tool(name: str, command: Command | None = None) -> Tool:
    """A coding agent by its name, as this machine has it."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    made: Tool = module.tool(command or Command.here())
    return made
