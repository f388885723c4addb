"""`rmem fact`: state facts, end them, and take that back."""

from __future__ import annotations

import click

from ..graph.model import Fact
from .cli_context import CliContext
from .options import command_group, command_options, pairs
from .progress import progress


@command_group
def fact() -> None:
    """State a fact, end it, or take it back. `rmem graph` asks about them.

    Most facts need no command: they are read from every memory as it is remembered. A stated one is a memory of the
    type `fact`, and wins over those that were read.

    \b
    Examples:
      rmem fact add staging "runs on" "port 5433" --since 2026-05-01
      rmem fact add billing "depends on" redis --json
      rmem fact declare "runs on" --single
      rmem fact alias "the staging DB" staging
      rmem fact end default-12-1789000000#0 --when yesterday
      rmem fact undo default-13-1789000000#0
      rmem fact read --model chat:gpt-5-mini@https://api.openai.com/v1
    """


def _print(cli: CliContext, fact: Fact, sentence: str) -> None:
    if cli.json:
        cli.document(fact.to_dict())
    elif cli.quiet:
        click.echo(fact.id)
    else:
        click.echo(f"{sentence}: {fact}\n{fact.id}")


@fact.command()
@click.argument("subject")
@click.argument("relation")
@click.argument("object")
@click.option("--since", metavar="WHEN", help="When it became true. [default: now]")
@click.option("--until", metavar="WHEN", help="Until when it is true; a bare date includes that day.")
@click.option("--not", "negated", is_flag=True, help="Say that it is not true; ends what says so.")
@click.option("--agent", default="default", show_default=True, metavar="NAME", help="Whose memory it is.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A tag; repeatable.")
@click.option("--value", is_flag=True, help="The object is a value (a number, a date, words), not an entity.")
@command_options
def add(
    cli: CliContext,
    subject: str,
    relation: str,
    object: str,
    since: str | None,
    until: str | None,
    negated: bool,
    agent: str,
    tags: tuple[str, ...],
    value: bool,
) -> None:
    """State a fact: SUBJECT RELATION OBJECT, each one argument.

    \b
    Examples:
      rmem fact add staging "runs on" "port 5433" --since 2026-05-01
      rmem fact add billing "depends on" redis
      rmem fact add billing "depends on" memcached --not
    """
    with cli.brain() as brain:
        stated = brain.graph.add(
            subject,
            relation,
            object,
            since=since,
            until=until,
            negated=negated,
            agent=agent,
            tags=pairs("--tag", tags) or None,
            is_value=value,
        )
    _print(cli, stated, "Known now")


@fact.command()
@click.argument("fact_id", metavar="FACT")
@click.option("--when", metavar="WHEN", help="Since when it is no longer true. [default: now]")
@command_options
def end(cli: CliContext, fact_id: str, when: str | None) -> None:
    """Say that a fact is no longer true. It stays findable; `rmem fact undo` takes the end back."""
    with cli.existing_brain() as brain:
        end_fact = brain.graph.end(fact_id, when)
        ended = brain.graph.get(fact_id)
    if cli.json or cli.quiet:
        _print(cli, end_fact, "")
    else:
        click.echo(f"Ended: {ended}\nTake it back with: rmem fact undo {end_fact.id}")


@fact.command()
@click.argument("name")
@click.argument("other")
@command_options
def alias(cli: CliContext, name: str, other: str) -> None:
    """Say that two names mean one entity."""
    with cli.brain() as brain:
        stated = brain.graph.alias(name, other)
    _print(cli, stated, "One entity now")


@fact.command()
@click.argument("relation")
@click.option("--single/--many", "single", required=True, help="One value at a time, or many.")
@command_options
def declare(cli: CliContext, relation: str, single: bool) -> None:
    """Say whether a relation has one value at a time. If so, a newer value ends the older one."""
    with cli.brain() as brain:
        stated = brain.graph.declare(relation, single=single)
    _print(cli, stated, "Declared")


@fact.command()
@click.argument("fact_id", metavar="FACT")
@command_options
def undo(cli: CliContext, fact_id: str) -> None:
    """Take back what was stated: a fact, an end, an alias or a declaration."""
    with cli.existing_brain() as brain:
        brain.graph.undo(fact_id)
    if cli.json:
        cli.document({"undone": fact_id})
    elif not cli.quiet:
        click.echo(f"Taken back: {fact_id}")


@fact.command()
@click.option("--model", default="chat", metavar="chat:MODEL@URL", help="A server that speaks the OpenAI protocol.")
@click.option("--agent", metavar="NAME", help="Only memories of this agent.")
@click.option("--again", is_flag=True, help="Also memories that a model has read before.")
@command_options
def read(cli: CliContext, model: str, agent: str | None, again: bool) -> None:
    """Let a language model read facts in memories that none has read yet. Never done unless you ask for it.

    The texts are sent to the server that you name; the key comes from RMEM_CHAT_API_KEY. What it finds must quote the
    memory, and counts as likely: `rmem graph about NAME --likely` shows it. An interrupted run goes on when repeated.

    \b
    Examples:
      rmem fact read --model chat:llama3.2@http://localhost:11434/v1
      RMEM_CHAT_MODEL=gpt-5-mini RMEM_CHAT_URL=https://api.openai.com/v1 rmem fact read --agent swe-01
    """
    with (
        cli.existing_brain() as brain,
        progress("reading", stopped="what was read is kept; do it again to go on") as bar,
    ):
        count = brain.graph.read_with(model, None if agent is None else {"agent": agent}, again=again, on_progress=bar)
    cli.result({"facts": count}, f"Read {count:,} facts")
