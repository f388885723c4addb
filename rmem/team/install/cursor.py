"""Cursor: hooks in hooks.json, MCP servers in mcp.json, skills in a folder."""

from __future__ import annotations

from .commands import Command
from .parts import Hooks, McpServerPart, server_of
from .tool import SECONDS, Tool, skill, user_home

NAME = "cursor"
EVENTS = (
    "sessionStart", "beforeSubmitPrompt", "afterFileEdit", "afterShellExecution", "afterMCPExecution", "preCompact",
    "subagentStop", "stop", "sessionEnd",
)  # fmt: skip


def tool(command: Command) -> Tool:
    home = user_home() / ".cursor"
    wanted = {event: {"command": command.hook(NAME, event), "timeout": SECONDS} for event in EVENTS}
    return Tool(
        NAME,
        "Cursor",
        home,
        ("cursor", "cursor-agent"),
        (
            Hooks(home / "hooks.json", NAME, wanted, grouped=False, beside={"version": 1}),
            McpServerPart(home / "mcp.json", server_of(command)),
            skill(home),
        ),
        "sessionStart",
    )
