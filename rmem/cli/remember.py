"""`rmem remember` and `update`: write one memory, or change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .. import config
from ..errors import InputError, NotFoundError
from .cli_context import CliContext, memory_document, note_foreign
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
@click.option("--team", is_flag=True, help="A note for all who work in this repository: their agents are told.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="With --team: a file it is about; repeatable.")
@command_options
def remember(cli: CliContext, text: tuple[str, ...], team: bool, files: tuple[str, ...], **options: Any) -> None:
    """Store a memory; `-` reads the text from standard input.

    When the command returns, the memory is on disk and every process finds it. Its id is printed. It stays in this
    store, and coding agents are not told of it, unless you say --team: then it is a note of the repository in whose
    folder you are, of the type codebase, preference, decision, error_fix, task or tool_output, with secrets masked.

    \b
    Examples:
      rmem remember "Fixed the OOM: switched to pyarrow.dataset"
      rmem remember --team --type decision "Deploys run from tags only" --file deploy/release.sh
      rmem remember "Parquet it is, CSV is dropped" --type decision --agent swe-01 --importance 0.9
      rmem remember "Retries need jitter" --tag repo=api --meta ticket=4711 --when yesterday
      git log -1 --format=%B | rmem remember - --type commit --session "$PWD"
    """
    fields = {"text": text_of(text), **_given(options)}
    if files and not team:
        raise InputError("--file needs --team", field="file")
    if team:
        memory = _remember_for_team(cli, fields, files)
    else:
        with cli.brain() as brain:
            memory = brain.remember(**fields)
    if cli.json:
        cli.document(memory_document(memory))
    elif cli.is_terminal:
        click.echo(f"Remembered as {memory.memory_id}{_audience_of(memory) if team else ''}")
    else:
        click.echo(memory.memory_id)
    if not team and cli.is_terminal and _is_in_team_repository():
        cli.note("Agents are not told of it. With --team it is a note for all who work in this repository.")


def _remember_for_team(cli: CliContext, fields: dict[str, Any], files: tuple[str, ...]) -> Memory:
    """Keep a note of the repository of the current folder."""
    from pathlib import Path

    from .. import checks
    from ..brain import Brain
    from ..team.capture import workspace_of
    from ..team.consent import may_capture
    from ..team.identity import author, repository
    from ..team.known_repositories import note_repository
    from ..team.memory import TeamMemory
    from ..team.notes import KINDS, Note

    for name in ("id", "actor", "tags", "place", "position", "step"):
        if name in fields:
            raise InputError(f"--{name.removesuffix('s')} has no meaning with --team", field=name)
    if cli.is_remote:
        raise InputError("--team writes to your own store, which `rmem sync` shares; leave out --store", field="store")
    here = repository(Path.cwd())
    if here is None:
        raise InputError("--team needs a repository, and this folder is in none", field="team")
    if not may_capture(str(here.root)):
        raise InputError("--team: this repository's .rmem.toml says capture = false, or has a mistake", field="team")
    note = Note(
        fields["text"],
        checks.one_of("type", fields.get("type", "codebase"), KINDS),
        author=author(here.root),
        agent=fields.get("agent", "rmem"),
        session=fields.get("session"),
        when=None if "when" not in fields else checks.moment("when", fields["when"]),
        importance=checks.share("importance", fields.get("importance", 0.7)),
        files=[str(Path.cwd() / name) for name in files],
        details=fields.get("metadata", {}),
    ).at(here)
    with Brain(cli.address, privacy="default") as brain:
        team = TeamMemory(brain, author=note.author, origin="rmem", workspace=workspace_of(str(here.root)))
        memory = team.remember(note)
    note_repository(here.id)
    return memory


def _audience_of(memory: Memory) -> str:
    """Say who is told of a note, and when."""
    from ..team.login import login

    whose = memory.contents["repository"]
    way = "`rmem sync` sends it now" if login() is not None else "`rmem login` shares it by a server"
    return f", for all who work in {whose}; {way}"


def _is_in_team_repository() -> bool:
    from pathlib import Path

    from ..team.identity import root_of

    return (config.home() / "team").is_dir() and root_of(Path.cwd()) is not None


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

    from ..privacy.choice import policy_of
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
            brain.privacy = brain.privacy or policy_of("default")  # the team gets it
            memory = TeamMemory(brain, author=author(Path.cwd())).reword(memory_id, fields.pop("text"))
        if fields or untag:
            if "tags" not in clear and (untag or "tags" in fields):
                memory = _retag(brain, memory_id, fields, untag)
            else:
                memory = brain.update(memory_id, **fields)
            if not cli.is_remote:
                brain.store.record(config.user(), "change", [memory_id], origin="rmem", fields=sorted(fields))
    cli.answer(memory_document(memory), f"Updated {memory.memory_id}" if cli.is_terminal else memory.memory_id)
    if text is not None:
        note_foreign(cli, [memory], "the old words come")


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
