"""`rmem eval online`: measure recall in use, by the feedback that the store keeps."""

from __future__ import annotations

from typing import Any

import click

from .cli_context import CliContext
from .options import command_options
from .output import one_line

_FIGURES = ("success_rate", "hit_ratio", "mrr")
_COLUMNS = ("RECALLS", "HITS", "SUCCESS", "HIT RATIO", "MRR")


@click.command()
@click.option("--agent", multiple=True, metavar="NAME", help="Only memories of this agent; repeatable.")
@click.option("--type", "kind", multiple=True, metavar="NAME", help="Only memories of this type; repeatable.")
@click.option("--since", metavar="WHEN", help="Only feedback from then on: 2026-05-01, 'two weeks ago'.")
@click.option("--by", type=click.Choice(["day", "week"]), default="week", show_default=True, help="Window of time.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the significance test.")
@command_options
def online(
    cli: CliContext, agent: tuple[str, ...], kind: tuple[str, ...], since: str | None, by: str, seed: int
) -> None:
    """Success rate, hit ratio and mean reciprocal rank of recalls with feedback, and their drift.

    `hit.useful()` and `brain.feedback(…)` give feedback. Drift compares the last window of time that has
    feedback with the one before; `better` and `worse` mean more than luck (p < 0.05).

    \b
    Examples:
      rmem eval online
      rmem eval online --agent swe-01 --since "two months ago" --by day --json
    """
    from .. import checks
    from ..evaluate.online import report

    start = None if since is None else checks.moment("since", since)
    with cli.brain_or_empty() as brain:
        result = report(brain.store.feedback(start), agent=agent, type=kind, by=by, seed=seed)
    if cli.json:
        cli.document(result)
    elif result["overall"]["recalls"]:
        _print(result, cli)
    else:
        cli.note("no recall has feedback yet; hit.useful() and brain.feedback(…) give it")


def _print(result: dict[str, Any], cli: CliContext) -> None:
    windows = [(row["from"], *_cells(row), "") for row in result["windows"]]
    cli.table((f"{result['by'].upper()} FROM", *_COLUMNS, ""), windows, right=range(1, 6))
    click.echo()
    groups = [
        (one_line(row["agent"]) or "–", one_line(row["type"]) or "–", *_cells(row), _drift(row["drift"]))
        for row in result["groups"]
    ]
    groups.append(("all", "", *_cells(result["overall"]), _drift(result["drift"])))
    cli.table(("AGENT", "TYPE", *_COLUMNS, "DRIFT"), groups, right=range(2, 7))


def _cells(figures: dict[str, Any]) -> list[str]:
    shown = ["–" if figures[name] is None else f"{figures[name]:.3f}" for name in _FIGURES]
    return [f"{figures['recalls']:,}", f"{figures['hits']:,}", *shown]


def _drift(drift: dict[str, Any] | None) -> str:
    if drift is None:
        return "–"
    success = drift["measures"]["success_rate"]
    return f"{drift['direction']}: success {success['change']:+.3f} (p {success['p']:.3f})"
