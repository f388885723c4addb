"""The same as `rmem install claude-code` in Claude Code's own plugin format: manifest, hooks, MCP server and skill, for
those who install from a marketplace. `python plugins/claude_code_plugin.py FOLDER` writes it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rmem.team.install.claude_code import EVENTS, MATCHERS, NAME
from rmem.team.install.commands import SERVER, Command
from rmem.team.install.parts import server_of
from rmem.team.install.tool import MARK, SECONDS, SKILL, handlers, packaged_text

ABOUT = "The team's shared memory of a codebase: what was learned, decided and fixed, shown to agents when it fits."
HOME = "https://github.com/remanence/rmem"


def plugin(command: Command | None = None) -> dict[str, str]:
    """The files of the plugin by their paths. Commands are `rmem …`, which must be on the PATH."""
    command = command or Command()
    hooks = {
        event: [{**({"matcher": MATCHERS[event]} if event in MATCHERS else {}), "hooks": [handler]}]
        for event, handler in handlers(NAME, EVENTS, command, timeout=SECONDS).items()
    }
    manifest = {
        "name": SKILL,
        "version": version("rmem"),
        "description": ABOUT,
        "author": {"name": "The Remanence authors", "url": HOME},
        "homepage": HOME,
        "repository": HOME,
        "license": "Apache-2.0",
        "keywords": ["memory", "team", "recall", "mcp"],
    }
    return {
        ".claude-plugin/plugin.json": _json(manifest),
        "hooks/hooks.json": _json({"description": ABOUT, "hooks": hooks}),
        ".mcp.json": _json({"mcpServers": {SERVER: server_of(command)}}),
        f"skills/{SKILL}/SKILL.md": _skill(),
    }


def marketplace() -> str:
    """The file at the root of a repository that lists the plugin: `claude plugin marketplace add remanence/rmem`."""
    listed = {"name": SKILL, "source": "./plugins/claude-code", "description": ABOUT}
    owner = {"name": "The Remanence authors", "url": HOME}
    return _json({"name": SKILL, "owner": owner, "metadata": {"description": ABOUT}, "plugins": [listed]})


def _skill() -> str:
    """The skill without the line that says who wrote it into the user's folder."""
    lines = packaged_text("skill.md").splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if MARK in line)
    return "".join([*lines[:at], *lines[at + 2 :]])  # with the blank line behind it


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write(folder: Path) -> None:
    for name, text in plugin().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
