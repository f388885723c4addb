"""`rmem review`, `share` and `unshare`: check and publish what the team knows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import ConfigError
from .cli_context import CliContext
from .options import command_options
from .output import moment, one_line

if TYPE_CHECKING:
    from ..brain import Brain
    from ..team.memory import TeamMemory


def _team(brain: Brain) -> TeamMemory:
    from ..team.identity import author
    from ..team.login import login
    from ..team.memory import TeamMemory

    try:
        found = login()
    except ConfigError:
        found = None  # `rmem status` and `rmem sync` report a broken login
    return TeamMemory(brain, author=author(Path.cwd()), aliases=[found[0].member] if found and found[0].member else [])


@click.command()
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many of each.")
@click.option("--accept", "accepted", metavar="ID", help="Make a rule of what waits.")
@command_options
def review(cli: CliContext, limit: int, accepted: str | None) -> None:
    """What the team should look at: memories of this repository that contradict each other or may be out of date, and
    what you said that may be a rule.

    What waits is shown to nobody until you accept it. Nothing else is changed. Replace what no longer holds with
    `rmem update`, remove it with `rmem forget`, or let an agent remember the new fact in its place.

    \b
    Examples:
      rmem review
      rmem review --json
      rmem review --accept team-3f2a…
    """
    from ..team.identity import repository
    from ..team.review import accept, contradictions, out_of_date, undecided

    if cli.is_remote:
        inbox = f"{cli.address.rstrip('/')}/ui/#/coding?view=inbox"
        raise ConfigError(f"this store is a server; review it at {inbox}, or your own copy without --store")
    if accepted is not None:
        with cli.existing_brain() as brain:
            kept = accept(_team(brain), accepted)
        cli.answer({"id": kept}, f"It is a rule now: {kept}")
        return
    where = repository(Path.cwd())
    with cli.brain_or_empty() as brain:
        team = _team(brain)
        against = contradictions(team, where, limit)
        old = [] if where is None else out_of_date(team, where, limit)
        open_ = undecided(team, limit)
    if cli.json:
        pairs = [{"older": found.older.id, "newer": found.newer.id, "why": found.why} for found in against]
        stale = [{"id": found.id, "why": found.stale} for found in old]
        waiting = [{"id": found.id, "text": found.text} for found in open_]
        cli.document({"contradictions": pairs, "out_of_date": stale, "waiting": waiting})
        return
    for found in against:
        click.echo(f"{found.why}:")
        for side in (found.older, found.newer):
            click.echo(f"  {side.id}  {moment(side.memory.timestamp)}  {side.said_by}  {one_line(side.text)}")
    for past in old:
        click.echo(f"{past.stale}:\n  {past.id}  {moment(past.memory.timestamp)}  {one_line(past.text)}")
    if open_:
        click.echo("A rule? `rmem review --accept ID` makes it one, `rmem forget ID` removes it:")
    for rule in open_:
        click.echo(f"  {rule.id}  {moment(rule.memory.timestamp)}  {one_line(rule.text)}")
    if not against and not old and not open_:
        click.echo("Nothing contradicts and nothing is out of date.")


@click.command()
@click.argument("memory_id", metavar="ID")
@click.option(
    "--to", "scope", type=click.Choice(("repository", "organisation")), default="repository", show_default=True
)
@command_options
def share(cli: CliContext, memory_id: str, scope: str) -> None:
    """Let others see a memory: those who work in its repository, or the whole organisation.

    \b
    Examples:
      rmem share team-3f2a… --to organisation
    """
    _set_scope(cli, memory_id, scope)


@click.command()
@click.argument("memory_id", metavar="ID")
@command_options
def unshare(cli: CliContext, memory_id: str) -> None:
    """Keep a memory to yourself again.

    \b
    Examples:
      rmem unshare team-3f2a…
    """
    _set_scope(cli, memory_id, "personal")


def _set_scope(cli: CliContext, memory_id: str, scope: str) -> None:
    with cli.existing_brain() as brain:
        memory = _team(brain).share(memory_id, scope)
    who = {
        "personal": "for you alone; it leaves the others with the next sync",
        "repository": f"for all who work in {memory.contents.get('repository')}, with the next sync",
        "organisation": "for the whole organisation, with the next sync",
    }
    cli.answer({"id": memory.memory_id, "scope": scope}, f"{memory.memory_id} is {who[scope]}.")
