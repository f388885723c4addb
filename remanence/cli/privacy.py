"""`rmem privacy`: what a policy would find in a text, how well it finds, and how fast."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..errors import InputError
from .face import Face
from .options import answering, text_of
from .printing import aligned, one_line, table, visible
from .progress import progress


@click.group("privacy", invoke_without_command=True)
@click.pass_context
def privacy(context: click.Context) -> None:
    """See what the privacy policy does. REMANENCE_PRIVACY names the policy; without it, the default one is shown.

    \b
    Examples:
      rmem privacy check "mail anna@example.org"
      cat build.log | rmem privacy check - --json
      rmem privacy evaluate tests/privacy/labelled.tsv
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@privacy.command()
@click.argument("text", nargs=-1, required=True)
@answering
def check(face: Face, text: tuple[str, ...]) -> None:
    """Show what would be found in TEXT (- reads standard input), and what would be kept instead. Nothing is stored.

    \b
    Examples:
      rmem privacy check "call +49 30 901820"
      git diff | rmem privacy check -
    """
    from ..errors import PrivacyError
    from ..privacy import PrivacyPolicy, policy_of

    policy = policy_of(None) or PrivacyPolicy.default()
    given = text_of(text)
    findings = policy.find(given)
    try:
        kept: str | None = policy.clean(given)
    except PrivacyError:
        kept = None
    if face.json:
        found = [
            {"kind": one.kind, "rule": one.rule, "start": one.start, "end": one.end, "action": policy.actions[one.kind]}
            for one in findings
        ]
        face.document({"findings": found, "kept": kept})
        return
    if findings:
        columns = ("KIND", "RULE", "ACTION", "AT")
        rows = [(one.kind, one.rule, policy.actions[one.kind], f"{one.start}-{one.end}") for one in findings]
        if face.terminal:
            table(columns, rows)
        else:
            aligned([columns, *rows])
        click.echo()
    click.echo("refused" if kept is None else visible(kept))


@privacy.command()
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--part", default="all", metavar="PART", help="all (the default), tuning or held-out lines.")
@click.option("--wrong", is_flag=True, help="List what was missed and what was found too much, by line.")
@answering
def evaluate(face: Face, file: str, part: str, wrong: bool) -> None:
    """Precision and recall on a file of labelled lines, by kind.

    A line is SOURCE<TAB>TEXT, in which {{email|anna@example.org}} marks what has to be found. A finding counts if its
    kind and both its ends are right.

    \b
    Example:
      rmem privacy evaluate tests/privacy/labelled.tsv --wrong
    """
    from ..privacy.evaluate import PARTS
    from ..privacy.evaluate import evaluate as measure

    if part not in PARTS:
        raise InputError(f"--part must be one of {', '.join(PARTS)}, got {part!r}", field="part")
    result = measure(file, part=part)
    if face.json:
        face.document(result)
        return
    rows = [
        (name, _rate(rates["precision"]), _rate(rates["recall"]), *(str(rates[key]) for key in _COUNTS))
        for name, rates in [*result["by_kind"].items(), ("all", result["overall"])]
    ]
    columns = ("KIND", "PRECISION", "RECALL", "RIGHT", "EXTRA", "MISSED")
    show = table if face.terminal else _plain
    show(columns, rows, right=range(1, 6))
    click.echo(f"{result['lines']} lines, {result['clean_lines']} of them with nothing to find")
    if wrong:
        for one in result["wrong"]:
            rule = f" ({one['rule']})" if one["rule"] else ""
            click.echo(f"line {one['line']}: {one['what']} {one['kind']}{rule} at {one['at'][0]}-{one['at'][1]}")


_COUNTS = ("right", "extra", "missed")


def _plain(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int]) -> None:
    aligned([columns, *rows], right=right)


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


@privacy.command()
@click.option("--megabytes", type=float, default=4.0, show_default=True, help="How much text to read of each sort.")
@answering
def bench(face: Face, megabytes: float) -> None:
    """How fast the policy reads logs, tool output and talk, with nothing, little and much to find.

    \b
    Example:
      rmem privacy bench --json
    """
    from ..privacy import policy_of
    from ..privacy.bench import measure

    if not 0 < megabytes <= 1000:
        raise InputError(f"--megabytes must be above 0, at most 1000, got {megabytes:g}", field="megabytes")
    with progress("Reading"):
        result = measure(megabytes, policy=policy_of(None))
    if face.json:
        face.document(result)
        return
    rows = [
        (one_line(name), str(result[name]["found"]), f"{result[name]['mb_per_cpu_second']:.1f}",
         f"{result[name]['mb_per_second']:.1f}")
        for name in ("clean", "mixed", "dense")
    ]  # fmt: skip
    show = table if face.terminal else _plain
    show(("TEXT", "FOUND", "MB PER CPU SECOND", "MB PER SECOND"), rows, right=range(1, 4))
    click.echo(f"{result['megabytes']:g} MB of each; {result['promised']:g} MB per second are promised")
