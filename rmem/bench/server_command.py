"""`rmem bench server`: its options, and its report as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .report import figure

PROBLEMS = 6  # the exit code of `rmem` for what was found wanting

_HEADINGS = ("calls", "per s", "p50 ms", "p95 ms", "p99 ms", "max ms")


@click.command()
@click.option("--clients", type=click.IntRange(1, 1000), default=64, show_default=True, help="Connections at once.")
@click.option("--seconds", type=click.FloatRange(0.5, 86_400), default=60.0, show_default=True, help="How long.")
@click.option("--processes", type=click.IntRange(1, 64), default=1, show_default=True, help="Clients are their tasks.")
@click.option("--memories", type=click.IntRange(min=0), default=10_000, show_default=True, help="Memories at first.")
@click.option("--writes-in", type=click.IntRange(min=1), default=5, show_default=True, help="One call in N remembers.")
@click.option("-k", type=click.IntRange(1, 1000), default=5, show_default=True, help="Memories that a recall asks for.")
@click.option("--postgres", is_flag=True, help="On a PostgreSQL that is started for it, instead of SQLite.")
@click.option("--kill", is_flag=True, help="Kill the server in the middle, start it again, look for lost writes.")
@click.option("--noisy", is_flag=True, help="Let one organisation keep the server busy, and measure another's calls.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="Where to put the temporary files; by default a folder on a real disk.",
)
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON.")
def server(as_json: bool, postgres: bool, noisy: bool, folder: Path | None, **options: Any) -> None:
    """Let many clients recall from and remember in a real `rmem serve`: throughput, latency, errors, lost writes.

    Each client calls again as soon as it has its answer. At the end every acknowledged write is asked for; exit code 6
    if one is lost or doubled, or if a call failed. Server and clients share this machine.

    \b
    Examples:
      rmem bench server
      rmem bench server --clients 16 --seconds 10 --json
      rmem bench server --kill --seconds 20
      rmem bench server --postgres
      rmem bench server --noisy
    """
    from . import noisy as neighbours
    from .command import one_thread, shown_progress
    from .server import ServerLoad, healthy, run

    above = click.get_current_context().parent
    one_thread()
    with shown_progress() as bar:
        if noisy:
            given = {name: options[name] for name in ("seconds", "memories", "seed")}
            report = neighbours.run(neighbours.NoisyLoad(**given), folder=folder, advance=bar.advance)
        else:
            report = run(ServerLoad(**options), postgres=postgres, folder=folder, advance=bar.advance)
    if as_json or (above is not None and above.params.get("as_json")):
        click.echo(json.dumps(report, indent=2))
    else:
        click.echo(told_of_noise(report) if noisy else told(report))
    if report["errors"]["total"] if noisy else not healthy(report):
        raise click.exceptions.Exit(PROBLEMS)


def told_of_noise(report: dict[str, Any]) -> str:
    """The report of --noisy for a reader."""
    lines = [" " * 16 + "".join(f"{heading:>9}" for heading in _HEADINGS)]
    for when, calls in (("alone", report["alone"]), ("beside noise", report["calls"])):
        for kind, figures in calls.items():
            cells = [f"{figures['calls']:,}", figure(figures["per_s"])]
            cells += [figure(figures[f"{share}_ms"]) for share in ("p50", "p95", "p99", "max")]
            lines.append(f"{kind + ', ' + when:21}" + "".join(f"{cell:>9}" for cell in cells)[5:])
    targets = report["targets"]
    return "\n".join(
        [
            *lines,
            "",
            f"targets        {'met' if targets['met'] else 'not met'}: p99 of /health at most "
            f"{targets['health_p99_ms']:g} ms, of recalls {targets['recall_p99_ms']:g} ms",
            f"errors         {report['errors']['total']}",
            f"noise          {report['noise']}",
        ]
    )


def told(report: dict[str, Any]) -> str:
    """The report for a reader."""
    load, rss, cpu, targets = report["load"], report["rss"], report["cpu"], report["targets"]
    lines = [
        f"{load['clients']:,} clients for {report['wall_s']:.1f} s on {load['store']}, {load['memories']:,} memories "
        f"to begin with, one call in {load['writes_in']} remembers",
        "",
        " " * 10 + "".join(f"{heading:>9}" for heading in _HEADINGS),
    ]
    for name, calls in report["calls"].items():
        cells = [f"{calls['calls']:,}", figure(calls["per_s"])]
        if calls["calls"]:
            cells += [figure(calls[f"{share}_ms"]) for share in ("p50", "p95", "p99", "max")]
        lines.append(f"{name:10}" + "".join(f"{cell:>9}" for cell in cells))
    met = "met" if targets["met"] else "not met"
    lines += [
        "",
        f"targets        {met}: at least {targets['requests_per_s']:g} calls a second, p99 at most "
        f"{targets['p99_ms']:g} ms",
        f"errors         {report['errors']['total']:,}, and {report['server_errors']:,} in the server's log",
        f"lost writes    {report['lost_writes']:,} of {report['acknowledged']:,} acknowledged"
        + (f", {report['doubled_writes']:,} doubled" if report["doubled_writes"] else ""),
        f"CPU            {cpu['server_s']:.1f} s of the server ({cpu['server_ms_per_call']:.2f} ms a call), "
        f"{cpu['clients_s']:.1f} s of the clients",
        f"memory         {rss['start_bytes'] / 1e6:,.0f} MB at the start, {rss['half_bytes'] / 1e6:,.0f} MB at half "
        f"time, {rss['end_bytes'] / 1e6:,.0f} MB at the end",
    ]
    if report["away_s"] is not None:
        lines.append(
            f"killed         away for {report['away_s']:.1f} s; {report['cut_off']['total']:,} calls were cut off, "
            f"{report['unacknowledged_writes']:,} writes of them were kept"
        )
    lines += [f"  {number:,} × {' '.join(text.split())}" for text, number in report["errors"]["told"].items()]
    return "\n".join(lines)
