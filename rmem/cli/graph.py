"""`rmem graph`: ask what is known, and write it to files and pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import click

from ..graph.formats import READERS, WRITERS, format_of, read, write
from ..graph.model import Change, Fact, document_of, iso
from .cli_context import CliContext
from .options import command_group, command_options
from .progress import progress

Function = Callable[..., Any]
_LIMIT = click.option("-n", "--limit", default=100, show_default=True, type=click.IntRange(1), help="At most so many.")


@command_group
def graph() -> None:
    """Ask what is known: facts, when they were true, how things are connected, and what contradicts.

    \b
    Examples:
      rmem graph about staging
      rmem graph about staging --at 2026-05-01
      rmem graph path billing "host 7" --hops 4
      rmem graph query "?who owns ?service, ?service depends on redis"
      rmem graph contradictions --json
      rmem graph draw billing -o billing.svg
    """


def _time_options(function: Function) -> Function:
    """Add the options --at and --believed."""
    believed = click.option("--believed", metavar="WHEN", help="As far as it was known then. [default: now]")
    return click.option("--at", metavar="WHEN", help="What was true then. [default: now]")(believed(function))


def _page_options(which: str) -> Callable[[Function], Function]:
    """Add the options --limit and --offset of a list that begins with `which`."""

    def add(function: Function) -> Function:
        limit = click.option(
            "-n", "--limit", default=1000, show_default=True, type=click.IntRange(1), help=f"At most so many, {which}."
        )
        offset = click.option(
            "--offset", default=0, show_default=True, type=click.IntRange(0), help="Leave out so many before."
        )
        return limit(offset(function))

    return add


def _note_more(cli: CliContext, found: Sequence[Any], limit: int, offset: int) -> None:
    if len(found) > limit:
        cli.note(f"There is more; --offset {offset + limit} shows what follows.")


def _print(cli: CliContext, documents: Sequence[Any], nothing: str, show: Callable[[], None]) -> None:
    """Print a list as JSON; else by `show`, or say that it is empty."""
    if cli.json:
        cli.document(documents)
    elif documents:
        show()
    else:
        click.echo(nothing)


def _show(cli: CliContext, found: Sequence[Fact], nothing: str) -> None:
    if cli.json:
        cli.document(document_of(found))
    elif cli.quiet:
        for fact in found:
            click.echo(fact.id)
    elif not found:
        click.echo(nothing)
    else:
        columns = ("subject", "relation", "object", "true", "trust", "evidence")
        rows = [
            (fact.subject, f"{'not ' * fact.negated}{fact.relation}", fact.object, _times(fact), fact.trust, fact.id)
            for fact in found
        ]
        cli.table(columns, rows, names=False)


def _times(fact: Fact) -> str:
    until = "" if fact.valid_until is None else iso(fact.valid_until)[:10]
    return f"{iso(fact.valid_from)[:10]} – {until}".rstrip()


@graph.command()
@click.argument("entity")
@click.option("--relation", "relations", multiple=True, metavar="NAME", help="Only this relation; repeatable.")
@click.option("--history", is_flag=True, help="Also what is over.")
@click.option("--likely", is_flag=True, help="Also what is only likely.")
@_time_options
@_LIMIT
@command_options
def about(
    cli: CliContext,
    entity: str,
    relations: tuple[str, ...],
    history: bool,
    likely: bool,
    at: str | None,
    believed: str | None,
    limit: int,
) -> None:
    """What is known about an entity, in both directions."""
    if history and at is not None:
        raise click.UsageError("--history shows all times; give it or --at, not both.")
    with cli.brain_or_empty() as brain:
        if history:
            kinds = relations or None
            how: dict[str, Any] = {"history": True, "likely": likely, "believed": believed, "limit": limit}
            facts = brain.graph.facts(entity, kinds, **how) + brain.graph.facts(None, kinds, entity, **how)
            found = list({fact.id: fact for fact in facts}.values())[:limit]
        else:
            near = brain.graph.neighbours(
                entity, relations=relations or None, at=at, believed=believed, likely=likely, limit=limit
            )
            found = [neighbour.fact for neighbour in near]
    _show(
        cli,
        found,
        f"Nothing is known for sure about {entity!r}; --likely shows more, `rmem graph entities` what is known.",
    )


@graph.command()
@click.argument("start")
@click.argument("goal")
@click.option("--hops", default=3, show_default=True, type=click.IntRange(1, 8), help="Facts on the way at most.")
@click.option("-k", default=1, show_default=True, type=click.IntRange(1), help="How many ways at most.")
@click.option("--relation", "relations", multiple=True, metavar="NAME", help="Only by this relation; repeatable.")
@_time_options
@command_options
def path(
    cli: CliContext,
    start: str,
    goal: str,
    hops: int,
    k: int,
    relations: tuple[str, ...],
    at: str | None,
    believed: str | None,
) -> None:
    """The shortest ways from one entity to another."""
    with cli.brain_or_empty() as brain:
        found = brain.graph.paths(start, goal, hops, k=k, relations=relations or None, at=at, believed=believed)
    nothing = f"No way of at most {hops} facts from {start!r} to {goal!r}; --hops allows more."
    _print(cli, document_of(found), nothing, lambda: click.echo("\n".join(map(str, found))))


@graph.command()
@click.argument("entity")
@click.argument("relation")
@click.option("--reverse", is_flag=True, help="Against the relation: what depends on it, not what it depends on.")
@_page_options("the nearest")
@command_options
def closure(cli: CliContext, entity: str, relation: str, reverse: bool, limit: int, offset: int) -> None:
    """All that is reached from an entity by one relation alone, and in how many steps.

    \b
    Example:
      rmem graph closure billing "depends on"
    """
    with cli.brain_or_empty() as brain:
        direction: Literal["out", "in"] = "in" if reverse else "out"
        found = brain.graph.closure(entity, relation, direction=direction, limit=limit + 1, offset=offset)
    _print_counts(cli, found[:limit], "steps", "d", f"Nothing is reached from {entity!r} by {relation!r}.")
    _note_more(cli, found, limit, offset)


@graph.command()
@click.argument("pattern")
@_time_options
@_LIMIT
@command_options
def query(cli: CliContext, pattern: str, at: str | None, believed: str | None, limit: int) -> None:
    """Match facts with variables, as in "?who owns ?service, ?service depends on redis"."""
    with cli.brain_or_empty() as brain:
        found = brain.graph.query(pattern, at=at, believed=believed, limit=limit)
    names = list(found[0]) if found else []
    rows = [[row[name] for name in names] for row in found]
    _print(cli, found, "Nothing matches.", lambda: cli.table(names, rows, names=False))


def _changes(cli: CliContext, found: Sequence[Change], nothing: str) -> None:
    rows = [(iso(change.time)[:16], "began" if change.began else "ended", str(change.fact)) for change in found]
    _print(cli, document_of(found), nothing, lambda: cli.table(("time", "what", "fact"), rows, names=False))


@graph.command()
@click.argument("entity")
@click.option("--believed", metavar="WHEN", help="As far as it was known then.")
@_page_options("the oldest")
@command_options
def timeline(cli: CliContext, entity: str, believed: str | None, limit: int, offset: int) -> None:
    """All that began and ended about an entity, oldest first."""
    with cli.brain_or_empty() as brain:
        found = brain.graph.timeline(entity, believed=believed, limit=limit + 1, offset=offset)
    _changes(cli, found[:limit], f"Nothing is known about {entity!r}.")
    _note_more(cli, found, limit, offset)


@graph.command()
@click.argument("start", metavar="FROM")
@click.argument("end", metavar="TO")
@click.option("--entity", metavar="NAME", help="Only what concerns this entity.")
@_page_options("the oldest")
@command_options
def changes(cli: CliContext, start: str, end: str, entity: str | None, limit: int, offset: int) -> None:
    """What began and ended between two times."""
    with cli.brain_or_empty() as brain:
        found = brain.graph.between(start, end, entity, limit=limit + 1, offset=offset)
    _changes(cli, found[:limit], "Nothing changed.")
    _note_more(cli, found, limit, offset)


@graph.command()
@click.argument("entity", required=False)
@_LIMIT
@command_options
def contradictions(cli: CliContext, entity: str | None, limit: int) -> None:
    """Facts that cannot both be true at one time, with the memories that say them."""
    with cli.brain_or_empty() as brain:
        found = brain.graph.contradictions(entity, limit=limit)
    lines = [f"{pair.first}  [{pair.first.id}]\n{pair.second}  [{pair.second.id}]\n" for pair in found]
    _print(cli, document_of(found), "No contradictions.", lambda: click.echo("\n".join(lines)))


@graph.command()
@click.argument("fact_id", metavar="FACT")
@command_options
def explain(cli: CliContext, fact_id: str) -> None:
    """The sentence that says a fact, and other values of it."""
    with cli.existing_brain() as brain:
        found = brain.graph.explain(fact_id)
    if cli.json:
        cli.document(document_of(found))
        return
    click.echo(f"{found.fact}\n  “{found.sentence}”  [{found.fact.memory_id}, {found.fact.agent}]")
    for title, facts in (("Also said by", found.same), ("Other values", found.others)):
        if facts:
            click.echo(f"{title}:")
            for fact in facts:
                click.echo(f"  {fact}  [{fact.id}]")


_NO_FACTS = "No facts yet. They are read from what you remember; `rmem reindex` reads them from older memories."


def _print_counts(
    cli: CliContext, found: Sequence[tuple[str, float]], what: str, shown: str, nothing: str = _NO_FACTS
) -> None:
    rows = [(name, format(number, shown)) for name, number in found]
    documents = [{"name": name, what: number} for name, number in found]
    _print(cli, documents, nothing, lambda: cli.table(("name", what), rows, right=(1,), names=False))


@graph.command()
@click.argument("like", required=False)
@_LIMIT
@command_options
def entities(cli: CliContext, like: str | None, limit: int) -> None:
    """Entities and how many facts are about them; LIKE is a part of the name."""
    with cli.brain_or_empty() as brain:
        found = brain.graph.entities(like, limit=limit)
    _print_counts(cli, found, "facts", ",.0f")


@graph.command()
@command_options
def relations(cli: CliContext) -> None:
    """Relations and how many facts have them."""
    with cli.brain_or_empty() as brain:
        found = brain.graph.relations()
    _print_counts(cli, found, "facts", ",.0f")


@graph.command()
@_LIMIT
@command_options
def important(cli: CliContext, limit: int) -> None:
    """The entities that matter most, by PageRank."""
    with cli.brain_or_empty() as brain:
        found = brain.graph.important(limit)
    _print_counts(cli, found, "share", ".4f")


@graph.command()
@_LIMIT
@command_options
def communities(cli: CliContext, limit: int) -> None:
    """Groups of entities with many facts among them."""
    with cli.brain_or_empty() as brain:
        found = brain.graph.communities(limit=limit)
    lines = [f"{len(group):,}: {', '.join(group[:12])}{' …' if len(group) > 12 else ''}" for group in found]
    _print(cli, found, "No groups of three or more.", lambda: click.echo("\n".join(lines)))


@graph.command()
@click.argument("entity")
@click.option("--hops", default=2, show_default=True, type=click.IntRange(1, 4), help="How far around it.")
@click.option("--at", metavar="WHEN", help="What was true then. [default: now]")
@click.option(
    "--format", "kind", type=click.Choice(["svg", "dot", "mermaid"]), help="[default: by the file's name, or svg]"
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The file. [default: standard output]"
)
@_LIMIT
@command_options
def draw(
    cli: CliContext, entity: str, hops: int, at: str | None, kind: str | None, output: Path | None, limit: int
) -> None:
    """A picture of what is known around an entity, as SVG, DOT or Mermaid."""
    chosen = kind or ("svg" if output is None else format_of(output.name, ["svg", "dot", "mermaid"]))
    with cli.brain_or_empty() as brain:
        found: dict[str, Fact] = {}
        front = [entity]
        for _ in range(hops):
            following: dict[str, None] = {}
            for name in front:
                for neighbour in brain.graph.neighbours(name, at=at, limit=limit):
                    if len(found) < limit and neighbour.fact.id not in found:
                        found[neighbour.fact.id] = neighbour.fact
                        following[neighbour.name] = None
            front = list(following)
    _write(output, write(found.values(), chosen))
    cli.note(f"{len(found):,} facts around {entity!r}")


def _write(output: Path | None, pieces: Iterable[str]) -> None:
    rest = iter(pieces)
    first = next(rest, "")  # before the file is opened: what cannot be written leaves it as it was
    with nullcontext(sys.stdout) if output is None else output.open("w", encoding="utf-8") as file:
        file.write(first)
        file.writelines(rest)


@graph.command()
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--format", "kind", type=click.Choice(list(WRITERS)), help="[default: by the file's name]")
@click.option("--current", is_flag=True, help="Only what is true now.")
@command_options
def export(cli: CliContext, output: Path, kind: str | None, current: bool) -> None:
    """Write all facts to a file: .jsonl, .graphml, .nt (N-Triples), .jsonld, .dot, .mmd or .svg."""
    chosen = kind or format_of(output.name, list(WRITERS))
    with cli.brain_or_empty() as brain, progress("exporting facts") as bar:
        total, count = len(brain.graph), 0

        def counted() -> Iterable[Fact]:
            nonlocal count
            for fact in brain.graph.all_facts(history=not current):
                count += 1
                if count % 1000 == 0:
                    bar(count, total)
                yield fact

        _write(output, write(counted(), chosen))
    cli.result({"facts": count, "file": str(output)}, f"Wrote {count:,} facts to {output}")


@graph.command(name="import")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "kind", type=click.Choice(list(READERS)), help="[default: by the file's name]")
@command_options
def import_(cli: CliContext, source: Path, kind: str | None) -> None:
    """State the facts of a file: .jsonl, .graphml, .nt or .jsonld. All are checked before the first is written."""
    chosen = kind or format_of(source.name, list(READERS))
    with source.open(encoding="utf-8") as file:
        facts = read(file, chosen)
    with (
        cli.brain() as brain,
        progress("stating facts", stopped="what was stated stays; import into an empty store to start again") as bar,
    ):
        count = brain.graph.add_many(facts, on_progress=bar)
    cli.result({"facts": count}, f"Stated {count:,} facts")


@graph.command(name="map")
@click.argument("table")
@click.option("--subject", required=True, metavar="COLUMN", help="The column with what the fact is about.")
@click.option("--relation", required=True, metavar="NAME", help="The relation, as in 'runs on'.")
@click.option("--object", required=True, metavar="COLUMN", help="The column with the value.")
@click.option("--since", metavar="COLUMN", help="The column that says since when.")
@click.option("--until", metavar="COLUMN", help="The column that says until when.")
@command_options
def map_(
    cli: CliContext, table: str, subject: str, relation: str, object: str, since: str | None, until: str | None
) -> None:
    """State one fact for each row of a TABLE (see `rmem sql`).

    Done again, it adds what is new and takes back what the table no longer says.

    \b
    Example:
      rmem graph map deploys --subject service --relation "runs on" --object host --since deployed_at
    """
    from .tables import client_of

    with client_of(cli, None) as client:
        rows = list(client.query(f'SELECT * FROM "{table.replace(chr(34), chr(34) * 2)}"'))
    with cli.brain() as brain, progress("stating facts", stopped="do it again to go on") as bar:
        done = brain.graph.map_table(
            table, rows, subject=subject, relation=relation, object=object, since=since, until=until, on_progress=bar
        )
    cli.result(done._asdict(), f"{done.added:,} facts added, {done.unchanged:,} unchanged, {done.removed:,} taken back")
