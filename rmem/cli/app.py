"""`rmem` itself: its global options, its help, where each subcommand lives, and how a run ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .. import __version__
from . import exit_codes
from .cli_context import CliContext

if TYPE_CHECKING:
    from ..plugins import Plugin

COMPLETE_VARIABLE = "_RMEM_COMPLETE"


class CommandEntry(NamedTuple):
    """A subcommand: the module that holds it, its name there, and the line that `rmem --help` shows."""

    module: str
    name: str
    summary: str


SECTIONS: dict[str, dict[str, CommandEntry]] = {
    "Remember and recall": {
        "remember": CommandEntry(".remember", "remember", "Store a memory."),
        "recall": CommandEntry(".recall", "recall", "Find the memories that answer a question."),
        "show": CommandEntry(".show", "show", "Show one memory with all its fields."),
        "list": CommandEntry(".show", "list_", "List memories that match a filter."),
        "update": CommandEntry(".remember", "update", "Change fields of a memory."),
        "forget": CommandEntry(".forget", "forget", "Remove memories permanently, or prune faded ones."),
        "restore": CommandEntry(".forget", "restore", "Restore pruned memories."),
        "pin": CommandEntry(".forget", "pin", "Exempt a memory from pruning."),
    },
    "Facts": {
        "fact": CommandEntry(".facts", "fact", "State a fact, end it, or take it back."),
        "graph": CommandEntry(".graph", "graph", "Query facts: their times, paths and contradictions."),
    },
    "Tables": {
        "sql": CommandEntry(".tables", "sql", "Run SQL on tables, local or on a server."),
    },
    "Move": {
        "export": CommandEntry(".export_import", "export", "Write memories to a JSONL or Parquet file."),
        "import": CommandEntry(
            ".export_import", "import_", "Read memories from JSONL, Parquet, text, Markdown or CSV."
        ),
        "backup": CommandEntry(".maintenance", "backup", "Copy the store while it is in use."),
        "migrate": CommandEntry(".migrate", "migrate", "Copy an SQLite file into PostgreSQL."),
    },
    "Maintain": {
        "stats": CommandEntry(".show", "stats", "Show what the store holds."),
        "audit": CommandEntry(".forget", "audit", "Show who changed which memory; --verify checks the log."),
        "privacy": CommandEntry(".privacy", "privacy", "Try the privacy policy on a text."),
        "keys": CommandEntry(".keys", "keys", "Create, list and rotate encryption keys."),
        "doctor": CommandEntry(".maintenance", "doctor", "Check the store; --repair rebuilds derived data."),
        "reindex": CommandEntry(".maintenance", "reindex", "Embed and index all memories again."),
    },
    "Serve": {
        "ui": CommandEntry(".ui", "ui", "Open the dashboard in the browser."),
        "serve": CommandEntry(".serve", "serve", "Serve memories and tables over HTTP."),
        "org": CommandEntry(".tenants", "org", "Create and list the organisations of a server."),
        "workspace": CommandEntry(".tenants", "workspace", "Create, list and delete workspaces."),
        "member": CommandEntry(".tenants", "member", "Add, list and remove members and their roles."),
        "token": CommandEntry(".tenants", "token", "Create, list and revoke tokens."),
    },
    "Team": {
        "install": CommandEntry(".install", "install", "Connect coding agents to the team memory."),
        "uninstall": CommandEntry(".install", "uninstall", "Remove what install added."),
        "status": CommandEntry(
            ".install", "status", "Show which agents are connected, and the state of the team memory."
        ),
        "login": CommandEntry(".sync", "login", "Share what your agents learn through a server."),
        "logout": CommandEntry(".sync", "logout", "Stop sharing."),
        "sync": CommandEntry(".sync", "sync", "Synchronise with the team's server now."),
        "review": CommandEntry(".review", "review", "List memories that contradict each other or are out of date."),
        "share": CommandEntry(".review", "share", "Let others see a memory."),
        "unshare": CommandEntry(".review", "unshare", "Stop sharing a memory."),
        "mcp": CommandEntry(".mcp", "mcp", "Run the MCP server for a coding agent."),
        "hook": CommandEntry(".hook", "hook", "Handle one event of a coding agent; run by hooks."),
    },
    "Measure": {
        "eval": CommandEntry(".evaluate", "evaluate", "Measure recall: your questions, public ones, feedback."),
    },
    "Set up": {
        "plugins": CommandEntry(".plugins", "plugins", "List installed plugins and whether they load."),
        "completion": CommandEntry(".completion", "completion", "Print the completion script of your shell."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
_MISSING_HINTS = {"bench": " It is a distribution of its own; in a checkout: pip install -e ./benchmarks"}


def _plugin_commands() -> list[Plugin]:
    """Return the commands of plugins from their metadata, without importing them."""
    from ..plugins import installed

    return [plugin for plugin in installed("command") if plugin.name not in COMMANDS]


def _from_plugin(name: str) -> click.Command | None:
    from ..errors import ConfigError

    plugin = next((candidate for candidate in _plugin_commands() if candidate.name == name), None)
    if plugin is None:
        return None
    command = plugin.load()
    if not isinstance(command, click.Command):
        kind = type(command).__name__
        raise ConfigError(f"the command plugin {name!r} of {plugin.origin} must be a click.Command, but is a {kind}")
    return command


class Rmem(click.Group):
    """The root command. A subcommand's module is imported when that subcommand is used; those of plugins are looked
    for (entry points of the group rmem.commands) when a name is not ours, and to be listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *(plugin.name for plugin in _plugin_commands())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return _from_plugin(cmd_name)
        command: click.Command = getattr(import_module(entry.module, __package__), entry.name)
        command.short_help = entry.summary
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS and args[0] not in self.list_commands(ctx):
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = _MISSING_HINTS.get(args[0], f" Did you mean {near[0]!r}?" if near else "")
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.summary) for name, entry in section.items()])
        if added := _plugin_commands():
            with formatter.section("From plugins"):
                formatter.write_dl([(plugin.name, plugin.summary) for plugin in added])

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        """Run, and exit with the code that `exit_codes` documents."""
        arguments = list(sys.argv[1:] if args is None else args)
        sys.exit(exit_codes.run_to_exit_code(lambda: self._run(arguments, extra.get("obj")), arguments))

    def _run(self, arguments: list[str], cli: CliContext | None) -> int:
        instruction = os.environ.get(COMPLETE_VARIABLE)
        if instruction:
            from click.shell_completion import shell_complete

            from . import powershell  # noqa: F401  makes itself known to click

            return shell_complete(self, {}, "rmem", COMPLETE_VARIABLE, instruction)
        with self.make_context("rmem", arguments, obj=cli) as context:
            self.invoke(context)
        return 0


