"""OpenCode: a plugin file that passes events on, MCP servers in opencode.json or opencode.jsonc, skills in a folder."""

from __future__ import annotations

import json
import re

from .commands import Command
from .parts import McpServerPart, Whole
from .tool import MARK, Tool, folder, packaged_text, skill, user_home

NAME = "opencode"
EVENTS = (
    "session.created",
    "chat.message",
    "tool.execute.after",
    "session.compacting",
    "session.idle",
    "session.deleted",
)


def tool(command: Command) -> Tool:
    home = folder("OPENCODE_CONFIG_DIR", folder("XDG_CONFIG_HOME", user_home() / ".config") / "opencode")
    settings = next((path for path in (home / "opencode.jsonc", home / "opencode.json") if path.exists()), None)
    plugin = packaged_text("opencode.js").replace('["rmem"]', json.dumps(list(command.words), ensure_ascii=False))
    value = {"type": "local", "command": [*command.words, "mcp"], "enabled": True}
    return Tool(
        NAME,
        "OpenCode",
        home,
        ("opencode",),
        (
            Whole(home / "plugins" / "remanence.js", plugin, lambda text: MARK in text, "hooks", EVENTS, _command),
            McpServerPart(settings or home / "opencode.json", value, under="mcp"),
            skill(home),
        ),
        "session.created",
    )


def _command(text: str, event: str) -> str | None:
    found = re.search(r"^const RMEM = (\[.*\])$", text, re.MULTILINE)
    return None if found is None else Command(tuple(json.loads(found[1]))).hook(NAME, event)
