"""`rmem serve`: serve memories and tables over HTTP, and back up and restore a whole server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .cli_context import CliContext
from .options import command_options
from .output import size, visible
from .progress import progress

if TYPE_CHECKING:
    from ..server.settings import ServerSettings

DATA = click.option("--data", metavar="FOLDER", help="The server's folder. Default: server in $RMEM_HOME.")


@click.group(invoke_without_command=True)
@click.option("--host", metavar="ADDRESS", help="Where to listen. Default: 127.0.0.1, this machine only.")
@click.option("--port", type=int, metavar="N", help="Default: 8765.")
@DATA
@click.option("--config", metavar="FILE", help="Settings in TOML. Default: server.toml in the folder, if there.")
@click.option(
    "--replica", "replicas", multiple=True, metavar="ADDRESS", help="A replica of --store, for recalls; repeatable."
)
@click.option(
    "--server", "servers", multiple=True, metavar="NAME=ADDRESS", help="A further database for workspaces; repeatable."
)
@click.option("--replica-staleness", type=float, metavar="N", help="Seconds that a replica may be behind; 5.")
@click.option("--embedder", metavar="SPEC", help="For new workspaces: static, minilm, onnx:PATH, http:MODEL@URL.")
@click.option("--requests-per-second", type=float, metavar="N", help="Of one organisation; 2000.")
@click.option("--burst", type=int, metavar="N", help="Requests of one organisation at a stroke; 4000.")
@click.option("--concurrent", type=int, metavar="N", help="Requests of one organisation at once; 256.")
@click.option("--body-bytes", type=int, metavar="N", help="The longest body; 33554432.")
@click.option("--statement-length", type=int, metavar="N", help="Characters of the longest SQL statement; 250000.")
@click.option("--statement-seconds", type=float, metavar="N", help="The longest SQL statement; 30.")
@click.option("--rows", type=int, metavar="N", help="The longest answer that is not streamed; 10000.")
@click.option("--threads", type=int, metavar="N", help="Requests that compute at once; 40.")
@click.option("--workers", type=int, metavar="N", help="Processes that run SQL; two for each core, and four at least.")
@click.option("--recall-workers", type=int, metavar="N", help="Processes for recalls; one for each core, at most four.")
@click.option("--shutdown-seconds", type=float, metavar="N", help="To finish running requests when stopped; 30.")
@click.option("--root-path", metavar="PATH", help="The prefix that a reverse proxy takes off, such as /memory.")
@click.option("--behind-proxy", is_flag=True, default=None, help="A reverse proxy with TLS is in front of it.")
@click.option("--no-auth", is_flag=True, help="Ask for no tokens: whoever reaches this machine is admin.")
@command_options
def serve(
    cli: CliContext,
    config: str | None,
    no_auth: bool,
    replicas: tuple[str, ...],
    servers: tuple[str, ...],
    **options: Any,
) -> None:
    """Serve memories and tables over HTTP, with documentation at /docs.

    The first start makes an organisation and a workspace called "default" and prints the token of their admin, once.
    Everything lies in one folder, or in a PostgreSQL database with --store. Every option can also be given as
    RMEM_SERVER_… in the environment or in server.toml. Logs go to standard error, one JSON object to a line.

    \b
    Examples:
      rmem serve
      rmem serve --data /srv/rmem --port 9000
      rmem serve --store postgresql://user@host/memories --host 0.0.0.0
      curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8765/me
      rmem serve --json     # the first token as JSON
      rmem serve backup /mnt/backups/monday --data /srv/rmem
      rmem serve --store postgresql://one/db --server eu2=postgresql://two/db
    """
    context = click.get_current_context()
    if context.invoked_subcommand is not None:
        context.obj = cli
        return
    from ..server.serve import check_address
    from ..server.serve import serve as run

    options |= {"auth": False if no_auth else None, "replicas": replicas or None, "servers": _servers(servers)}
    settings = settings_of(cli, file=config, **options)
    if not settings.auth:
        _warn(cli, "no tokens are asked for; everybody on this machine can read, change and delete everything.")
    if settings.is_exposed:
        _warn(
            cli,
            "tokens and memories cross the network in the clear: the server speaks HTTP, and "
            f"{settings.host} is not this machine alone. Put a reverse proxy with TLS before it (see --behind-proxy).",
        )

    def print_token(token: str) -> None:
        if cli.json:
            cli.document({"url": _url(settings), "token": token})
            return
        click.echo("The token of the admin, which is shown this once:", err=True)
        click.echo(token)

    check_address(settings.host, settings.port)
    where = settings.data if settings.store is None else "a PostgreSQL database"
    cli.note(f"Serving {where} at {_url(settings)}")
    run(settings, on_first_token=print_token)


def _warn(cli: CliContext, text: str) -> None:
    """Print a warning to standard error, with --json as a line of the server's log."""
    if cli.json:
        from ..server.serve import log, log_as_json

        log_as_json()
        log.warning(text)
    else:
        click.echo(click.style(f"WARNING: {text}", fg="red", bold=True), err=True)


