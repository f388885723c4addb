"""`rmem eval team`: measure how often the team memory shows what fits a prompt, and shows nothing otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .cli_context import CliContext
from .options import command_options
from .output import align, one_line
from .progress import progress

if TYPE_CHECKING:
    from ..evaluate.team import Figures, PromptResult
    from ..evaluate.team.fitting import Curve


@click.command()
@click.option(
    "--repository", "repositories", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A clone whose history is imported into a temporary store; repeatable.",
)  # fmt: skip
@click.option(
    "--prompts", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="A file of prompts (JSON Lines), or a folder of them; repeatable.",
)  # fmt: skip
@click.option("--sessions", multiple=True, metavar="AGENT=FOLDER", help="Recorded sessions to import too; repeatable.")
@click.option("--bar", type=click.FloatRange(0, 1), help="The relevance from which on something is shown.")
@click.option("--fit", is_flag=True, help="Fit the curve of relevance; figures are of repositories that were left out.")
@click.option("--mistakes", is_flag=True, help="Also list what was shown wrongly and what was missed.")
@command_options
def team(
    cli: CliContext,
    repositories: tuple[Path, ...],
    prompts: tuple[Path, ...],
    sessions: tuple[str, ...],
    bar: float | None,
    fit: bool,
    mistakes: bool,
) -> None:
    """Precision and recall of what hooks show, at a prompt and when a command fails.

    Half of the prompts have no answer. Precision: of the memories that were shown, the share that was right. Recall: of
    the prompts with an answer, the share that was shown it. Shown anyway: of the prompts without one, the share that
    was shown something. First three: right ones among the three most relevant, whatever the bar.
    Without repositories a small history that is part of the package is asked.

    \b
    Examples:
      rmem eval team --repository ../click --prompts benchmarks/team_prompts
      rmem eval team --repository ../click --repository ../httpx --prompts prompts.jsonl --mistakes
      rmem eval team --bar 0.5
    """
    from ..evaluate import team as evaluation
    from ..team.briefing import BAR

    if bool(repositories) != bool(prompts):
        raise InputError("--repository and --prompts go together", field="prompts" if repositories else "repository")
    if fit and not repositories:
        raise InputError("--fit needs --repository and --prompts", field="fit")
    limit = BAR if bar is None else bar
    curve = None
    if repositories:
        results, curve = _results(repositories, prompts, [_session(given) for given in sessions], fit)
    else:
        from ..evaluate.team import builtin

        results = builtin.evaluate()
    groups = {name: [result for result in results if result.prompt.repository == name] for name in _names(results)}
    figures = {name: evaluation.measure(group, limit) for name, group in groups.items()}
    overall = evaluation.measure(results, limit)
    points = {at: evaluation.measure(results, at) for at in sorted({*evaluation.BARS, limit})}
    if cli.json:
        document: dict[str, Any] = {
            "bar": limit,
            "repositories": {name: figure.to_dict() for name, figure in figures.items()},
            "all": overall.to_dict(),
            "curve": [{"bar": at, **figure.to_dict()} for at, figure in points.items()],
        }
        document |= {} if curve is None else {"fitted": {"base": curve.base, "weights": curve.weights}}
        cli.document(document | (evaluation.mistakes(results, limit) if mistakes else {}))
        return
    _table("REPOSITORY", {**figures, "all": overall}, counts=True)
    click.echo("")
    _table("BAR", {f"{at:.2f}{' *' if at == limit else ''}": figure for at, figure in points.items()}, counts=False)
    if curve is not None:
        click.echo(f"\nBASE = {curve.base:.2f}")
        click.echo("\n".join(f"{name:8} {weight:6.2f}" for name, weight in curve.weights.items()))
    if mistakes:
        for title, lines in evaluation.mistakes(results, limit).items():
            click.echo(f"\n{title.replace('_', ' ').capitalize()}:")
            for line in lines:
                click.echo(f"  {one_line(line)}")


def _results(
    repositories: Sequence[Path], prompts: Sequence[Path], sessions: Sequence[tuple[str, Path]], fit: bool
) -> tuple[list[PromptResult], Curve | None]:
    from ..evaluate.team import fitting
    from ..evaluate.team.repositories import import_histories, read_prompts

    read = [prompt for place in prompts for prompt in read_prompts(place)]
    with progress("Importing") as bar:

        def report(label: str, done: int, total: int) -> None:
            bar.under(label)(done, total)

        with import_histories(repositories, read, sessions=sessions, on_progress=report) as histories:
            if not fit:
                return histories.evaluate(report), None
            known = fitting.examples(histories)
            return fitting.cross_validate(known), fitting.fit(known)


def _session(given: str) -> tuple[str, Path]:
    agent, _, folder = given.partition("=")
    if agent not in ("claude-code", "codex") or not Path(folder).is_dir():
        raise InputError(f"--sessions must be claude-code=FOLDER or codex=FOLDER, got {given!r}", field="sessions")
    return agent, Path(folder)


def _names(results: Sequence[PromptResult]) -> list[str]:
    return list(dict.fromkeys(result.prompt.repository for result in results))


def _table(first: str, rows: dict[str, Figures], *, counts: bool) -> None:
    def share(value: float, part: int, whole: int) -> str:
        return f"{value:.3f} ({part} of {whole})" if counts else f"{value:.3f}"

    lines = [[first, "PRECISION", "RECALL", "SHOWN ANYWAY", "FIRST THREE"]]
    for name, figures in rows.items():
        lines.append([
            name,
            share(figures.precision, figures.right, figures.shown),
            share(figures.recall, figures.recalled, figures.with_answer),
            share(figures.wrongly, figures.shown_wrongly, figures.prompts - figures.with_answer),
            share(figures.recall_at_3, figures.first_three, figures.with_answer),
        ])  # fmt: skip
    align(lines)
