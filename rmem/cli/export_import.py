"""`rmem export` and `import`: write memories to a file, and read them from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from .cli_context import CliContext
from .completion_values import agents, types
from .options import command_options, filter_of, filter_options
from .output import visible
from .progress import progress

_FORMAT = click.option(
    "--format", "format_", type=click.Choice(["jsonl", "parquet"]), help="Default: by the file's suffix."
)


@click.command()
@click.argument("file", metavar="FILE|-")
@_FORMAT
@click.option("--no-vectors", is_flag=True, help="Leave the vectors out; an import embeds the texts again.")
@filter_options
@command_options
def export(cli: CliContext, file: str, format_: str | None, no_vectors: bool, **filters: Any) -> None:
    """Write memories to a JSONL or Parquet file; `-` writes JSONL to standard output.

    Ids, all fields and vectors are kept. The file appears whole or not at all. It is not encrypted: encrypted
    memories are written in the clear, or left out where their key is missing.

    \b
    Examples:
      rmem export memories.jsonl
      rmem export fixes.parquet --type error_fix --since 2026-01-01
      rmem export - --no-vectors | jq .text
      rmem --store old.db export - | rmem --store new.db import -
    """
    from ..transfer import export as write

    again = "Nothing was written; run it again." if file != "-" else ""
    with cli.existing_brain() as brain, progress("Exporting", stopped=again) as bar:
        done = write(brain, file, format_, filter_of(filters), vectors=not no_vectors, on_progress=bar)
    if done["left_out"]:
        why = "encrypted, with their key missing or wrong, or damaged (see `rmem doctor`)"
        cli.note(f"{done['left_out']:,} memories were left out: {why}")
    if file == "-":
        return  # standard output is the file
    if not done["memories"]:
        cli.note("No memories are inside the filter." if filter_of(filters) else "No memories.")
    cli.answer(done, f"Exported {done['memories']:,} memories to {visible(file)}")


HISTORY_SOURCES = ("claude-code", "codex", "git")


@click.command("import")
@click.argument("file", metavar="FILE|-|claude-code|codex|git")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "parquet", "text", "markdown", "csv", "tsv"]),
    help="Default: by the file's suffix; JSONL for standard input.",
)
@click.option("--agent", metavar="NAME", shell_complete=agents, help="Whose they are, where the file is silent.")
@click.option("--type", "type_", metavar="NAME", shell_complete=types, help="Their type, where the file is silent.")
@click.option("--column", metavar="NAME", help="The column of a CSV file that holds the texts; “text” if not given.")
@click.option("--no-vectors", is_flag=True, help="Embed every text again, whatever the file holds.")
@click.option(
    "--from", "folder", type=click.Path(exists=True, file_okay=False), help="Where transcripts or the repository are."
)
@command_options
def import_(
    cli: CliContext,
    file: str,
    format_: str | None,
    agent: str | None,
    type_: str | None,
    column: str | None,
    no_vectors: bool,
    folder: str | None,
) -> None:
    """Read memories from a file (`-` reads standard input), or mine what is already here.

    Beside exports of our own, a file may be JSON lines with the fields of remember ({"text": "…", "tags": {…}}), plain
    text (a memory for each paragraph), Markdown (for each section), or CSV and TSV: a text column, columns named like
    fields of remember (id, agent, type, when, …), and all others as metadata.

    `claude-code` and `codex` read the transcripts of earlier sessions: errors and their fixes, wishes, tasks. `git`
    reads the history of this repository: fixes, reverts, files that change together. Both go on where they stopped
    and double nothing.

    Ids are kept, or made of what a memory says, so importing a file twice doubles nothing. The whole file is checked
    first: if a line is bad, its number is shown and nothing is imported. Vectors of another embedder are not used; the
    texts are embedded again.

    \b
    Examples:
      rmem import memories.jsonl
      rmem --store new.db import fixes.parquet
      rmem import NOTES.md --agent ops --type note
      rmem import tickets.csv --column summary --type ticket
      ssh build-server rmem export - | rmem import -
      rmem import git
      rmem import claude-code
    """
    defaults = {name: value for name, value in (("agent", agent), ("type", type_)) if value is not None}
    if file in HISTORY_SOURCES and not Path(file).exists():
        if defaults or column is not None:
            raise InputError("--agent, --type and --column go with files", field="agent")
        _import_history(cli, file, None if folder is None else Path(folder))
        return
    if folder is not None:
        raise InputError("--from goes with claude-code, codex and git", field="from")
    if file != "-" and not Path(file).expanduser().exists():
        raise InputError(f"{file} cannot be read: there is no such file", field="file")
    if file != "-" and Path(file).expanduser().is_dir():
        raise InputError(f"{file} cannot be read: it is a folder; name a file in it", field="file")
    from ..foreign_files import reader_of
    from ..transfer import import_ as read

    reader = reader_of(file, format_, defaults, column)
    again = "Import it again: what is here already is not doubled."
    with cli.brain() as brain, progress("Importing", stopped=again) as bar:
        checking = bar.under("Checking")
        kept = not no_vectors
        done = read(brain, file, format_, vectors=kept, reader=reader, on_check=checking, on_progress=bar)
    if cli.json:
        cli.document(done)
        return
    embedded = done["imported"] - done["vectors_kept"]
    click.echo(
        f"Imported {done['imported']:,} memories, {done['replaced']:,} of them in place of older ones"
        + (f"; {embedded:,} embedded with {visible(done['embedder'])}" if embedded else "")
    )


def _import_history(cli: CliContext, source: str, folder: Path | None) -> None:
    from ..brain import Brain
    from ..team import known_repositories
    from ..team.identity import repository
    from ..team.importers.run import import_git, import_transcripts

    again = f"`rmem import {source}` goes on from here."
    # A power cut may lose the last memories together with the position that was reached, so the next run imports them.
    with Brain(cli.address, privacy="default", durability="normal") as brain, progress("Mining", stopped=again) as bar:
        if source == "git":
            done = import_git(brain, folder or Path.cwd(), on_progress=bar)
            if (where := repository((folder or Path.cwd()).resolve())) is not None:
                known_repositories.note_repository(where.id)  # so that `rmem sync` fetches what the team knows of it
        else:
            done = import_transcripts(brain, source, folder=folder, on_progress=bar)
    if cli.json:
        cli.document(done._asdict())
        return
    what = "commits" if source == "git" else "transcripts"
    click.echo(f"Read {done.read:,} {what}; {done.memories:,} new memories, {done.passed_over:,} known already")
    if done.left_out:
        click.echo(
            f"{done.left_out:,} commits left out: releases, formatting, tests or documents alone, or no word of "
            "what changed"
        )
    if done.without_patch:
        click.echo(
            f"{done.without_patch:,} commits were read without their patches (no names of functions and tests, no "
            "changelog): this clone lacks contents of files that they changed"
        )
