"""Claude Code: hooks in settings.json, MCP servers of the user in .claude.json, skills in a folder."""

from __future__ import annotations

from .commands import Command
from .parts import Hooks, McpServerPart, server_of
from .switches import json_switch
from .tool import SECONDS, Tool, folder, handlers, skill, user_home

NAME = "claude-code"
EVENTS = (
    "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "PreCompact", "Stop", "SubagentStop",
    "SessionEnd",
)  # fmt: skip

MATCHERS = {"PostToolUse": "*", "PostToolUseFailure": "*"}


def tool(command: Command) -> Tool:
    home = folder("CLAUDE_CONFIG_DIR", user_home() / ".claude")
    # The file with the servers lies beside the folder, unless the variable moves both.
    servers = home / ".claude.json" if home != user_home() / ".claude" else user_home() / ".claude.json"
    settings = home / "settings.json"
    return Tool(
        NAME,
        "Claude Code",
        home,
        ("claude",),
        (
            Hooks(
                settings,
                NAME,
                handlers(NAME, EVENTS, command, timeout=SECONDS),
                matchers=MATCHERS,
            ),
            McpServerPart(servers, {"type": "stdio", **server_of(command)}),
            skill(home),
        ),
        "SessionStart",
        off=json_switch(settings, ("disableAllHooks",), True),
    )
