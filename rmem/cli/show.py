"""`rmem show`, `list` and `stats`: print what the store holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..contents import own_contents
from ..errors import MemoryAPIException, NotFoundError, RemanenceError
from .cli_context import CliContext, memory_document, store_file
from .completion_values import agents, ids
from .options import check_one_format, command_options, filter_of, filter_options, table_options
from .output import facts, moment, one_line, size, visible

if TYPE_CHECKING:
    from ..agents.types import MemoryStatistics
    from ..models import Memory


_BAR = 30  # characters of the longest bar


@click.command()
@click.argument("memory_id", metavar="ID", shell_complete=ids)
@click.option("--vectors", is_flag=True, help="With --json: its vectors too.")
@command_options
def show(cli: CliContext, memory_id: str, vectors: bool) -> None:
    """Show one memory with all of its fields.

    \b
    Examples:
      rmem show swe-01-12-1777632000
      rmem show swe-01-12-1777632000 --json | jq .contents
    """
    with cli.brain_or_empty() as brain:
        memory = brain.get(memory_id)
    if memory is None:
        raise NotFoundError(memory_id)
    if cli.json:
        cli.document(memory_document(memory, vectors=vectors))
    else:
        facts(_facts(memory), terminal=cli.is_terminal)


def _facts(memory: Memory) -> list[tuple[str, str]]:
    """Return every non-empty field, the text last."""
    own = {key: value for key, value in own_contents(memory.contents).items() if key != "text"}
    vector = memory.embeddings.full_vector
    found = [
        ("id", memory.memory_id),
        ("agent", memory.agent_id),
        ("type", memory.type),
        ("session", memory.session),
        ("actor", memory.actor),
        ("step", str(memory.step_number)),
        ("when", moment(memory.timestamp)),
        ("importance", f"{memory.importance:g}"),
        ("tags", ", ".join(f"{key}={value}" for key, value in memory.tags.items())),
        ("place", memory.place),
        ("position", ", ".join(f"{number:g}" for number in memory.position or ())),
        ("tier", memory.tier),
        ("metadata", json.dumps(own, ensure_ascii=False, indent=2) if own else ""),
        ("vector", f"{vector.size} numbers" if vector is not None else "none"),
        ("created", moment(memory.bookkeeping.creation_time)),
        ("recalled", f"{memory.bookkeeping.retrieval_count} times, last {moment(memory.bookkeeping.last_access_time)}"
         if memory.bookkeeping.retrieval_count else "never"),
        ("text", memory.text),
    ]  # fmt: skip
    return [(name, visible(value)) for name, value in found if value]


@click.command("list")
@click.option(
    "--order",
    type=click.Choice(["newest", "oldest", "importance", "step"]),
    default="newest",
    show_default=True,
    help="What comes first.",
)
@click.option("--limit", "-n", type=int, default=20, show_default=True, metavar="N", help="How many at most.")
@click.option("--offset", type=int, default=0, metavar="N", help="How many to pass over first.")
@table_options
@filter_options
@command_options
def list_(cli: CliContext, order: Any, limit: int, offset: int, delimiter: str | None, **filters: Any) -> None:
    """List memories inside a filter, without a question.

    \b
    Examples:
      rmem list
      rmem list --agent swe-01 --type error_fix --type decision --order importance
      rmem list --since 2026-05-01 --until 2026-05-31 --attr ticket=4711 --json
      rmem list -n 50 --offset 50
      rmem list --type note --csv > notes.csv
      rmem list -q --type scratch | xargs rmem forget --yes
    """
    from ..filters import Filter

    check_one_format(cli.json, delimiter)
    where = Filter.of(filter_of(filters))
    with cli.brain_or_empty() as brain:
        memories = brain.memories(where, order=order, limit=limit, offset=offset)
        total = brain.count(where)
    if cli.json:
        cli.document({"memories": [memory_document(memory) for memory in memories], "total": total})
        return
    if delimiter is not None:
        from .csv_output import write_table

        write_table(memories, delimiter)
    elif cli.quiet:
        for memory in memories:
            click.echo(visible(memory.id))
    else:
        _list(cli, memories)
    shown = len(memories)
    if total > offset + shown and shown:
        cli.note(f"{offset + 1:,} to {offset + shown:,} of {total:,}; --offset {offset + shown} shows more")
    elif not total:
        cli.note("No memories.")
    elif offset >= total:
        cli.note(f"Only {total:,} memories; --offset is behind the last.")


def _list(cli: CliContext, memories: Sequence[Memory]) -> None:
    columns = ("ID", "TYPE", "AGENT", "WHEN", "TEXT")
    rows = [
        (*(visible(part) for part in (m.id, m.type, m.agent, moment(m.timestamp))), one_line(m.text)) for m in memories
    ]
    if rows:
        cli.table(columns, rows)


@click.command()
@click.option(
    "--agent",
    metavar="NAME",
    shell_complete=agents,
    help="What this agent remembers: its tiers, types, importance and packing.",
)
@command_options
def stats(cli: CliContext, agent: str | None) -> None:
    """What the store holds, and where it is; or what one agent remembers.

    \b
    Examples:
      rmem stats
      rmem stats --json | jq .memories
      rmem stats --agent agent-123
    """
    if agent is not None:
        _show_agent(cli, agent)
        return
    with cli.brain_or_empty() as brain:
        held = brain.stats()
    if cli.json:
        cli.document(held)
        return
    facts(
        [
            ("store", visible(held["address"])),
            ("memories", f"{held['memories']:,}"),
            ("sessions", f"{held['sessions']:,}"),
            ("from", moment(held["oldest"])),
            ("to", moment(held["newest"])),
            ("agents", _format_counts(held["by_agent"])),
            ("types", _format_counts(held["by_type"])),
            ("tiers", _format_counts(held["by_tier"])),
            ("embedder", str(held["embedder"] or "none yet")),
            ("vectors", f"{held['vectors']:,} of {held['dimension'] or 0} numbers"),
            ("words", f"{held['words']:,}"),
            *([("encrypted", f"{held['encrypted']:,}")] if held["encrypted"] else []),
            ("segments", f"{held['segments']:,}"),
            ("size", size(held["bytes"])),
        ],
        terminal=cli.is_terminal,
    )


def _format_counts(counts: dict[str, int], most: int = 10) -> str:
    """Format the most frequent names with their counts, one per line."""
    lines = [f"{number:,}  {visible(name)}" for name, number in list(counts.items())[:most]]
    if len(counts) > most:
        lines.append(f"and {len(counts) - most:,} more")
    return "\n".join(lines) or "–"


def _show_agent(cli: CliContext, name: str) -> None:
    held = _statistics(cli, name)
    if cli.json:
        cli.document(held)
    elif held["total_memories"]:
        _print_agent(held, cli)
    else:
        with cli.brain_or_empty() as brain:
            others = list(brain.stats()["by_agent"])
        known = ", ".join(visible(other) for other in others[:10]) or "none"
        cli.note(f"{visible(name)} has no memories in {visible(cli.address)}; agents there: {known}")


def _statistics(cli: CliContext, name: str) -> MemoryStatistics:
    """Return the statistics of an agent; a missing store counts as empty and is not created."""
    from ..agents import AgentMemoryAPI, MemoryConfig

    path = store_file(cli.address)
    address = cli.address if path is None or path.exists() else ":memory:"
    try:
        with AgentMemoryAPI(MemoryConfig(ltm_config={"path": address})) as api:
            return api.get_memory_statistics(name)
    except MemoryAPIException as error:
        if isinstance(error.__cause__, RemanenceError):
            raise error.__cause__ from None  # its exit code is more specific
        raise


def _print_agent(statistics: MemoryStatistics, cli: CliContext) -> None:
    packed = statistics["compression"]
    facts(
        [
            ("agent", visible(statistics["agent_id"])),
            ("memories", f"{statistics['total_memories']:,}"),
            (
                "types",
                ", ".join(f"{visible(kind)} {n:,}" for kind, n in statistics["memory_type_distribution"].items()),
            ),
            ("steps", f"{statistics['first_step']:,} to {statistics['last_step']:,}"),
            ("from", moment(statistics["oldest"])),
            ("to", moment(statistics["newest"])),
            ("importance", f"{statistics['average_importance']:.2f} on average"),
            ("packed", _packing(packed["bytes_before"], packed["bytes_after"], packed["ratio"])),
        ],
        terminal=cli.is_terminal,
    )
    tiers = [
        (tier, f"{number:,}", *(_size(packed["by_tier"].get(tier, {}).get(key)) for key in _SIZES))
        for tier, number in statistics["tier_distribution"].items()
    ]
    _table(cli, ("TIER", "MEMORIES", "BEFORE PACKING", "AFTER"), tiers, right=(1, 2, 3))
    bins = statistics["importance_histogram"]
    most = max(bins.values())
    bars = [(span, f"{number:,}", "█" * -(-number * _BAR // most)) for span, number in bins.items()]
    _table(cli, ("IMPORTANCE", "MEMORIES", ""), bars, right=(1,))


def _packing(before: int, after: int, ratio: float) -> str:
    return f"{size(before)} in {size(after)}, {ratio:.1f} to 1" if before else "nothing"


_SIZES = ("bytes_before", "bytes_after")


def _size(count: int | None) -> str:
    return size(count) if count else "–"


def _table(cli: CliContext, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int]) -> None:
    click.echo()
    cli.table(columns, rows, right=right)
