"""`rmem bench load`: its options, and its report as text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from .report import figure

PROBLEMS = 6  # the exit code of `rmem` for what was found wanting

_TIMES = (("start", "at the start"), ("half", "at half time"), ("end", "at the end"))
_HEADINGS = ("calls", "per s", "p50 ms", "p95 ms", "p99 ms", "max ms", "CPU p50", "CPU p99")


@click.command()
@click.option("--agents", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Agents at work.")
@click.option("--seconds", type=click.FloatRange(0.1, 86_400), default=30.0, show_default=True, help="How long.")
@click.option("--readers", type=click.IntRange(min=0), help="How many of the agents recall; by default four in five.")
@click.option("--writers", type=click.IntRange(min=0), help="How many of the agents remember; by default the others.")
@click.option("--processes", type=click.IntRange(1, 64), default=2, show_default=True, help="Agents are their threads.")
@click.option("--memories", type=click.IntRange(min=0), default=5000, show_default=True, help="Memories to begin with.")
@click.option(
    "--pause", type=click.FloatRange(min=0), default=0.0, show_default=True, help="Seconds between two calls."
)
@click.option("--store", metavar="PATH|URL", help="A store of yours; by default a temporary SQLite file.")
@click.option("--keep", is_flag=True, help="Leave in --store what was written to it.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="Where to put the temporary file; by default a folder on a real disk.",
)
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON.")
def load(
    as_json: bool,
    agents: int,
    readers: int | None,
    writers: int | None,
    store: str | None,
    keep: bool,
    folder: Path | None,
    **options: Any,
) -> None:
    """Let many agents read and write one store at once: throughput, latency, errors, lost writes, memory.

    Each agent calls again as soon as it has its answer, unless it pauses. At the end every acknowledged write is
    looked for; exit code 6 if one is lost or a call failed. In a store of yours the agents are called load-…, and what
    they wrote is forgotten again.

    \b
    Examples:
      rmem bench load --agents 50 --seconds 30
      rmem bench load --agents 200 --writers 100 --processes 4 --json
      rmem bench load --store team.db --seconds 10 --pause 0.5
    """
    from .command import one_thread, shown_progress
    from .load import healthy, run, shared

    context = click.get_current_context()
    above = context.parent
    address = store if store is not None else getattr(context.obj, "store", None)
    if address == ":memory:":
        raise click.BadParameter("must be a store that several processes can open", param_hint="--store")
    if readers is not None and writers is not None:
        given = context.get_parameter_source("agents") is click.core.ParameterSource.COMMANDLINE
        agents = agents if given else readers + writers
    try:
        chosen = replace(shared(agents, readers, writers), **options)
    except ValueError as error:
        raise click.UsageError(f"{error}.", ctx=context) from None
    one_thread()
    with shown_progress() as bar:
        report = run(chosen, address, folder=folder, keep=keep, advance=bar.advance)
    if as_json or (above is not None and above.params.get("as_json")):
        click.echo(json.dumps(report, indent=2))
    else:
        click.echo(told(report))
    if not healthy(report):
        raise click.exceptions.Exit(PROBLEMS)


def told(report: dict[str, Any]) -> str:
    """The report for a reader."""
    load, rss = report["load"], report["rss"]
    lines = [
        f"{load['agents']:,} agents ({load['readers']:,} readers, {load['writers']:,} writers) in {load['processes']} "
        f"processes for {report['wall_s']:.1f} s on {load['store']}, {load['memories']:,} memories to begin with",
        "",
        " " * 8 + "".join(f"{heading:>9}" for heading in _HEADINGS),
    ]
    for name in ("reads", "writes"):
        calls = report[name]
        cells = [f"{calls['calls']:,}", figure(calls["per_s"])]
        if calls["calls"]:
            cells += [figure(calls["wall_ms"][share]) for share in ("p50", "p95", "p99", "max")]
            cells += [figure(calls["cpu_ms"][share]) for share in ("p50", "p99")]
        lines.append(f"{name:8}" + "".join(f"{cell:>9}" for cell in cells))
    lines += [
        "",
        f"errors         {report['errors']['total']:,}",
        f"lost writes    {report['lost_writes']:,} of {report['acknowledged']:,} acknowledged"
        + (f", {report['unindexed_writes']:,} not in the index" if report["unindexed_writes"] else ""),
        f"CPU            {report['cpu']['seconds']:.1f} s, {report['cpu']['cores']:.2f} cores busy",
        "memory         "
        + ", ".join(f"{rss[f'{when}_bytes'] / 1e6:,.0f} MB {told}" for when, told in _TIMES)
        + f" ({rss['late_growth_bytes'] / 1e6:+,.0f} MB in the second half)",
    ]
    lines += [f"  {number:,} × {' '.join(text.split())}" for text, number in report["errors"]["told"].items()]
    return "\n".join(lines)
