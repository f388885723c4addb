"""`rmem backup`, `doctor` and `reindex`: maintain a store."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import exit_codes
from .cli_context import CliContext
from .options import command_options
from .output import align, console, size, visible
from .progress import progress

if TYPE_CHECKING:
    from ..doctor import CheckResult


@click.command()
@click.argument("target", metavar="TARGET")
@command_options
def backup(cli: CliContext, target: str) -> None:
    """Copy the store to TARGET, consistently, while others may be using it.

    The copy is a store of its own: `rmem --store TARGET recall …` reads it.

    \b
    Examples:
      rmem backup memories-2026-05-01.db
      rmem --store team.db backup /mnt/backups/team.db --json
    """
    from ..admin import backup as copy

    with progress("Copying", stopped="Nothing was written; run it again for a whole copy.") as bar:
        done = copy(cli.address, target, on_progress=bar)
    cli.answer(done, f"Copied {done['memories']:,} memories ({size(done['bytes'])}) to {visible(done['target'])}")


@click.command()
@click.option(
    "--embedder",
    metavar="SPEC",
    help="static, minilm, onnx:FOLDER, sentence-transformers:NAME, ollama:MODEL, http:MODEL@URL; else the store's own.",
)
@click.option(
    "--vectors",
    metavar="URL",
    help="The engine for its vectors: milvus://…, qdrant://…, faiss:///FILE, pgvector://…; none.",
)
@command_options
def reindex(cli: CliContext, embedder: str | None, vectors: str | None) -> None:
    """Embed every memory anew and rebuild the index; the way to change a store's embedder or its vector engine.

    The engine, if the store has one, is emptied and filled from the store. An interrupted run goes on where it stopped.
    Others may use the store meanwhile.

    \b
    Examples:
      rmem reindex
      rmem reindex --embedder minilm
      rmem --store team.db reindex --embedder onnx:models/bge-small
      rmem --store team.db reindex --vectors qdrant://localhost:6333
    """
    from ..admin import reindex as embed_anew

    with progress("Embedding", stopped="The store works as it is; `rmem reindex` goes on from here.") as bar:
        done = embed_anew(cli.address, embedder, on_progress=bar, vectors=vectors)
    if cli.json:
        cli.document(done)
    else:
        click.echo(
            f"Embedded {done['embedded']:,} of {done['memories']:,} memories with {visible(done['embedder'])} "
            f"({done['dimension']} numbers each) and rebuilt the index"
        )
        if "vectors" in done:
            click.echo(f"Filled {visible(done['vectors'])}")


@click.command()
@click.option("--repair", is_flag=True, help="Rebuild what is derived (terms, index) from the rows, then look again.")
@command_options
def doctor(cli: CliContext, repair: bool) -> None:
    """Examine the store: the file, its rows, what is derived from them, the versions around it; and the team memory.

    Of the team memory: each agent's wiring with a try of its hook, events that wait, the server and its token, the
    daemon, the disk. Of the audit log: its seals and its end, as `rmem audit verify` does.

    Repairing never touches what you stored. The exit code is 6 while there are problems.

    \b
    Examples:
      rmem doctor
      rmem doctor --repair
      rmem doctor --json | jq '.findings[] | select(.ok | not)'
    """
    from .. import doctor as examiner
    from ..team import health
    from ..team.install.status import report

    done = []
    if repair:
        with progress("Repairing") as bar:
            done = examiner.repair(cli.address, on_progress=bar)
        done += _repair(cli)
    store = examiner.examine(cli.address)
    findings = [*store, *(_team_findings(cli) if store[-1].name != "store" else [])]
    findings += health.findings(report(Path.cwd(), cli.address))
    sound = all(finding.ok for finding in findings)
    if cli.json:
        answer = {"ok": sound, "findings": [asdict(finding) for finding in findings]}
        cli.document({**answer, "repaired": done} if repair else answer)
    else:
        for line in done:
            click.echo(f"repair: {visible(line)}")
        if cli.is_terminal:
            _show(findings)
        else:
            align([("ok" if result.ok else "PROBLEM", result.name, visible(result.detail)) for result in findings])
        if not repair and not all(finding.ok for finding in store):
            cli.note("`rmem doctor --repair` rebuilds what is derived; a damaged file needs a backup.")
    if not sound:
        raise click.exceptions.Exit(exit_codes.PROBLEMS)


def _repair(cli: CliContext) -> list[str]:
    from ..team import validation

    with cli.existing_brain() as brain:
        number = validation.repair(brain)
    return [f"took out of {number:,} memories of the team what could not be read"] if number else []


def _team_findings(cli: CliContext) -> list[CheckResult]:
    from ..doctor import CheckResult, check_audit
    from ..errors import RemanenceError
    from ..team import validation

    try:
        with cli.existing_brain() as brain:
            return [*check_audit(brain.store), *validation.findings(brain)]
    except RemanenceError as error:
        return [CheckResult("team memories", False, str(error))]


def _show(findings: list[CheckResult]) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for finding in findings:
        grid.add_row(
            Text("✓", "green") if finding.ok else Text("✗", "bold red"), finding.name, Text(visible(finding.detail))
        )
    console().print(grid)
