"""`rmem login`, `logout` and `sync`: share a team's memories through a server."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .cli_context import CliContext
from .options import command_options
from .progress import progress


@click.command()
@click.argument("url", metavar="URL")
@click.option("--token", metavar="TOKEN", envvar="RMEM_API_KEY", help="Else it is asked for, or read from stdin.")
@click.option("--workspace", default="default", show_default=True, help="The workspace of your team.")
@command_options
def login(cli: CliContext, url: str, token: str | None, workspace: str) -> None:
    """Share what your agents learn with your team, by a server that `rmem serve` runs.

    Memories of a repository or of the organisation travel both ways; personal ones stay here. Without a connection
    everything goes on, and the two sides meet when there is one.

    \b
    Examples:
      rmem login https://memory.acme.io --workspace platform
      rmem member add ann write && rmem token create ann | rmem login http://127.0.0.1:8765
    """
    from ..errors import InputError
    from ..team.identity import author
    from ..team.login import Login, keep
    from ..team.sync import SyncServer

    if token is None:
        token = str(click.prompt("Token", hide_input=True)) if sys.stdin.isatty() else sys.stdin.read()
    token = (token or "").strip()
    if not token:
        raise InputError("token must be given", field="token")
    server = SyncServer(Login(url, workspace), token)
    try:
        me = server.me()
        found = Login(url, workspace, str(me.get("org") or ""), str(me.get("member") or ""))
        server.pull(0, [])  # fails if the token may not read this workspace
    finally:
        server.close()
    keep(found, token)
    with cli.brain() as brain:
        brain.store.record(author(), "login", [None], origin=url, workspace=workspace)
    cli.answer(
        {"url": url, "workspace": workspace, "org": found.org, "member": found.member},
        f"Sharing with {url}, workspace {workspace}, as {found.member or 'you'}. `rmem sync` does it now.",
    )


@click.command()
@command_options
def logout(cli: CliContext) -> None:
    """Stop sharing. What is here stays here, what is there stays there.

    \b
    Examples:
      rmem logout
    """
    from ..team.login import drop

    known = drop()
    cli.answer({"logged_out": known}, "Logged out; the token was removed." if known else "There was no login.")


@click.command()
@command_options
def sync(cli: CliContext) -> None:
    """Bring this memory and the team's together now. Agents' hooks do it by themselves from time to time.

    You receive what the team knows of the repositories that your agents worked in, that you imported, and of the one in
    whose folder you run this.

    \b
    Examples:
      rmem sync
    """
    from ..errors import ConfigError
    from ..team.login import login as known
    from ..team.sync import sync as run

    found = known()
    if found is None:
        raise ConfigError("there is no login; run `rmem login URL` first")
    _note_repository()
    with cli.brain() as brain, progress("Sharing") as bar:
        done = run(brain, *found, on_progress=bar)
    if cli.json:
        counts = {"sent": done.sent, "received": done.received, "changed": done.changed}
        cli.document({**counts, "refused": done.refused})
        return
    click.echo(f"Sent {done.sent:,}, received {done.received:,}, of which {done.changed:,} changed something here.")
    from ..team.known_repositories import repositories

    if not repositories():
        cli.note(
            "You receive what the team knows of repositories that you have, and none is known yet: run this in a clone."
        )


def _note_repository() -> None:
    """Record that this user has the repository of the current folder, unless its file says that it is not recalled."""
    from ..team.consent import may_recall
    from ..team.identity import repository
    from ..team.known_repositories import note_repository

    here = repository(Path.cwd())
    if here is not None and may_recall(str(here.root)):
        note_repository(here.id)
