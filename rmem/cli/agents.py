"""`rmem stats --agent`: print one agent's statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..errors import MemoryAPIException, RemanenceError
from .face import Face, store_file
from .output import aligned, facts, moment, size, table, visible

if TYPE_CHECKING:
    from ..agents.types import MemoryStatistics

_BAR = 30  # characters of the longest bar


def show_agent(face: Face, name: str) -> None:
    held = _statistics(face, name)
    if face.json:
        face.document(held)
    elif held["total_memories"]:
        _print(held, face)
    else:
        with face.looking() as brain:
            others = list(brain.stats()["by_agent"])
        known = ", ".join(visible(other) for other in others[:10]) or "none"
        face.note(f"{visible(name)} has no memories in {visible(face.address)}; agents there: {known}")


def _statistics(face: Face, name: str) -> MemoryStatistics:
    """A store that is not there counts as empty and is not made."""
    from ..agents import AgentMemoryAPI, MemoryConfig

    path = store_file(face.address)
    address = face.address if path is None or path.exists() else ":memory:"
    try:
        with AgentMemoryAPI(MemoryConfig(ltm_config={"path": address})) as api:
            return api.get_memory_statistics(name)
    except MemoryAPIException as error:
        if isinstance(error.__cause__, RemanenceError):
            raise error.__cause__ from None  # its exit code tells more
        raise


def _print(held: MemoryStatistics, face: Face) -> None:
    packed = held["compression"]
    facts(
        [
            ("agent", visible(held["agent_id"])),
            ("memories", f"{held['total_memories']:,}"),
            ("types", ", ".join(f"{visible(kind)} {n:,}" for kind, n in held["memory_type_distribution"].items())),
            ("steps", f"{held['first_step']:,} to {held['last_step']:,}"),
            ("from", moment(held["oldest"])),
            ("to", moment(held["newest"])),
            ("importance", f"{held['average_importance']:.2f} on average"),
            ("packed", f"{size(packed['bytes_before'])} in {size(packed['bytes_after'])}, {packed['ratio']:.1f} to 1"),
        ],
        terminal=face.terminal,
    )
    tiers = [
        (tier, f"{number:,}", *(_size(packed["by_tier"].get(tier, {}).get(key)) for key in _SIZES))
        for tier, number in held["tier_distribution"].items()
    ]
    _show(face, ("TIER", "MEMORIES", "BEFORE PACKING", "AFTER"), tiers, right=(1, 2, 3))
    bins = held["importance_histogram"]
    most = max(bins.values())
    bars = [(span, f"{number:,}", "█" * -(-number * _BAR // most)) for span, number in bins.items()]
    _show(face, ("IMPORTANCE", "MEMORIES", ""), bars, right=(1,))


_SIZES = ("bytes_before", "bytes_after")


def _size(count: int | None) -> str:
    return size(count) if count else "–"


def _show(face: Face, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int]) -> None:
    click.echo()
    if face.terminal:
        table(columns, rows, right=right)
    else:
        aligned([columns, *rows], right=right)
