"""Coding agents connected by an MCP server and a skill alone, one row for each: they recall and remember by MCP, and
nothing is captured by itself. Some have hooks too, for which there is no dialect yet."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .commands import Command
from .parts import McpServerPart, server_of
from .tool import Tool, folder, skill, user_home

_CONFIG = "~/.config"


class ToolRow(NamedTuple):
    """A tool's folder, what moves it, its file of MCP servers with the key they are under, and where its skills are.

    `servers` are names below `home`: the first that exists, or else the first. `moved` is an environment variable that
    names another `home`, `file_moved` one that names another file of servers. `skills` is the folder with the folder
    "skills" in it, `home` if empty.
    """

    title: str
    programs: tuple[str, ...]
    home: str
    servers: tuple[str, ...]
    under: str = "mcpServers"
    moved: str = ""
    file_moved: str = ""
    skills: str = ""
    value: Callable[[Command], dict[str, Any]] = server_of


def _local(command: Command) -> dict[str, Any]:
    """An MCP server as OpenCode has it, and Kilo Code, which is made from it."""
    return {"type": "local", "command": [*command.words, "mcp"], "enabled": True}


# The pages that each row was written from are listed in docs/install.md.
ROWS = {
    "amp": ToolRow(
        "Amp",
        ("amp",),
        f"{_CONFIG}/amp",
        ("settings.json", "settings.jsonc"),
        under="amp.mcpServers",
        file_moved="AMP_SETTINGS_FILE",
    ),
    "cline": ToolRow(
        "Cline",
        ("cline",),
        "~/.cline",
        ("data/settings/cline_mcp_settings.json",),
        moved="CLINE_DIR",
        file_moved="CLINE_MCP_SETTINGS_PATH",
    ),
    "kilo": ToolRow(
        "Kilo Code",
        ("kilo",),
        f"{_CONFIG}/kilo",
        ("kilo.jsonc", "kilo.json"),
        under="mcp",
        skills="~/.kilo",
        value=_local,
    ),
    "kiro": ToolRow("Kiro", ("kiro", "kiro-cli"), "~/.kiro", ("settings/mcp.json",)),
    "qwen": ToolRow("Qwen Code", ("qwen",), "~/.qwen", ("settings.json",), moved="QWEN_HOME"),
    "windsurf": ToolRow("Windsurf", ("windsurf",), "~/.codeium/windsurf", ("mcp_config.json",)),
    "zed": ToolRow(
        "Zed", ("zed", "zeditor"), f"{_CONFIG}/zed", ("settings.json",), under="context_servers", skills="~/.agents"
    ),
}


def tool(name: str, command: Command) -> Tool:
    row = ROWS[name]
    home = folder(row.moved, _place(row.home))
    paths = [home / file for file in row.servers]
    servers = folder(row.file_moved, next((path for path in paths if path.exists()), paths[0]))
    skills = _place(row.skills) if row.skills else home
    parts = (McpServerPart(servers, row.value(command), row.under), skill(skills))
    note = f"New sessions of {row.title} use it by MCP; nothing is captured by itself there."
    return Tool(name, row.title, home, row.programs, parts, note=note)


def _place(path: str) -> Path:
    """A folder as the tools find it; the one of configurations can be moved on Linux."""
    if path.startswith(_CONFIG) and sys.platform == "linux":
        return folder("XDG_CONFIG_HOME", user_home() / ".config") / path.removeprefix(f"{_CONFIG}/")
    return user_home() / path.removeprefix("~/")
