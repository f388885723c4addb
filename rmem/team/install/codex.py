"""Codex CLI: hooks in hooks.json, MCP servers in config.toml, skills in the folder that several tools share."""

from __future__ import annotations

from .commands import Command
from .parts import Hooks, server_of
from .switches import toml_switch
from .toml import TomlServer
from .tool import SECONDS, Tool, folder, handlers, skill, user_home

NAME = "codex"
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "SubagentStop", "Stop", "SessionEnd")
_END_SECONDS = 3  # Codex allows the end of a session no more


def tool(command: Command) -> Tool:
    home = folder("CODEX_HOME", user_home() / ".codex")
    wanted = handlers(NAME, EVENTS, command, timeout=SECONDS)
    wanted["SessionEnd"]["timeout"] = _END_SECONDS
    settings = home / "config.toml"
    return Tool(
        NAME,
        "Codex",
        home,
        ("codex",),
        (
            Hooks(home / "hooks.json", NAME, wanted),
            TomlServer(settings, server_of(command)),
            skill(user_home() / ".agents"),
        ),
        "SessionStart",
        note="Codex runs new hooks only after you trust them: type /hooks in it once.",
        off=toml_switch(settings, ("features", "hooks")) or toml_switch(settings, ("features", "codex_hooks")),
    )
