"""`rmem mcp`: the team memory for a coding agent, on standard input and output."""

from __future__ import annotations

import os
from pathlib import Path

import click

from .cli_context import CliContext


@click.command("mcp")
@click.option("--agent", help="Who the memories say they came from; default: what the client calls itself.")
@click.option("--project", type=click.Path(file_okay=False), help="The project's folder; default: here.")
@click.pass_obj
def mcp(cli: CliContext, agent: str | None, project: str | None) -> None:
    """Speak the Model Context Protocol on standard input and output.

    Coding agents start this themselves once `rmem install` has wired it. It offers the tools recall, remember, forget,
    get_memory, list_recent, session_state, who_knows, file_history and feedback, and as resources the briefing and
    memories. A server (`rmem serve`) offers the same over HTTP at /workspaces/NAME/mcp.

    \b
    Examples:
      claude mcp add remanence -- rmem mcp
      rmem mcp --project ~/src/etl
    """
    from ..extras import require

    require("mcp", "rmem mcp")
    from ..mcp.local import LocalHost
    from ..mcp.server import build

    folder = Path(project or os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    with LocalHost(cli.address, folder, agent) as host:
        build(host).run()
