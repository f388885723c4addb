"""`rmem migrate`: copy an SQLite file into PostgreSQL."""

from __future__ import annotations

import click

from .cli_context import CliContext
from .options import command_options
from .output import visible
from .progress import progress


@click.command()
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option("--dry-run", is_flag=True, help="Only say what would be copied.")
@command_options
def migrate(cli: CliContext, source: str, target: str, dry_run: bool) -> None:
    """Copy an SQLite file into PostgreSQL: memories with everything, feedback, trash, audit log, keys, and tables.

    The target must be empty, or one that an interrupted run began to fill; that goes on where it stopped. A table of
    the same name with other contents is refused. Counts and checksums of both sides are compared. The source
    stays as it is.

    \b
    Examples:
      rmem migrate sqlite:///memories.db postgresql://user@host/database
      rmem migrate memories.db "postgresql://user@host/database?tenant=acme" --dry-run
    """
    from ..postgres_migration import migrate as copy

    with progress("Copying", stopped="Run the same command again: it goes on from here.") as bar:
        done = copy(source, target, dry_run=dry_run, on_progress=bar)
    if cli.json:
        cli.document(done)
        return
    if dry_run:
        click.echo(f"Would copy {done['memories']:,} memories from {visible(source)}")
    else:
        click.echo(f"Copied {done['copied']:,} of {done['memories']:,} memories; both sides are the same")
    for name, count in done["tables"].items():
        click.echo(f"{'Would copy table' if dry_run else 'Table'} {visible(name)}: {count:,} rows")