@serve.command()
@click.argument("target", metavar="FOLDER")
@DATA
@command_options
def backup(cli: CliContext, target: str, data: str | None) -> None:
    """Copy a whole server to a new FOLDER while it runs: members and tokens, every workspace with its memories and
    tables, audit logs, secrets and settings. What was acknowledged before it began is in it.

    A server on PostgreSQL (--store) is copied by pg_dump. Keys of encryption that are in the environment are not in the
    copy, nor is RMEM_SERVER_SECRET.

    \b
    Examples:
      rmem serve backup /mnt/backups/monday --data /srv/rmem
      rmem serve backup monday --data /srv/rmem --store postgresql://postgres@host/memories
    """
    from ..server.backups import backup as copy

    settings = _settings_of(cli, data)
    with progress("Copying") as bar:
        done = copy(settings, target, on_progress=bar)
    if cli.json:
        cli.document(done)
        return
    click.echo(f"Copied {done['files']:,} files ({size(done['bytes'])}) to {visible(target)}")
    if not done["secret"]:
        cli.note("the secret that signs tokens is not in the copy: keep RMEM_SERVER_SECRET with it")


@serve.command()
@click.argument("source", metavar="FOLDER")
@DATA
@command_options
def restore(cli: CliContext, source: str, data: str | None) -> None:
    """Bring a copy made by `rmem serve backup` back, into a data folder that is new or empty, and with --store into an
    empty database. The copy is checked as `rmem doctor` does, and nothing is left behind if something is wrong with it.

    \b
    Examples:
      rmem serve restore /mnt/backups/monday --data /srv/rmem
      rmem serve restore monday --data /srv/rmem --store postgresql://postgres@host/empty
    """
    from ..server.backups import restore as bring_back

    done = bring_back(_settings_of(cli, data), source)
    cli.answer(done, f"Restored {done['files']:,} files to {visible(done['data'])}; `rmem serve` serves them")


@serve.command("move-workspace")
@click.argument("workspace", metavar="ORGANISATION/WORKSPACE")
@click.option("--to", required=True, metavar="NAME", help="The server to move it to; main is the one of --store.")
@click.option(
    "--server", "servers", multiple=True, metavar="NAME=ADDRESS", help="As given to `rmem serve`; repeatable."
)
@DATA
@command_options
def move_workspace(cli: CliContext, workspace: str, to: str, servers: tuple[str, ...], data: str | None) -> None:
    """Move a workspace to another database server while it is used.

    Memories and tables are copied while writes go on; for the last step writers wait, and then find the workspace at
    its new place. Both sides are compared before the old rows are removed. If it is interrupted, run it again: it goes
    on. All servers have to know the new database (--server) before.

    \b
    Examples:
      rmem serve --store postgresql://one/db move-workspace acme/lab --to eu2 --server eu2=postgresql://two/db
      rmem serve move-workspace acme/lab --to main --data /srv/rmem     # servers as in server.toml
    """
    from ..errors import ConfigError, InputError
    from ..server.control import Control
    from ..server.moves import move_workspace as move

    settings = _settings_of(cli, data, servers)
    if settings.store is None:
        raise ConfigError("a server of files has nowhere to move a workspace to; --store postgresql://… is needed")
    org, slash, name = workspace.partition("/")
    if not slash:
        raise InputError(f"workspace must be ORGANISATION/WORKSPACE, got {workspace!r}", field="workspace")
    control = Control(settings)
    try:
        home = control.organization(org)
        if home is None:
            raise InputError(f"there is no organisation {org!r}", field="workspace")
        with progress("Copying", stopped="Run the same command again: it goes on from here.") as bar:
            done = move(settings, control, home, name, to, on_progress=bar)
    finally:
        control.close()
    if cli.json:
        cli.document(done)
    elif not done["moved"]:
        click.echo(f"{visible(workspace)} is on {visible(to)} already")
    else:
        click.echo(f"Moved {visible(workspace)} to {visible(to)}; writers waited {done['locked_seconds']:.2f} s")


def _servers(given: tuple[str, ...]) -> dict[str, str] | None:
    """NAME=ADDRESS as the settings take it; None where nothing is given."""
    return {name: address for name, _, address in (pair.partition("=") for pair in given)} or None


def _settings_of(cli: CliContext, data: str | None, servers: tuple[str, ...] = ()) -> ServerSettings:
    """Return the settings for a command on a server's data; options may come before or after its name."""
    context = click.get_current_context()
    assert context.parent is not None
    given = context.parent.params
    named = _servers(servers or given.get("servers") or ())
    return settings_of(
        cli, data=data if data is not None else given.get("data"), file=given.get("config"), servers=named
    )


def _url(settings: ServerSettings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def settings_of(cli: CliContext, *, file: str | None = None, **options: Any) -> ServerSettings:
    """Return the settings of a server from options, the environment and its file."""
    from ..server.settings import ServerSettings

    return ServerSettings.read({**options, "store": cli.store}, file=None if file is None else Path(file))
