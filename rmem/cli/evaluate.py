"""`rmem eval`: recall quality on question sets of your own, and in use. `rmem-bench` adds public data sets."""

from __future__ import annotations

import click

from ..errors import ConfigError
from . import app
from .evaluate_files import file
from .evaluate_online import online

_OF_BENCH = ("facts", "locomo", "recall", "team")


class _Evaluate(click.Group):
    """Treats an argument that is not the name of a measure as a question set: `rmem eval questions.jsonl`. Plugins that
    are called `eval.NAME` are further measures."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*self.commands, *app.plugin_commands("eval")])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        plugin = app.plugin_commands("eval").get(cmd_name)
        return None if plugin is None else app.load_command(plugin)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.list_commands(ctx), *ctx.help_option_names):
            if args[0] in _OF_BENCH:
                raise ConfigError(
                    f"`rmem eval {args[0]}` is part of rmem-bench, a distribution of its own; in a checkout: "
                    "pip install -e ./benchmarks"
                )
            args = ["file", *args]
        return super().parse_args(ctx, args)


@click.group("eval", cls=_Evaluate, invoke_without_command=True)
@click.pass_context
def evaluate(context: click.Context) -> None:
    """Measure recall: on a question set of your own, or by the feedback of its users; with rmem-bench also on public
    data sets.

    \b
    Examples:
      rmem eval questions.jsonl
      rmem eval questions.jsonl --settings dense=0.7 --against default --k 5,10
      rmem eval online --by week
      rmem eval recall sets/
      rmem eval locomo locomo10.json
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


evaluate.add_command(file)
evaluate.add_command(online)
