"""`rmem fact`: state facts, end them, and take that back."""

from __future__ import annotations

import click

from ..graph.model import Fact
from .face import Face
from .options import answering, pairs


@click.group()
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
    """


def _print(face: Face, told: Fact, sentence: str) -> None:
    if face.json:
        face.document(told.to_dict())
    elif face.quiet:
        click.echo(told.id)
    else:
        click.echo(f"{sentence}: {told}\n{told.id}")


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
@answering
def add(
    face: Face,
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
    with face.brain() as brain:
        told = brain.graph.add(
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
    _print(face, told, "Known now")


@fact.command()
@click.argument("fact_id", metavar="FACT")
@click.option("--when", metavar="WHEN", help="Since when it is no longer true. [default: now]")
@answering
def end(face: Face, fact_id: str, when: str | None) -> None:
    """Say that a fact is no longer true. It stays findable; `rmem fact undo` takes the end back."""
    with face.present() as brain:
        told = brain.graph.end(fact_id, when)
        ended = brain.graph.get(fact_id)
    if face.json or face.quiet:
        _print(face, told, "")
    else:
        click.echo(f"Ended: {ended}\nTake it back with: rmem fact undo {told.id}")


@fact.command()
@click.argument("name")
@click.argument("other")
@answering
def alias(face: Face, name: str, other: str) -> None:
    """Say that two names mean one entity."""
    with face.brain() as brain:
        told = brain.graph.alias(name, other)
    _print(face, told, "One entity now")


@fact.command()
@click.argument("relation")
@click.option("--single/--many", "single", required=True, help="One value at a time, or many.")
@answering
def declare(face: Face, relation: str, single: bool) -> None:
    """Say whether a relation has one value at a time. If so, a newer value ends the older one."""
    with face.brain() as brain:
        told = brain.graph.declare(relation, single=single)
    _print(face, told, "Declared")


@fact.command()
@click.argument("fact_id", metavar="FACT")
@answering
def undo(face: Face, fact_id: str) -> None:
    """Take back what was stated: a fact, an end, an alias or a declaration."""
    with face.present() as brain:
        brain.graph.undo(fact_id)
    if face.json:
        face.document({"undone": fact_id})
    elif not face.quiet:
        click.echo(f"Taken back: {fact_id}")
