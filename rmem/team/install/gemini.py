"""Gemini CLI: hooks and MCP servers in settings.json, skills in the shared folder. Not in its own folder too: Gemini
warns about a duplicate skill."""

from __future__ import annotations

from .commands import Command
from .parts import Hooks, McpServerPart, server_of
from .switches import json_switch
from .tool import SECONDS, Tool, folder, handlers, skill, user_home

NAME = "gemini"
EVENTS = ("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd")


def tool(command: Command) -> Tool:
    place = folder("GEMINI_CLI_HOME", user_home())
    home = place / ".gemini"
    settings = home / "settings.json"
    return Tool(
        NAME,
        "Gemini CLI",
        home,
        ("gemini",),
        (
            Hooks(settings, NAME, handlers(NAME, EVENTS, command, name="remanence", timeout=SECONDS * 1000)),
            McpServerPart(settings, server_of(command)),
            skill(place / ".agents"),
        ),
        "SessionStart",
        off=json_switch(settings, ("hooksConfig", "enabled"), False),
    )
