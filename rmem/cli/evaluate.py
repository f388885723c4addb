"""`rmem eval`: recall quality on public data sets, on question sets of your own, and in use."""

from __future__ import annotations

from typing import Any

import click

from .cli_context import CliContext
from .evaluate_facts import facts
from .evaluate_files import file
from .evaluate_online import online
from .evaluate_recall import recall
from .evaluate_team import team
from .options import command_options
from .progress import progress

_TITLES = {
    "1-4": "all that have an answer",
    "1": "several facts",
    "2": "time",
    "3": "open domain",
    "4": "one fact",
    "5": "adversarial",
    "all": "everything",
}


class _Evaluate(click.Group):
    """Treats an argument that is not the name of a measure as a question set: `rmem eval questions.jsonl`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["file", *args]
        return super().parse_args(ctx, args)


@click.group("eval", cls=_Evaluate, invoke_without_command=True)
@click.pass_context
def evaluate(context: click.Context) -> None:
    """Measure recall: on a question set of your own, on a public data set, or by the feedback of its users.

    \b
    Examples:
      rmem eval questions.jsonl
      rmem eval questions.jsonl --settings dense=0.7 --against default --k 5,10
      rmem eval recall sets/
      rmem eval facts factconsolidation.json.gz
      rmem eval locomo locomo10.json
      rmem eval online --by week
      rmem eval team
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


evaluate.add_command(facts)
evaluate.add_command(file)
evaluate.add_command(online)
evaluate.add_command(recall)
evaluate.add_command(team)


@evaluate.command()
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
    from ..evaluate.locomo import DEPTHS
    from ..evaluate.locomo import evaluate as measure

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
    cli.table(columns, rows, right=range(1, len(DEPTHS) + 1))
    skipped = f", {result['skipped']} without evidence skipped" if result["skipped"] else ""
    click.echo(f"{result['embedder']}, by {result['granularity']}, {result['questions']:,} questions{skipped}")


def _percent(found: dict[str, Any]) -> list[str]:
    return ["–" if value is None else f"{value:.1f}" for value in found.values()]
