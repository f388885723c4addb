"""`rmem bench privacy`: how well the privacy policy finds, and how fast."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click

from rmem.cli.cli_context import CliContext
from rmem.cli.options import command_options
from rmem.cli.output import one_line
from rmem.cli.progress import progress
from rmem.errors import InputError


@click.group("privacy")
@click.pass_context
def privacy(context: click.Context) -> None:
    """How well the privacy policy finds what it should (eval), and how fast it reads (speed)."""
    context.obj = context.obj if isinstance(context.obj, CliContext) else CliContext(None, False)


@privacy.command("eval")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--faker", is_flag=True, help="Add made-up people of 16 countries (needs: pip install Faker).")
@click.option("--part", default="test", show_default=True, metavar="PART", help="test, development or all samples.")
@click.option("--wrong", is_flag=True, help="List what was missed and found too much, and findings in real text.")
@command_options
def evaluate(cli: CliContext, paths: tuple[Path, ...], faker: bool, part: str, wrong: bool) -> None:
    """Precision and recall by kind, on what others wrote. Values are never shown.

    \b
    A PATH is a clone, recognized by what it holds, or a file:
      gitleaks, noseyparker, kingfisher   the examples of the rules, in code and in prose
      trufflehog                the inputs of the tests of its detectors
      detect-secrets            the parameters of the tests of its plugins
      creddata                  lines of 297 projects that people judged (run its download_data.py first)
      presidio                  the parameters of the tests of its recognizers
      presidio-research         sentences with marked values
      any other clone           its files and its log: how often real text raises an alarm
      FILE.tsv                  lines SOURCE<TAB>TEXT with marks: {{email|anna@example.org}}

    A value is found if all of it is covered. Samples are split in two parts by a hash of the rule or template that they
    are from: rules were tuned on "development"; "test" was only counted.

    \b
    Examples:
      git clone https://github.com/gitleaks/gitleaks
      rmem bench privacy eval gitleaks --faker
      rmem bench privacy eval ~/src/my-project --wrong
      rmem bench privacy eval tests/privacy/labelled.tsv --part all --json
    """
    from .corpora import made_up_people, read_corpus
    from .quality import evaluate as measure

    if not paths and not faker:
        raise InputError("name at least one clone or file of labelled lines, or --faker", field="paths")
    readers = [read_corpus(path.expanduser()) for path in paths]
    if faker:
        readers.append(made_up_people())
    with progress("Reading") as bar:
        result = measure(chain.from_iterable(readers), part=part, progress=bar)
    if cli.json:
        cli.document(result)
        return
    if result["by_kind"]:
        columns = ("KIND", "RECALL", "PRECISION", "FOUND", "MISSED", "EXTRA")
        rows = [
            (name, _rate(rates["recall"]), _rate(rates["precision"]), *(str(rates[key]) for key in _COUNTS))
            for name, rates in result["by_kind"].items()
        ]
        cli.table(columns, rows, right=range(1, 6))
        told = ", ".join(f"{count} of {corpus}" for corpus, count in result["samples"].items())
        click.echo(f"{part} samples: {told}")
    for corpus, found in result["real_text"].items():
        told = ", ".join(f"{count} {kind}" for kind, count in found["findings"].items())
        click.echo(f"{corpus}: {found['megabytes']} MB, {told or 'nothing found'}")
    if wrong:
        for one in result["wrong"]:
            rule = f" ({one['rule']})" if one["rule"] else ""
            place = f"{one['corpus']}, {one['source']}"
            click.echo(one_line(f"{place}: {one['what']} {one['row']}{rule} at {one['at'][0]}-{one['at'][1]}"))
        for one in result["alarms"]:
            click.echo(one_line(f"{one['corpus']}, {one['source']}: {one['kind']} ({one['rule']})"))


_COUNTS = ("found", "missed", "extra")


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


@privacy.command()
@click.option("--megabytes", type=float, default=4.0, show_default=True, help="How much text to read of each sort.")
@command_options
def speed(cli: CliContext, megabytes: float) -> None:
    """How fast the policy reads logs, tool output and talk, with nothing, little and much to find.

    \b
    Example:
      rmem bench privacy speed --json
    """
    from rmem.privacy import policy_of

    from .speed import measure

    if not 0 < megabytes <= 1000:
        raise InputError(f"--megabytes must be above 0, at most 1000, got {megabytes:g}", field="megabytes")
    with progress("Reading"):
        result = measure(megabytes, policy=policy_of(None))
    if cli.json:
        cli.document(result)
        return
    rows = [
        (one_line(name), str(result[name]["found"]), f"{result[name]['mb_per_cpu_second']:.1f}",
         f"{result[name]['mb_per_second']:.1f}")
        for name in ("clean", "mixed", "dense")
    ]  # fmt: skip
    cli.table(("TEXT", "FOUND", "MB PER CPU SECOND", "MB PER SECOND"), rows, right=range(1, 4))
    click.echo(f"{result['megabytes']:g} MB of each; {result['promised']:g} MB per second are promised")
