"""`rmem hook`, the command of coding agents. The work is done in rmem.team.hook, which starts without this module."""

from __future__ import annotations

import click

from ..team.events import AGENTS


@click.command("hook")
@click.argument("agent", type=click.Choice(AGENTS))
@click.argument("event")
@click.pass_context
def hook(context: click.Context, agent: str, event: str) -> None:
    """Take in one event of a coding agent: its JSON on standard input.

    `rmem install` writes this command into the configuration of your coding agents; you need not call it yourself.
    The event is handed to a spool and kept in the background; where the agent can take something in, what the team
    knows about it is printed. It never delays the agent for long and never fails: problems are lines in hooks.log of
    the team folder.

    \b
    Examples:
      echo '{"session_id": "1", "cwd": ".", "source": "startup"}' | rmem hook claude-code SessionStart
    """
    from ..team.hook import main

    context.exit(main([agent, event]))
