"""Options that several subcommands share, and the parsers of their values."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from ..errors import InputError
from .cli_context import CliContext
from .completion_values import agents, types

Function = Callable[..., Any]


def command_options(function: Function) -> Function:
    """Pass the CliContext to a subcommand, and add --store, --json and --quiet to its options."""

    @click.option("--store", metavar="PATH|URL", help="The store to use, as before the command.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.option("-q", "--quiet", is_flag=True, help="Print ids alone where there are some, and no notes.")
    @wraps(function)
    def run(as_json: bool, quiet: bool, store: str | None, **options: Any) -> Any:
        cli = click.get_current_context().obj
        chosen = CliContext(store if store is not None else cli.store, cli.json or as_json, cli.quiet or quiet)
        return function(chosen, **options)

    return run


def filter_options(function: Function) -> Function:
    """Add the options of a Filter; `filter_of` builds it from them."""
    for option in reversed(_FILTERS):
        function = option(function)
    return function


_FILTERS: tuple[Callable[[Function], Function], ...] = (
    click.option("--agent", multiple=True, metavar="NAME", shell_complete=agents,
                 help="Only this agent; repeat for any of several."),
    click.option("--type", multiple=True, metavar="NAME", shell_complete=types, help="Only this type; repeatable."),
    click.option("--session", multiple=True, metavar="NAME", help="Only this session; repeatable."),
    click.option("--actor", multiple=True, metavar="NAME", help="Only what this actor said or did; repeatable."),
    click.option("--place", multiple=True, metavar="NAME", help="Only memories of this place; repeatable."),
    click.option("--tier", multiple=True, type=click.Choice(["stm", "im", "ltm"]), help="Only this tier; repeatable."),
    click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE",
                 help="Only with this tag; all of several, any value of one key."),
    click.option(
        "--attr", "attributes", multiple=True, metavar="PATH=VALUE", help="Only with this value in its metadata."
    ),
    click.option("--since", metavar="WHEN", help="Not before: 2026-05-01, '2026-05-01 14:00', 'two weeks ago'."),
    click.option("--until", metavar="WHEN", help="Not after; a bare date includes that day."),
    click.option("--min-step", type=int, metavar="N", help="From this step on."),
    click.option("--max-step", type=int, metavar="N", help="Up to this step."),
    click.option("--min-importance", type=float, metavar="0..1", help="At least this important."),
    click.option("--max-importance", type=float, metavar="0..1", help="At most this important."),
    click.option("--near", metavar="X,Y", help="Positions around this point, with --radius."),
    click.option("--radius", type=float, metavar="R", help="How far from --near."),
)  # fmt: skip


def filter_of(options: dict[str, Any]) -> dict[str, Any]:
    """Build a filter for Brain from the options of `filter_options`; ignore those not given."""
    where = {key: value for key, value in options.items() if value not in (None, ())}
    if "tags" in where:
        tags: dict[str, list[str]] = {}
        for tag in where["tags"]:
            for key, value in pairs("--tag", (tag,)).items():
                tags.setdefault(key, []).append(value)
        where["tags"] = tags
    if "attributes" in where:
        where["attributes"] = values("--attr", where["attributes"])
    if "near" in where:
        where["near"] = point("--near", where["near"])
    return where


def table_options(function: Function) -> Function:
    """Add --csv and --tsv, passed as `delimiter`."""
    for name, sign in (("tsv", "\t"), ("csv", ",")):
        shown = f"Print {name.upper()} with all fields, the names first; tags and metadata are JSON."
        function = click.option(f"--{name}", "delimiter", flag_value=sign, default=None, help=shown)(function)
    return function


def check_one_format(as_json: bool, table: str | None) -> None:
    """Refuse --json together with --csv or --tsv."""
    if as_json and table is not None:
        raise InputError("--json does not go with --csv and --tsv", field="json")


def command_group(function: Callable[[], None]) -> click.Group:
    """Make a group of subcommands that shows its help if it is called without one."""

    @click.pass_context
    def run(context: click.Context) -> None:
        if context.invoked_subcommand is None:
            click.echo(context.get_help())

    run.__doc__ = function.__doc__
    return click.group(function.__name__.rstrip("_"), invoke_without_command=True)(run)


def pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    """Parse `key=value` as texts."""
    result = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise InputError(f"{option} must be KEY=VALUE, got {item!r}", field=option.lstrip("-"))
        if key in result:
            raise InputError(f"{option} {key}=… is given twice", field=option.lstrip("-"))
        result[key] = value
    return result


def values(option: str, given: tuple[str, ...]) -> dict[str, Any]:
    """Parse `key=value` with a JSON value if it is valid JSON: 5 is a number, "5" in quotes and x are texts."""
    return {key: value_of(value) for key, value in pairs(option, given).items()}


def value_of(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return text


def _not_json(name: str) -> Any:
    raise ValueError(name)


def metadata(given: tuple[str, ...]) -> dict[str, Any]:
    """Parse --meta: `key=value` or a JSON object, in any combination."""
    result: dict[str, Any] = {}
    for item in given:
        read = value_of(item) if item.lstrip().startswith("{") else values("--meta", (item,))
        if not isinstance(read, dict):
            raise InputError(f"--meta must be KEY=VALUE or a JSON object, got {item!r}", field="meta")
        if twice := sorted(result.keys() & read.keys()):
            raise InputError(f"--meta {twice[0]}=… is given twice", field="meta")
        result |= read
    return result


def point(option: str, given: str) -> list[float]:
    """Parse `x,y` or `x,y,z`."""
    try:
        return [float(part) for part in given.split(",")]
    except ValueError:
        raise InputError(f"{option} must be X,Y or X,Y,Z, got {given!r}", field=option.lstrip("-")) from None


def text_of(words: tuple[str, ...]) -> str:
    """Join the words of the command line to one text, or read standard input for `-`."""
    if words != ("-",):
        return " ".join(words)
    written = sys.stdin.buffer.read()
    try:
        return written.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InputError(f"standard input must be UTF-8 text; byte {error.start} is not", field="text") from None
