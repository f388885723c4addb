"""`rmem eval FILE.jsonl`: recall on a question set of one's own, under one setting or two."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .cli_context import CliContext
from .options import command_options, values
from .output import one_line
from .progress import progress

if TYPE_CHECKING:
    from ..evaluate.offline import Setting


@click.command()
@click.argument("file", metavar="FILE.jsonl", type=click.Path())
@click.option("--k", "depths", metavar="N[,N…]", default="5,10", show_default=True, help="How far down to look.")
@click.option("--settings", metavar="SETTINGS", help="Recall so: a JSON file, or NAME=VALUE[,NAME=VALUE…].")
@click.option("--against", metavar="SETTINGS", help="Compare with these settings; `default` is recall as it is.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the significance test.")
@command_options
def file(cli: CliContext, file: str, depths: str, settings: str | None, against: str | None, seed: int) -> None:
    """Recall@k, nDCG@k and MRR on the questions of a file; the word `file` may be left out.

    Each line is {"question": …, "relevant": [ids or texts]}, perhaps with "where", "now" and "memories". A file that
    brings memories is asked in a temporary store; any other asks the store, which is only read.

    \b
    Examples:
      rmem eval questions.jsonl
      rmem eval questions.jsonl --k 1,5,20 --json
      rmem --store team.db eval questions.jsonl --settings tuned.json --against default
      rmem eval questions.jsonl --settings dense=0.7,mode=hybrid --against mode=lexical
    """
    from ..evaluate import question_sets
    from ..evaluate.offline import evaluate

    own = bool(question_sets.read(file).memories)
    if own and cli.store is not None:
        raise InputError(f"--store must be left out: {file} contains its own memories", field="store")
    with progress("Recalling") as bar, nullcontext(None) if own else cli.existing_brain() as brain:
        result = evaluate(
            file,
            brain=brain,
            depths=_depths(depths),
            settings=setting_of(settings, "--settings"),
            against=setting_of(against, "--against"),
            seed=seed,
            on_progress=bar,
        )
    if cli.json:
        cli.document(result)
    else:
        _print(result, cli)


def _depths(given: str) -> list[int]:
    try:
        return [int(part) for part in given.split(",")]
    except ValueError:
        raise InputError(f"--k must be whole numbers with commas between them, got {given!r}", field="k") from None


def setting_of(given: str | None, option: str) -> Setting | None:
    """Parse settings: a JSON file, NAME=VALUE with commas between them, or `default`."""
    from ..evaluate.offline import Setting

    if given is None:
        return None
    if given == "default":
        return Setting("default")
    if "=" in given and not Path(given).exists():
        return Setting.of(given, values(option, tuple(given.split(","))))
    try:
        return Setting.of(given, json.loads(Path(given).read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(
            f"{option} must be a JSON file, NAME=VALUE or default; {given!r}: {error.strerror or error}",
            field=option.lstrip("-"),
        ) from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{option}: {given} is not JSON: {error}", field=option.lstrip("-")) from None


def _print(result: dict[str, Any], cli: CliContext) -> None:
    first, *others = result["settings"]
    names = [one_line(setting["name"]) for setting in result["settings"]]
    comparison = result.get("comparison")
    if comparison:
        columns = ("MEASURE", *names, "DIFFERENCE", "95 % INTERVAL", "P", "BETTER")
        rows = [_comparison_row(name, value, others[0], comparison[name], names) for name, value in _of(first).items()]
    else:
        columns = ("MEASURE", *names, "")
        rows = [(name, f"{value:.3f}", "") for name, value in _of(first).items()]
    cli.table(columns, rows, right=range(1, len(columns) - 1))
    skipped = f", {result['skipped']:,} skipped" if result["skipped"] else ""
    missing = f"; {result['missing']:,} relevant memories are not in the store" if result["missing"] else ""
    click.echo(f"{one_line(first['embedder'])}, {result['measured']:,} questions{skipped}{missing}")


def _of(setting: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = setting["measures"]
    return found


def _comparison_row(
    name: str, value: float, other: dict[str, Any], comparison: dict[str, Any], names: list[str]
) -> tuple[str, ...]:
    better = {"first": names[0], "second": names[1], None: "no clear difference"}[comparison["better"]]
    return (
        name,
        f"{value:.3f}",
        f"{_of(other)[name]:.3f}",
        f"{comparison['difference']:+.3f}",
        f"{comparison['low']:+.3f} … {comparison['high']:+.3f}",
        f"{comparison['p']:.4f}",
        better,
    )
