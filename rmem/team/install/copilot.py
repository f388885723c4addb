"""Copilot CLI: a file of our own in its folder of hooks, MCP servers in mcp-config.json, skills in a folder."""

from __future__ import annotations

import json
import os

from .commands import Command, parse_hook
from .parts import McpServerPart, Whole, server_of
from .switches import json_switch
from .tool import SECONDS, Tool, folder, skill, user_home

NAME = "copilot"
EVENTS = (
    "sessionStart", "userPromptSubmitted", "postToolUse", "postToolUseFailure", "preCompact", "agentStop",
    "subagentStop", "sessionEnd",
)  # fmt: skip


def tool(command: Command) -> Tool:
    home = folder("COPILOT_HOME", user_home() / ".copilot")
    return Tool(
        NAME,
        "Copilot CLI",
        home,
        ("copilot",),
        (
            Whole(home / "hooks" / "remanence.json", _hooks(command), _ours, "hooks", EVENTS, _command),
            McpServerPart(home / "mcp-config.json", {"type": "local", **server_of(command), "tools": ["*"]}),
            skill(home),
        ),
        "sessionStart",
        off=json_switch(home / "settings.json", ("disableAllHooks",), True),
    )


def _hooks(command: Command) -> str:
    listed = {event: [_handler(command.hook(NAME, event))] for event in EVENTS}
    return json.dumps({"version": 1, "hooks": listed}, indent=2, ensure_ascii=False) + "\n"


def _handler(command: str) -> dict[str, object]:
    return {"type": "command", "bash": command, "powershell": command, "timeoutSec": SECONDS}


def _command(text: str, event: str) -> str | None:
    listed = json.loads(text)["hooks"].get(event) or [{}]
    command = listed[0].get("powershell" if os.name == "nt" else "bash")
    return None if command is None else str(command)


def _ours(text: str) -> bool:
    """Return whether all commands of a hooks file are ours."""
    try:
        listed = json.loads(text)["hooks"]
        commands = [handler["bash"] for handlers in listed.values() for handler in handlers]
    except (ValueError, LookupError, TypeError, AttributeError):
        return False
    return bool(commands) and all((parse_hook(command) or ("",))[0] == NAME for command in commands)
