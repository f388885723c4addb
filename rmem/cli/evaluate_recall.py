"""`rmem eval recall FILE|FOLDER…`: recall on sets of memories of any kind, beside plain baselines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .cli_context import CliContext
from .evaluate_files import setting_of
from .options import command_options
from .output import one_line
from .progress import progress

if TYPE_CHECKING:
    from ..evaluate.offline import Setting


@click.command()
@click.argument("files", metavar="FILE|FOLDER…", nargs=-1, required=True, type=click.Path())
@click.option("--settings", metavar="SETTINGS", help="Recall so: a JSON file, or NAME=VALUE[,NAME=VALUE…].")
@click.option("--against", metavar="SETTINGS", help="Compare with these settings; `default` is recall as it is.")
@click.option("--no-baselines", is_flag=True, help="Without plain BM25 and reciprocal rank fusion.")
@click.option("--plot", metavar="FILE.svg", type=click.Path(dir_okay=False), help="Also draw the means.")
@click.option(
    "--reliability",
    metavar="FILE.svg",
    type=click.Path(dir_okay=False),
    help="Measure and draw whether hit.relevance means what it says, instead.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the significance test.")
@command_options
def recall(
    cli: CliContext,
    files: tuple[str, ...],
    settings: str | None,
    against: str | None,
    no_baselines: bool,
    plot: str | None,
    reliability: str | None,
    seed: int,
) -> None:
    """Measure how well recall answers the questions of some sets, each in its own stores.

    R@1: a right memory comes first. R@5, R@10: the share of the right ones among the first five and ten. MRR: 1 / rank
    of the first right one. ANY@5, ALL@5: one, or all, among the first five. Sets may count by session. Beside it, in
    the same run: BM25 in its plainest form, and its reciprocal rank fusion with vectors. --json also lists every
    question.

    A set is a JSON file, perhaps gzipped: {"name", "unit": "memory" or "session", "stores": [{"memories": [{"text",
    "actor", "session", "when"}], "questions": [{"question", "now", "session", "relevant": [place of a memory]}]}]}.

    \b
    Examples:
      rmem eval recall history.json.gz
      rmem eval recall sets/ --plot recall.svg
      rmem eval recall sets/ --settings embedder=minilm --against default
      rmem eval recall sets/ --settings context=0 --against default --json
      rmem eval recall sets/ --reliability relevance.svg
    """
    from ..evaluate import recall_sets

    first, second = setting_of(settings, "--settings"), setting_of(against, "--against")
    if second is not None and second.name == ("default" if first is None else first.name):
        raise InputError("--against must be other settings than --settings", field="against")
    if reliability is not None:
        _reliability(cli, files, first, seed, reliability)
        return
    with progress("Recalling") as bar:
        report = recall_sets.evaluate(
            files, settings=first, against=second, baselines=not no_baselines, seed=seed, on_progress=bar
        )
    if plot is not None:
        Path(plot).write_text(recall_sets.plot(report), encoding="utf-8")
    if cli.json:
        cli.document(report)
        return
    columns = ("SET", "SYSTEM", *(name.upper() for name in recall_sets.MEASURES), "QUESTIONS")
    rows = [
        row for result in report["sets"] for row in _rows(result["name"], result["systems"], f"{result['measured']:,}")
    ]
    rows += _rows("mean", report["mean"], "")
    cli.table(columns, rows, right=range(2, 9))
    for result in report["sets"]:
        _compare(result)


def _reliability(cli: CliContext, files: tuple[str, ...], setting: Setting | None, seed: int, path: str) -> None:
    from ..evaluate import reliability

    with progress("Recalling") as bar:
        reports = reliability.evaluate(files, setting=setting, seed=seed, on_progress=bar)
    Path(path).write_text(reliability.plot(reports), encoding="utf-8")
    if cli.json:
        cli.document({"sets": reports})
        return
    columns = ("SET", "HITS", "AUC", "OFF BY", "SAID → RIGHT")
    rows = [
        (
            one_line(report["name"]),
            f"{report['hits']:,}",
            "–" if report["auc"] is None else f"{report['auc']:.3f}",
            f"{report['error']:.3f}",
            " ".join(f"{part['said']:.2f}→{part['right']:.2f}" for part in report["bins"]),
        )
        for report in reports
    ]
    cli.table(columns, rows, right=range(1, 4))


def _rows(name: str, systems: dict[str, dict[str, float]], count: str) -> list[tuple[str, ...]]:
    return [
        (one_line(name), one_line(system), *(f"{100 * value:.1f}" for value in values.values()), count)
        for system, values in systems.items()
    ]


def _compare(report: dict[str, Any]) -> None:
    names = list(report["systems"])
    for measure, comparison in report.get("comparison", {}).items():
        if comparison["better"] is not None:
            better = one_line(names[0 if comparison["better"] == "first" else 1])
            points = f"{100 * abs(comparison['difference']):.1f} points of {measure}, p {comparison['p']:.4f}"
            click.echo(f"{one_line(report['name'])}: {better} is better by {points}")
