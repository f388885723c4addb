"""`rmem eval locomo FILE`: recall on long conversations."""

from __future__ import annotations

from typing import Any

import click

from rmem.cli.cli_context import CliContext
from rmem.cli.options import command_options
from rmem.cli.progress import progress

_TITLES = {
    "1-4": "all that have an answer",
    "1": "several facts",
    "2": "time",
    "3": "open domain",
    "4": "one fact",
    "5": "adversarial",
    "all": "everything",
}


@click.command()
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--embedder", metavar="SPEC", help="static (the default), minilm, onnx:PATH, http:MODEL@URL.")
@click.option(
    "--granularity",
    type=click.Choice(["turn", "session"]),
    default="turn",
    show_default=True,
    help="What counts as found: the very turn, or its session.",
)
@click.option("--limit-conversations", type=int, metavar="N", help="Only the first N conversations.")
@command_options
def locomo(cli: CliContext, file: str, embedder: str | None, granularity: str, limit_conversations: int | None) -> None:
    """Share of LoCoMo's evidence that recall finds among the first 1, 5, 10, 20 and 50, in percent.

    Every turn is a memory, every question a recall. Category 5 (adversarial) is apart from 1 to 4.

    \b
    Examples:
      rmem eval locomo locomo10.json
      rmem eval locomo locomo10.json --granularity session --embedder minilm --json
    """
    from .locomo import DEPTHS
    from .locomo import evaluate as measure

    with progress("Recalling") as bar:
        result = measure(
            file,
            embedder=embedder,
            granularity=granularity,
            limit_conversations=limit_conversations,
            on_progress=bar,
        )
    if cli.json:
        cli.document(result)
        return
    columns = ("CATEGORY", *(f"R@{depth}" for depth in DEPTHS), "")
    rows = [(name, *_percent(result["recall"][name]), title) for name, title in _TITLES.items()]
    numbers = range(1, len(DEPTHS) + 1)
    cli.table(columns, rows, right=numbers)
    skipped = f", {result['skipped']} without evidence skipped" if result["skipped"] else ""
    click.echo(f"{result['embedder']}, by {result['granularity']}, {result['questions']:,} questions{skipped}")


def _percent(found: dict[str, Any]) -> list[str]:
    return ["–" if value is None else f"{value:.1f}" for value in found.values()]
