"""`rmem stats --agent`: print one agent's statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..errors import MemoryAPIException, RemanenceError
from .cli_context import CliContext, store_file
from .output import facts, moment, size, visible

if TYPE_CHECKING:
    from ..agents.types import MemoryStatistics

_BAR = 30  # characters of the longest bar


def show_agent(cli: CliContext, name: str) -> None:
    held = _statistics(cli, name)
    if cli.json:
        cli.document(held)
    elif held["total_memories"]:
        _print(held, cli)
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


def _print(statistics: MemoryStatistics, cli: CliContext) -> None:
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
    _show(cli, ("TIER", "MEMORIES", "BEFORE PACKING", "AFTER"), tiers, right=(1, 2, 3))
    bins = statistics["importance_histogram"]
    most = max(bins.values())
    bars = [(span, f"{number:,}", "█" * -(-number * _BAR // most)) for span, number in bins.items()]
    _show(cli, ("IMPORTANCE", "MEMORIES", ""), bars, right=(1,))


def _packing(before: int, after: int, ratio: float) -> str:
    return f"{size(before)} in {size(after)}, {ratio:.1f} to 1" if before else "nothing"


_SIZES = ("bytes_before", "bytes_after")


def _size(count: int | None) -> str:
    return size(count) if count else "–"


def _show(cli: CliContext, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int]) -> None:
    click.echo()
    cli.table(columns, rows, right=right)
