"""`rmem mcp`: the team memory for a coding agent, on standard input and output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .face import Face

if TYPE_CHECKING:
    from ..brain import Brain
    from ..mcp import Caller
    from ..team.sessions import Sessions


@click.command("mcp")
@click.option("--agent", default="mcp", show_default=True, help="Who the memories say they came from.")
@click.option("--project", type=click.Path(file_okay=False), help="The project's folder; default: here.")
@click.pass_obj
def mcp(face: Face, agent: str, project: str | None) -> None:
    """Speak the Model Context Protocol on standard input and output.

    Coding agents start this themselves once `rmem install` has wired it. It offers the tools recall, remember, forget,
    get_memory, list_recent, session_state, who_knows, file_history and feedback, and the briefing as a resource.

    \b
    Examples:
      claude mcp add remanence -- rmem mcp
      rmem mcp --project ~/src/etl
    """
    from ..errors import ConfigError

    try:
        from ..mcp import build
    except ImportError as error:
        raise ConfigError(f"rmem mcp needs {error.name}: pip install 'remanence[mcp]'") from error
    from ..brain import Brain
    from ..team.sessions import Sessions

    folder = Path(project or os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    with Brain(face.address, privacy="default") as brain:
        build(lambda: _caller(brain, agent, folder, Sessions())).run()


def _caller(brain: Brain, agent: str, folder: Path, sessions: Sessions) -> Caller:
    """Whoever started this, where they are now: the branch may change while we run."""
    from ..mcp import Caller
    from ..team.identity import author, repository
    from ..team.memory import TeamMemory

    return Caller(TeamMemory(brain, author=author(folder)), repository(folder), agent, sessions=sessions)