@click.group(
    cls=Rmem,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"""\b
Exit codes:
{exit_codes.TABLE}
""",
)
@click.option(
    "--store",
    metavar="PATH|URL",
    help="The store to use: a path, :memory:, postgresql://… or https://server. Default: memories.db in $RMEM_HOME, "
    "or in your data folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; errors too, on stderr.")
@click.option("-q", "--quiet", is_flag=True, help="Print ids alone where there are some, and no notes.")
@click.version_option(__version__, prog_name="rmem", message="%(prog)s %(version)s")
@click.pass_context
def rmem(context: click.Context, store: str | None, as_json: bool, quiet: bool) -> None:
    """The memory that stays when the session ends.

    \b
    Examples:
      rmem remember "Fixed the OOM: switched to pyarrow.dataset" --type error_fix
      rmem recall "ETL job killed by OOM"
      rmem recall "what did we decide about parquet" --since "two weeks ago" --explain
      rmem list --type decision --json
      rmem --store team.db stats

    Nearly every command takes --json, and --store after its name too; `rmem COMMAND --help` shows examples.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
    context.obj = CliContext(store, as_json, quiet)
    if as_json:
        context.default_map = {"bench": {"as_json": True}}  # a separate tool without a CliContext


def main() -> None:
    """The entry point of the `rmem` script."""
    rmem.main()
