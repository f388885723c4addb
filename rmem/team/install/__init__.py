"""Connect coding agents to the team memory: `rmem install`, `rmem uninstall` and `rmem status`. One module for each
agent with hooks, and a row of `mcp_tools` for each other, says what goes where; `plan` shows and applies it, `jsonc`
and `toml` edit, `files` reads, writes and keeps backups."""

from __future__ import annotations

from importlib import import_module

from .. import events
from . import mcp_tools
from .commands import Command
from .tool import Tool

AGENTS = (*events.AGENTS, *mcp_tools.ROWS)

__all__ = ["AGENTS", "Command", "Tool", "tool"]


def tool(name: str, command: Command | None = None) -> Tool:
    """Return a coding agent by its name, as configured on this machine."""
    command = command or Command.here()
    if name in mcp_tools.ROWS:
        return mcp_tools.tool(name, command)
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    made: Tool = module.tool(command)
    return made
