"""`rmem show`, `list` and `stats`: looking without a question."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ..contents import without_attachments
from ..errors import NotFoundError
from .face import Face, memory_document
from .options import answering, filter_of, filtering
from .printing import aligned, facts, moment, one_line, size, table, visible

if TYPE_CHECKING:
    from ..models import Memory


@click.command()
@click.argument("memory_id", metavar="ID")
@click.option("--vectors", is_flag=True, help="With --json: its vectors too.")
@answering
def show(face: Face, memory_id: str, vectors: bool) -> None:
    """Show one memory with all of its fields.

    \b
    Examples:
      rmem show swe-01-12-1777632000
      rmem show swe-01-12-1777632000 --json | jq .contents
    """
    with face.looking() as brain:
        memory = brain.get(memory_id)
    if memory is None:
        raise NotFoundError(memory_id)
    if face.json:
        face.document(memory_document(memory, vectors=vectors))
    else:
        facts(_facts(memory), terminal=face.terminal)


def _facts(memory: Memory) -> list[tuple[str, str]]:
    """Every field that says something, the text last."""
    own = {key: value for key, value in without_attachments(memory.contents).items() if key != "text"}
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
        ("created", moment(memory.metadata.creation_time)),
        ("recalled", f"{memory.metadata.retrieval_count} times, last {moment(memory.metadata.last_access_time)}"
         if memory.metadata.retrieval_count else "never"),
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
@click.option("--limit", type=int, default=20, show_default=True, metavar="N", help="How many at most.")
@click.option("--offset", type=int, default=0, metavar="N", help="How many to pass over first.")
@filtering
@answering
def list_(face: Face, order: Any, limit: int, offset: int, **filters: Any) -> None:
    """List memories inside a filter, without a question.

    \b
    Examples:
      rmem list
      rmem list --agent swe-01 --type error_fix --type decision --order importance
      rmem list --since 2026-05-01 --until 2026-05-31 --attr ticket=4711 --json
      rmem list --limit 50 --offset 50
    """
    from ..filters import Filter

    where = Filter.of(filter_of(filters))
    with face.looking() as brain:
        memories = brain.memories(where, order=order, limit=limit, offset=offset)
        total = brain.store.count(where)
    if face.json:
        face.document({"memories": [memory_document(memory) for memory in memories], "total": total})
        return
    columns = ("ID", "WHEN", "TYPE", "AGENT", "TEXT")
    rows = [
        (*(visible(part) for part in (m.memory_id, moment(m.timestamp), m.type, m.agent_id)), one_line(m.text))
        for m in memories
    ]
    if face.terminal and rows:
        table(columns, rows)
    elif rows:
        aligned([columns, *rows])
    if total > offset + len(rows) and rows:
        face.note(f"{offset + 1:,} to {offset + len(rows):,} of {total:,}; --offset {offset + len(rows)} shows more")
    elif not rows:
        face.note("No memories." if not total else f"Only {total:,} memories; --offset is behind the last.")


@click.command()
@click.option("--agent", metavar="NAME", help="What this agent remembers: its tiers, types, importance and packing.")
@answering
def stats(face: Face, agent: str | None) -> None:
    """What the store holds, and where it is; or what one agent remembers.

    \b
    Examples:
      rmem stats
      rmem stats --json | jq .memories
      rmem stats --agent agent-123
    """
    if agent is not None:
        from .agents import show_agent

        show_agent(face, agent)
        return
    with face.looking() as brain:
        held = brain.stats()
    if face.json:
        face.document(held)
        return
    facts(
        [
            ("store", visible(held["address"])),
            ("memories", f"{held['memories']:,}"),
            ("sessions", f"{held['sessions']:,}"),
            ("from", moment(held["oldest"])),
            ("to", moment(held["newest"])),
            ("agents", _counted(held["by_agent"])),
            ("types", _counted(held["by_type"])),
            ("tiers", _counted(held["by_tier"])),
            ("embedder", str(held["embedder"] or "none yet")),
            ("vectors", f"{held['vectors']:,} of {held['dimension'] or 0} numbers"),
            ("words", f"{held['words']:,}"),
            *([("encrypted", f"{held['encrypted']:,}")] if held["encrypted"] else []),
            ("segments", f"{held['segments']:,}"),
            ("size", size(held["bytes"])),
        ],
        terminal=face.terminal,
    )


def _counted(counts: dict[str, int], most: int = 10) -> str:
    """The most frequent names with their numbers, one to a line."""
    lines = [f"{number:,}  {visible(name)}" for name, number in list(counts.items())[:most]]
    if len(counts) > most:
        lines.append(f"and {len(counts) - most:,} more")
    return "\n".join(lines) or "–"
