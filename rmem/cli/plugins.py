"""`rmem plugins`: list the stores, embedders and commands of other distributions, and which of them work."""

from __future__ import annotations

from typing import Any

import click

from . import exit_codes
from .cli_context import CliContext
from .options import command_options
from .output import one_line


@click.command()
@click.option("--kind", type=click.Choice(["store", "embedder", "command"]), help="Only plugins of this kind.")
@command_options
def plugins(cli: CliContext, kind: str | None) -> None:
    """List installed plugins: kind, name, distribution, and whether each loads or why not.

    Every plugin is loaded to find out; one that fails stops none of the others. Exit code 6 if any cannot be used.

    \b
    Examples:
      rmem plugins
      rmem plugins --kind store --json
    """
    from ..plugins import GROUPS, installed

    found = [_check_plugin(plugin) for each in GROUPS if kind in (None, each) for plugin in installed(each)]
    if cli.json:
        cli.document({"plugins": found})
    elif found:
        _print(found, cli)
    else:
        groups = " and ".join(group for each, group in GROUPS.items() if kind in (None, each))
        cli.note(f"no plugins are installed; they are entry points of the group {groups}")
    if not all(entry["loads"] for entry in found):
        raise click.exceptions.Exit(exit_codes.PROBLEMS)


def _check_plugin(plugin: Any) -> dict[str, Any]:
    from ..errors import ConfigError

    problem = plugin.problem
    if problem is None:
        try:
            plugin.load()
        except ConfigError as error:
            problem = str(error)
    return {
        "kind": plugin.kind,
        "name": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "target": plugin.target,
        "loads": problem is None,
        "problem": problem,
    }


def _print(found: list[dict[str, Any]], cli: CliContext) -> None:
    columns = ("KIND", "NAME", "FROM", "VERSION", "STATE")
    rows = [
        (
            plugin["kind"],
            one_line(plugin["name"]),
            one_line(plugin["distribution"]),
            one_line(plugin["version"]),
            "loads" if plugin["loads"] else "fails",
        )
        for plugin in found
    ]
    cli.table(columns, rows)
    for plugin in found:
        if not plugin["loads"]:  # in full, even on a narrow terminal
            click.echo(f"{one_line(plugin['name'])}: {one_line(plugin['problem'])}")
