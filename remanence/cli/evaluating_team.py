"""`rmem eval team`: how well the team memory tells what fits a prompt, and keeps quiet otherwise."""

from __future__ import annotations

import click

from .face import Face
from .options import answering


@click.command()
@click.option("--bar", type=click.FloatRange(0, 1), help="The relevance from which on something is told.")
@click.option("--mistakes", is_flag=True, help="Also show what was told wrongly and what was missed.")
@answering
def team(face: Face, bar: float | None, mistakes: bool) -> None:
    """Precision and recall of what is told unasked, on a history of four repositories and prompts over it.

    Half of the prompts have nothing to be told. Precision: of the prompts that were told something, the share where it
    was right. Recall: of the prompts that have an answer, the share that was told it. Recall@3 leaves the bar out.

    \b
    Examples:
      rmem eval team
      rmem eval team --bar 0.5 --mistakes
    """
    from ..evaluate.team import evaluate
    from ..team.briefing import BAR

    report = evaluate(BAR if bar is None else bar)
    if face.json:
        face.document(report.to_dict())
        return
    click.echo(f"prompts               {report.prompts} ({report.relevant} with an answer)")
    click.echo(f"precision             {report.precision:.3f}")
    click.echo(f"recall                {report.recall:.3f}")
    click.echo(f"recall@3              {report.recall_at_3:.3f}")
    click.echo(f"precision of memories {report.precision_of_memories:.3f}")
    if mistakes:
        for title, lines in (("Told wrongly", report.wrongly_told), ("Missed", report.missed)):
            click.echo(f"\n{title}:")
            for line in lines:
                click.echo(f"  {line}")
