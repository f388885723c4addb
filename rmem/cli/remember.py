"""`rmem remember` and `update`: write one memory, or change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .. import config
from ..errors import InputError, NotFoundError
from .cli_context import CliContext, memory_document
from .completion_values import agents, ids, types
from .options import Function, command_options, metadata, pairs, point, text_of

if TYPE_CHECKING:
    from ..brain import Brain
    from ..models import Memory


def _fields(function: Function) -> Function:
    """Add the options that remember and update share."""
    for option in reversed(_FIELDS):
        function = option(function)
    return function


_FIELDS: tuple[Callable[[Function], Function], ...] = (
    click.option(
        "--type", metavar="NAME", shell_complete=types, help="What kind of memory: error_fix, decision, note …"
    ),
    click.option("--session", metavar="NAME", help="The session it belongs to."),
    click.option("--actor", metavar="NAME", help="Who said or did it."),
    click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A tag; repeatable."),
    click.option("--importance", type=float, metavar="0..1", help="How much it matters; a new memory has 0.5."),
    click.option("--when", metavar="WHEN", help="When it happened: 2026-05-01, '2026-05-01 14:00', 'yesterday'."),
    click.option("--meta", multiple=True, metavar="KEY=VALUE|JSON", help="Your own data; repeatable."),
    click.option("--step", type=int, metavar="N", help="The agent's step; a new memory has the next one."),
    click.option("--place", metavar="NAME", help="Where, by name."),
    click.option("--position", metavar="X,Y", help="Where, as two or three numbers."),
)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Convert the given options to arguments of Brain."""
    fields = {key: value for key, value in options.items() if value not in (None, ())}
    if "tags" in fields:
        fields["tags"] = pairs("--tag", fields["tags"])
    if "meta" in fields:
        fields["metadata"] = metadata(fields.pop("meta"))
    if "position" in fields:
        fields["position"] = point("--position", fields["position"])
    return fields


@click.command()
@click.argument("text", nargs=-1, required=True, metavar="TEXT|-")
@click.option("--agent", metavar="NAME", shell_complete=agents, help="Whose memory it is; “default” if not given.")
@_fields
@click.option("--id", metavar="ID", help="Its id; a memory with the same id is replaced.")
@command_options
def remember(cli: CliContext, text: tuple[str, ...], **options: Any) -> None:
    """Store a memory; `-` reads the text from standard input.

    When the command returns, the memory is on disk and every process finds it. Its id is printed.

    \b
    Examples:
      rmem remember "Fixed the OOM: switched to pyarrow.dataset"
      rmem remember "Parquet it is, CSV is dropped" --type decision --agent swe-01 --importance 0.9
      rmem remember "Retries need jitter" --tag repo=api --meta ticket=4711 --when yesterday
      git log -1 --format=%B | rmem remember - --type commit --session "$PWD"
    """
    fields = {"text": text_of(text), **_given(options)}
    with cli.brain() as brain:
        memory = brain.remember(**fields)
    if cli.json:
        cli.document(memory_document(memory))
    elif cli.is_terminal:
        click.echo(f"Remembered as {memory.memory_id}")
    else:
        click.echo(memory.memory_id)


_CLEARABLE = ("session", "actor", "tags", "place", "position", "metadata")


@click.command()
@click.argument("memory_id", metavar="ID", shell_complete=ids)
@click.option("--text", metavar="TEXT|-", help="The new text; `-` reads standard input.")
@_fields
@click.option("--tier", type=click.Choice(["stm", "im", "ltm"]), help="The tier it is kept in.")
@click.option("--untag", multiple=True, metavar="KEY", help="Remove this tag; repeatable.")
@click.option("--clear", multiple=True, type=click.Choice(_CLEARABLE), help="Empty this field; repeatable.")
@command_options
def update(
    cli: CliContext, memory_id: str, text: str | None, untag: tuple[str, ...], clear: tuple[str, ...], **options: Any
) -> None:
    """Change fields of a memory; the others stay as they are.

    --tag adds a tag, or changes the one of that name; --meta replaces all metadata. A new text is embedded and indexed
    again. Of a memory of the team the new text reaches the others; other fields stay here.

    \b
    Examples:
      rmem update swe-01-12-1777632000 --importance 1
      rmem update swe-01-12-1777632000 --text "Fixed the OOM: batch size 10,000" --type error_fix
      rmem update swe-01-12-1777632000 --tag repo=api --untag draft
      rmem update swe-01-12-1777632000 --clear session --clear tags
    """
    from pathlib import Path

    from ..team.identity import author
    from ..team.memory import TeamMemory
    from ..team.notes import ID

    fields = _given(options)
    if text is not None:
        fields["text"] = text_of((text,))
    for name in clear:
        if name in fields:
            raise InputError(f"{name} cannot be both set and cleared", field=name)
        fields[name] = {} if name in ("tags", "metadata") else None
    if untag and "tags" in clear:
        raise InputError("--untag has nothing to do beside --clear tags", field="untag")
    if not fields and not untag:
        raise InputError("nothing to change; name at least one field, such as --importance", field="changes")
    with cli.brain_or_empty() as brain:
        if not cli.is_remote and memory_id.startswith(ID) and "text" in fields and brain.get(memory_id) is not None:
            memory = TeamMemory(brain, author=author(Path.cwd())).reword(memory_id, fields.pop("text"))
        if fields or untag:
            if "tags" not in clear and (untag or "tags" in fields):
                memory = _retag(brain, memory_id, fields, untag)
            else:
                memory = brain.update(memory_id, **fields)
            if not cli.is_remote:
                brain.store.record(config.user(), "change", [memory_id], origin="rmem", fields=sorted(fields))
    if cli.json:
        cli.document(memory_document(memory))
    else:
        click.echo(f"Updated {memory.memory_id}" if cli.is_terminal else memory.memory_id)


class _TagsChanged(Exception):
    pass


def _retag(brain: Brain, memory_id: str, fields: dict[str, Any], untag: tuple[str, ...]) -> Memory:
    """Update a memory and add and remove tags; repeat if others change the tags meanwhile."""
    added = fields.get("tags", {})
    if both := sorted(set(added) & set(untag)):
        raise InputError(f"the tag {both[0]!r} cannot be both set and removed", field="untag")
    while True:
        known = brain.get(memory_id)
        if known is None:
            raise NotFoundError(memory_id)
        before = dict(known.tags)

        def unchanged(memory: Memory, before: dict[str, str] = before) -> None:
            if memory.tags != before:
                raise _TagsChanged

        tags = {key: value for key, value in {**before, **added}.items() if key not in untag}
        try:
            return brain.update(memory_id, only_if=unchanged, **{**fields, "tags": tags})
        except _TagsChanged:
            continue
