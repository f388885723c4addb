"""`rmem eval facts FILE|FOLDER…`: whether recall gives the current value first, and finds what takes several facts."""

from __future__ import annotations

import click

from .cli_context import CliContext
from .evaluate_files import setting_of
from .options import command_options
from .output import one_line
from .progress import progress


@click.command()
@click.argument("files", metavar="FILE|FOLDER…", nargs=-1, required=True, type=click.Path())
@click.option("--settings", metavar="SETTINGS", help="Recall so: a JSON file, or NAME=VALUE[,NAME=VALUE…].")
@command_options
def facts(cli: CliContext, files: tuple[str, ...], settings: str | None) -> None:
    """How well recall answers from facts that later facts replaced, and from several facts at once.

    Every sentence of a set is remembered, in order; every question is a recall of ten. FIRST: the answer is in the
    first hit, so that the current value comes before those it replaced. AMONG TEN: it is in one of the ten, which
    questions of several hops need. --json also lists every question.

    A file is JSON, perhaps gzipped: [{"name", "facts": [sentence, in order of time], "questions": [{"question",
    "answers"}]}].

    \b
    Examples:
      rmem eval facts factconsolidation.json.gz
      rmem eval facts factconsolidation.json.gz --settings facts=0
    """
    from ..evaluate.fact_sets import MEASURES, evaluate

    with progress("Recalling") as bar:
        report = evaluate(files, settings=setting_of(settings, "--settings"), on_progress=bar)
    if cli.json:
        cli.document(report)
        return
    columns = ("SET", *(name.upper() for name in MEASURES), "QUESTIONS", "FACTS")
    rows = [
        (
            one_line(part["name"]),
            *(f"{100 * part[name]:.1f}" for name in MEASURES),
            f"{part['questions']:,}",
            f"{part['facts']:,}",
        )
        for part in report["sets"]
    ]
    cli.table(columns, rows, right=range(1, 5))
