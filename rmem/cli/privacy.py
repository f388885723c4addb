"""`rmem privacy`: show what a policy would find in a text."""

from __future__ import annotations

import click

from .cli_context import CliContext
from .options import command_group, command_options, text_of
from .output import visible


@command_group
def privacy() -> None:
    """See what the privacy policy does. RMEM_PRIVACY names the policy; without it, the default one is shown.

    \b
    Examples:
      rmem privacy check "mail anna@example.org"
      cat build.log | rmem privacy check - --json
    """


@privacy.command()
@click.argument("text", nargs=-1, required=True)
@command_options
def check(cli: CliContext, text: tuple[str, ...]) -> None:
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
    if cli.json:
        found = [
            {
                "kind": finding.kind,
                "rule": finding.rule,
                "start": finding.start,
                "end": finding.end,
                "action": policy.actions[finding.kind],
            }
            for finding in findings
        ]
        cli.document({"findings": found, "kept": kept})
        return
    if findings:
        columns = ("KIND", "RULE", "ACTION", "AT")
        rows = [
            (finding.kind, finding.rule, policy.actions[finding.kind], f"{finding.start}-{finding.end}")
            for finding in findings
        ]
        cli.table(columns, rows)
        click.echo()
    click.echo("refused" if kept is None else visible(kept))
