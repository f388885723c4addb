"""`rmem recall`: find the memories that answer a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .. import checks
from ..display import rating
from .cli_context import CliContext
from .options import check_one_format, command_options, filter_of, filter_options, table_options, text_of, values
from .output import console, indent, moment, visible

if TYPE_CHECKING:
    from ..annotations import Mode
    from ..models import Hit, Memory

_AS_OF_FACTOR = 5  # times k to fetch with --as-of, which drops some hits


@click.command()
@click.argument("question", nargs=-1, required=True, metavar="QUESTION|-")
@click.option("-k", "-n", "k", default=5, show_default=True, metavar="N", help="How many memories at most.")
@click.option("--explain", is_flag=True, help="Show every part of every score.")
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "lexical", "vector"]),
    default="hybrid",
    show_default=True,
    help="Words and meaning together, words alone, or meaning alone.",
)
@click.option("--must", multiple=True, metavar="PHRASE", help="Only memories that say this; repeatable.")
@click.option("--not", "must_not", multiple=True, metavar="PHRASE", help="No memories that say this; repeatable.")
@click.option("--min-relevance", type=float, metavar="P", help="Leave out hits less likely to answer than P (0 to 1).")
@click.option("--token-budget", type=int, metavar="N", help="Leave out what would not fit into N tokens together.")
@click.option("--settings", multiple=True, metavar="NAME=VALUE", help="A setting of the ranking; repeatable.")
@click.option("--as-of", metavar="WHEN", help="What held then: nothing that came later or had been superseded.")
@table_options
@filter_options
@command_options
def recall(
    cli: CliContext,
    question: tuple[str, ...],
    k: int,
    explain: bool,
    mode: Mode,
    must: tuple[str, ...],
    must_not: tuple[str, ...],
    min_relevance: float | None,
    token_budget: int | None,
    settings: tuple[str, ...],
    as_of: str | None,
    delimiter: str | None,
    **filters: Any,
) -> None:
    """Find the memories that best answer a question, best first, each with the probability that it does.

    Ask in your own words, or paste an error: nothing in the text is an operator; --must and --not say what has to
    be there, word for word. Time words ("yesterday", "last May") raise memories of that time; --since and --until are
    strict.

    \b
    Examples:
      rmem recall "ETL job killed by OOM"
      rmem recall how did we fix the flaky login test -k 3 --explain
      rmem recall "killed by OOM" --must "row group" --not csv
      rmem recall "deploy" --not staging --type error_fix --tag repo=api --since "two weeks ago"
      rmem recall "what did Ada decide last May" --settings time_words=filter
      rmem recall "how do we deploy" --as-of "two months ago"
      rmem recall "is there a runbook for the cache" --min-relevance 0.5
      rmem recall "open questions" --token-budget 2000 --json
      rmem recall "flaky tests" -n 50 --csv > tests.csv
    """
    check_one_format(cli.json, delimiter)
    question_text, where = text_of(question), filter_of(filters)
    then = None if as_of is None else checks.moment("as_of", as_of, end_of_day=True)
    with cli.brain_or_empty() as brain:
        hits = brain.recall(
            question_text,
            k=k if then is None else _AS_OF_FACTOR * k,
            where=where,
            mode=mode,
            must=must,
            must_not=must_not,
            min_relevance=min_relevance,
            token_budget=token_budget if then is None else None,
            explain=explain,
            settings=values("--settings", settings) if settings else None,
        )
    if then is not None:
        from ..recall.budget import take_fitting
        from ..team.memory import held

        hits[:] = [hit for hit in hits if held(hit.memory, then)]
        hits[:] = (hits if token_budget is None else take_fitting(hits, lambda hit: hit.text, token_budget))[:k]
    if cli.json:
        cli.document({"question": question_text, "hits": [hit.to_dict() for hit in hits]})
        return
    if not hits:
        cli.note("Nothing recalled.")
    if delimiter is not None:
        from .csv_output import write_table

        write_table(hits, delimiter)
    elif cli.quiet:
        for hit in hits:
            click.echo(visible(hit.id))
    elif cli.is_terminal:
        _show(hits)
    else:
        _write(hits)


def _describe(memory: Memory) -> str:
    """Describe agent, type, place and time of a memory in one line."""
    parts = [memory.type, memory.agent_id]
    if memory.actor not in (None, memory.agent_id):
        parts.append(str(memory.actor))
    if memory.session is not None:
        parts.append(f"session {memory.session}")
    if memory.place is not None:
        parts.append(f"at {memory.place}")
    parts += [f"{key}={value}" for key, value in memory.tags.items()]
    return visible(", ".join([*parts, moment(memory.timestamp)]))


def _reasons(hit: Hit) -> list[str]:
    """Format the explanation of a hit, if it has one, in a few lines."""
    explanation = hit.explanation
    if explanation is None:
        return []
    parts = ", ".join(f"{name} {value:+.2f}" for name, value in explanation.components.items() if abs(value) >= 0.005)
    lines = [f"score: {hit.score:.2f} = {parts or 'nothing'}"]
    similarity = [f"BM25 {explanation.bm25:.2f}"] if explanation.mode != "vector" else []
    if explanation.cosine is not None:
        similarity.append(f"cosine {explanation.cosine:.3f}")
    if similarity:
        lines.append(f"similarity: {', '.join(similarity)}")
    if explanation.words:
        words = (
            f"{match.word}{'' if match.matched == match.word else f'~{match.matched}'} {match.score:.2f}"
            for match in explanation.words
        )
        lines.append(f"words: {visible(', '.join(words))}")
    lines += [f"note: {visible(note)}" for note in explanation.notes]
    return lines


def _write(hits: Sequence[Hit]) -> None:
    for number, hit in enumerate(hits, 1):
        click.echo(f"{number}. {indent(visible(hit.text), '   ')}")
        click.echo(f"   {rating(hit)}  {_describe(hit.memory)}, id {visible(hit.memory.memory_id)}")
        for line in _reasons(hit):
            click.echo(f"   {line}")


def _show(hits: Sequence[Hit]) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column(overflow="fold", ratio=1)
    grid.add_column(justify="right", style="cyan", no_wrap=True)
    for number, hit in enumerate(hits, 1):
        body = Text(visible(hit.text))
        body.append(f"\n{_describe(hit.memory)}  {visible(hit.memory.memory_id)}", style="dim")
        for line in _reasons(hit):
            name, _, rest = line.partition(": ")
            body.append(f"\n{name} ", style="green").append(rest, style="dim")
        grid.add_row(str(number), body, rating(hit))
    console().print(grid)
