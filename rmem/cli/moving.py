"""`rmem export` and `import`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from .face import Face
from .options import answering, filter_of, filtering
from .printing import visible
from .progress import progress

_FORMAT = click.option(
    "--format", "format_", type=click.Choice(["jsonl", "parquet"]), help="Told by the file's name if not given."
)


@click.command()
@click.argument("file", metavar="FILE|-")
@_FORMAT
@click.option("--no-vectors", is_flag=True, help="Leave the vectors out; an import embeds the texts again.")
@filtering
@answering
def export(face: Face, file: str, format_: str | None, no_vectors: bool, **filters: Any) -> None:
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

    with face.present() as brain, progress("Exporting") as bar:
        done = write(brain, file, format_, filter_of(filters), vectors=not no_vectors, on_progress=bar)
    if done["left_out"]:
        why = "encrypted, with their key missing or wrong, or damaged (`rmem doctor` tells)"
        face.note(f"{done['left_out']:,} memories were left out: {why}")
    if file == "-":
        return  # standard output is the file
    if face.json:
        face.document(done)
    else:
        click.echo(f"Exported {done['memories']:,} memories to {visible(file)}")


MINES = ("claude-code", "codex", "git")


@click.command("import")
@click.argument("file", metavar="FILE|-|claude-code|codex|git")
@_FORMAT
@click.option("--no-vectors", is_flag=True, help="Embed every text again, whatever the file holds.")
@click.option(
    "--from", "folder", type=click.Path(exists=True, file_okay=False), help="Where transcripts or the repository are."
)
@answering
def import_(face: Face, file: str, format_: str | None, no_vectors: bool, folder: str | None) -> None:
    """Read memories from a JSONL or Parquet file (`-` reads standard input), or mine what is already here.

    `claude-code` and `codex` read the transcripts of earlier sessions: errors and their fixes, wishes, tasks. `git`
    reads the history of this repository: fixes, reverts, files that change together. Both go on where they stopped
    and double nothing.

    Ids are kept, so importing a file twice doubles nothing. The whole file is checked first: if a line is bad,
    its number is told and nothing is imported. Vectors of another embedder are not used; the texts are
    embedded again.

    \b
    Examples:
      rmem import memories.jsonl
      rmem --store new.db import fixes.parquet
      ssh build-server rmem export - | rmem import -
      rmem import git
      rmem import claude-code
    """
    if file in MINES and not Path(file).exists():
        _mine(face, file, None if folder is None else Path(folder))
        return
    if folder is not None:
        raise InputError("--from goes with claude-code, codex and git", field="from")
    from ..transfer import import_ as read

    with face.brain() as brain, progress("Importing") as bar:
        checking = bar.under("Checking")
        done = read(brain, file, format_, vectors=not no_vectors, on_check=checking, on_progress=bar)
    if face.json:
        face.document(done)
        return
    embedded = done["imported"] - done["vectors_kept"]
    click.echo(
        f"Imported {done['imported']:,} memories, {done['replaced']:,} of them in place of older ones"
        + (f"; {embedded:,} embedded with {visible(done['embedder'])}" if embedded else "")
    )


def _mine(face: Face, source: str, folder: Path | None) -> None:
    from ..brain import Brain
    from ..team import routes
    from ..team.identity import repository
    from ..team.importing.run import import_git, import_transcripts

    # A power cut may cost the last memories, and with them the note of how far it got: the next run brings them.
    with Brain(face.address, privacy="default", durability="normal") as brain, progress("Mining") as bar:
        if source == "git":
            done = import_git(brain, folder or Path.cwd(), on_progress=bar)
            if (where := repository((folder or Path.cwd()).resolve())) is not None:
                routes.note_repository(where.id)  # what the team knows of it comes here
        else:
            done = import_transcripts(brain, source, folder=folder, on_progress=bar)
    if face.json:
        face.document(done._asdict())
        return
    what = "commits" if source == "git" else "transcripts"
    click.echo(f"Read {done.read:,} {what}; {done.memories:,} new memories, {done.passed_over:,} known already")
