"""`rmem forget`, `restore`, `pin` and `audit`: removing memories, bringing them back, and who did so."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from .. import checks, config
from ..errors import ConfigError, InputError, KeyMissingError, KeyWrongError, NotFoundError
from . import exit_codes
from .cli_context import CliContext, note_foreign, store_file
from .completion_values import ids
from .options import command_options
from .output import moment, one_line
from .progress import progress
from .serve import DATA

if TYPE_CHECKING:
    from ..brain import Brain
    from ..models import Memory
    from ..stores.capabilities import AuditEntry, AuditLog

_PAGE = 1000
_CURVE_DAYS = (0, 1, 3, 7, 14, 30, 60, 90, 180, 365)
_BAR = 40


@click.command()
@click.argument("memory_ids", nargs=-1, metavar="[ID…]", shell_complete=ids)
@click.option("--subject", metavar="NAME", help="All that belongs to this person or agent, or names it.")
@click.option("--faded", is_flag=True, help="What the forgetting curve lets go; needs one of the next three.")
@click.option("--below", type=float, metavar="0..1", help="Retained less than this.")
@click.option("--max-count", type=int, metavar="N", help="More memories than this, the most faded first.")
@click.option("--max-bytes", type=int, metavar="N", help="More bytes than this, the most faded first.")
@click.option("--steps-per-day", type=float, metavar="N", help="Count in steps of agents: so many are a day.")
@click.option("--grace-days", type=float, metavar="DAYS", help="How long `rmem restore` can bring them back; 30.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--plot", is_flag=True, help="Draw the forgetting curve and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask; needed where nobody can be asked.")
@command_options
def forget(
    cli: CliContext,
    memory_ids: tuple[str, ...],
    subject: str | None,
    faded: bool,
    dry_run: bool,
    plot: bool,
    yes: bool,
    **bounds: Any,
) -> None:
    """Remove memories permanently, or prune those that have faded. It shows them and asks first; scripts give --yes.

    How well a memory is retained falls with the time since it was last used: R = exp(-t / S). Its stability S is 7
    days times (1 + 4 × importance) times 1.6 for each doubling of the number of recalls; --plot draws it. Faded
    memories can be restored for a grace period; pinned ones stay.

    \b
    Examples:
      rmem forget swe-01-12-1777632000
      rmem forget --subject "Ann Smith" --dry-run
      rmem forget --faded --below 0.05 --dry-run
      rmem forget --faded --max-count 100000 --grace-days 7 --yes
      rmem forget --plot
    """
    given = {key: value for key, value in bounds.items() if value is not None}
    if sum((bool(memory_ids), subject is not None, faded, plot)) != 1:
        raise InputError("give ids, --subject, --faded or --plot, and only one of them", field="ID")
    if given and not faded:
        raise InputError(f"--{next(iter(given)).replace('_', '-')} goes with --faded", field=next(iter(given)))
    if plot:
        _plot(cli)
    elif memory_ids:
        if dry_run:
            raise InputError("--dry-run goes with --subject and --faded", field="dry-run")
        _forget_ids(cli, list(dict.fromkeys(memory_ids)), yes)
    elif faded:
        _prune(cli, given, dry_run, yes)
    else:
        _forget_subject(cli, str(subject), dry_run, yes)


def _forget_ids(cli: CliContext, wanted: list[str], yes: bool) -> None:
    with cli.brain_or_empty() as brain:
        known = _readable(brain, wanted)
        found = [key for key in wanted if key not in known or known[key] is not None]
        _confirm(brain, found, "Forget", yes)
        gone = [key for key in found if brain.forget(key)]
    _finish(cli, wanted, gone, "forgotten", "Forgot")
    note_foreign(cli, [memory for key in gone if (memory := known.get(key)) is not None], "it comes")


def _readable(brain: Brain, keys: Sequence[str]) -> dict[str, Memory | None]:
    """Return memories by id, without those that are encrypted and cannot be read here; None for a missing one."""
    found = {}
    for key in keys:
        with suppress(KeyMissingError, KeyWrongError):
            found[key] = brain.get(key)
    return found


def _forget_subject(cli: CliContext, subject: str, dry_run: bool, yes: bool) -> None:
    from ..team.subject_removal import forget_subject

    with cli.brain_or_empty() as brain:
        keys = brain.forget(subject=subject, dry_run=True)
        if not dry_run:
            _confirm(brain, keys, "Forget", yes)
        beside = forget_subject(
            subject, dry_run=dry_run
        )  # before the store, so that no spooled event becomes a memory meanwhile
        if not dry_run:
            with progress("Packing anew", stopped="Run it again: it removes what is left.") as bar:
                keys = brain.forget(subject=subject, on_progress=bar)
    _print_chosen(cli, [(key, None) for key in keys], dry_run, **beside._asdict())


def _prune(cli: CliContext, policy: dict[str, Any], dry_run: bool, yes: bool) -> None:
    if not set(policy) & {"below", "max_count", "max_bytes"}:
        raise InputError("--faded needs --below, --max-count or --max-bytes", field="faded")
    with cli.brain_or_empty() as brain:
        chosen = brain.prune(policy, dry_run=True)
        if not dry_run:
            _confirm(brain, [key for key, _ in chosen], "Prune", yes)
            chosen = brain.prune(policy)
    _print_chosen(cli, list(chosen), dry_run)


def _finish(cli: CliContext, wanted: Sequence[str], done: Sequence[str], name: str, verb: str) -> None:
    """Print what was done, and which ids do not exist."""
    missing = [key for key in wanted if key not in done]
    if cli.json:
        cli.document({name: list(done), "missing": missing})
    else:
        for key in done:
            click.echo(f"{verb} {key}" if cli.is_terminal else key)
    for key in missing:
        exit_codes.report_error(NotFoundError(key), cli.json)
    if missing:
        raise click.exceptions.Exit(exit_codes.NOT_FOUND)


def _confirm(brain: Brain, keys: list[str], verb: str, yes: bool) -> None:
    if not keys or yes:
        return
    if not sys.stdin.isatty():
        count = "1 memory" if len(keys) == 1 else f"{len(keys):,} memories"
        raise InputError(f"{verb.lower()} would remove {count} and cannot ask here; add --yes", field="yes")
    known = _readable(brain, keys[:20])
    for key in keys[:20]:
        memory = known.get(key)
        click.echo(f"{key}  {one_line(memory.text)[:100] if memory else '(encrypted)'}", err=True)
    if len(keys) > 20:
        click.echo(f"… and {len(keys) - 20} more", err=True)
    if not click.confirm(f"{verb} it?" if len(keys) == 1 else f"{verb} these {len(keys)}?", err=True):
        raise click.Abort


def _print_chosen(cli: CliContext, chosen: list[tuple[str, float | None]], dry_run: bool, **beside: int) -> None:
    if cli.json:
        documents = [{"id": key} if kept is None else {"id": key, "retention": round(kept, 6)} for key, kept in chosen]
        cli.document({"dry_run": dry_run, "memories": documents, **beside})
        return
    for key, kept in chosen:
        click.echo(key if kept is None else f"{key}\t{kept:.4f}")
    counted = f"{len(chosen)} {'memory' if len(chosen) == 1 else 'memories'}"
    number = ", ".join([counted, *(f"{count} {name}" for name, count in beside.items() if count)])
    cli.note(f"{number} {'would go' if dry_run else 'gone'}")


def _plot(cli: CliContext) -> None:
    from ..tiers.forgetting import ForgettingPolicy

    policy = ForgettingPolicy()
    curves = {
        f"importance {importance}, {recalls} recalls": {
            day: policy.retention(importance, day, recalls) for day in _CURVE_DAYS
        }
        for importance, recalls in ((0.0, 0), (0.5, 0), (1.0, 0), (0.5, 3))
    }
    if cli.json:
        cli.document({"stability": policy.stability, "curves": curves})
        return
    for name, curve in curves.items():
        click.echo(name)
        for day, kept in curve.items():
            click.echo(f"  {day:>4} days  {'█' * round(kept * _BAR):<{_BAR}} {kept:6.1%}")


@click.command()
@click.argument("memory_ids", nargs=-1, metavar="[ID…]")
@command_options
def restore(cli: CliContext, memory_ids: tuple[str, ...]) -> None:
    """Bring pruned memories back while their grace period lasts; without ids, list them.

    \b
    Examples:
      rmem restore
      rmem restore swe-01-12-1777632000
    """
    with cli.brain_or_empty() as brain:
        if not memory_ids:
            aside = brain.store.aside()
            if cli.json:
                cli.document(
                    [
                        {"id": pruned.memory.memory_id, "text": pruned.memory.text, "until": pruned.until}
                        for pruned in aside
                    ]
                )
            elif not aside:
                cli.note("Nothing waits to be restored.")
            for pruned in () if cli.json else aside:
                click.echo(
                    f"{pruned.memory.memory_id}\tuntil {moment(pruned.until)}\t{one_line(pruned.memory.text)[:80]}"
                )
            return
        back = [memory.memory_id for memory in brain.restore(*memory_ids)]
    _finish(cli, memory_ids, back, "restored", "Restored")


@click.command()
@click.argument("memory_id", metavar="ID", shell_complete=ids)
@click.option("--off", is_flag=True, help="Let it fade again.")
@command_options
def pin(cli: CliContext, memory_id: str, off: bool) -> None:
    """Keep a memory from ever being pruned.

    \b
    Examples:
      rmem pin swe-01-12-1777632000
      rmem pin swe-01-12-1777632000 --off
    """
    with cli.brain_or_empty() as brain:
        brain.pin(memory_id, not off)
    cli.answer(
        {"id": memory_id, "pinned": not off},
        f"{'Unpinned' if off else 'Pinned'} {memory_id}" if cli.is_terminal else memory_id,
    )


@click.command()
@click.argument("what", required=False, type=click.Choice(["verify", "export", "accept"]))
@click.option("--memory", metavar="ID", help="Only entries about this memory.")
@click.option("--who", metavar="NAME", help="Only what this person did.")
@click.option("--agent", metavar="NAME", help="Only what was done through this agent.")
@click.option("--action", metavar="NAME", help="Only this: remember, recall, inject, share, forget, login, …")
@click.option("--since", metavar="WHEN", help="Not before: 2026-05-01, 'two weeks ago'.")
@click.option("--limit", "-n", type=int, default=100, show_default=True, help="Entries at most.")
@click.option("--verify", is_flag=True, help="Check that no entry was changed, added or taken away.")
@click.option("--org", metavar="NAME", help="The log of an organisation of a server: members, tokens, workspaces.")
@DATA
@command_options
def audit(
    cli: CliContext,
    org: str | None,
    data: str | None,
    what: str | None,
    memory: str | None,
    who: str | None,
    agent: str | None,
    action: str | None,
    since: str | None,
    limit: int,
    verify: bool,
) -> None:
    """Who did what with which memory, newest first. Every entry is sealed with the one before it.

    It has what the team's agents remember, recall and are shown, and what was shared, forgotten and restored, by whom
    and from where; never what a memory says. `export` prints all entries as JSON lines. `verify` also sees that the end
    was cut off; after you restored a backup, `accept` takes the log as it is for whole, and notes that.

    \b
    Examples:
      rmem audit --agent claude-code --since "two weeks ago"
      rmem audit --memory team-3f2a…
      rmem audit verify
      rmem audit export > audit.jsonl
      rmem audit --org default --data /srv/rmem
    """
    if org is not None:
        cli = CliContext(_log_of(cli, data, org), cli.json)
    elif data is not None:
        raise InputError("--data goes with --org", field="data")
    checks.whole("limit", limit, low=1)
    start = None if since is None else checks.moment("since", since)
    verify = verify or what == "verify"
    with cli.existing_brain() if verify or what == "accept" else cli.brain_or_empty() as brain:
        store = _audit_log(brain, cli)
        if store is not None and what == "accept":
            store.accept_audit(config.user())
            click.echo("The audit log is taken for whole as it is.")
            return
        if store is not None and verify:
            _print_verification(cli, store)
            return
        wanted = {"who": who, "action": action}
        entries = iter(()) if store is None else _entries(store, memory, start)
        found = (
            entry
            for entry in entries
            if all(value in (None, getattr(entry, key)) for key, value in wanted.items())
            and agent in (None, entry.detail.get("agent"))
        )
        if what == "export":
            for entry in found:
                click.echo(json.dumps(entry._asdict(), ensure_ascii=False))
            return
        shown = list(islice(found, limit))
    if cli.json:
        cli.document([entry._asdict() for entry in shown])
        return
    if not shown:
        cli.note("No entries.")
    for entry in shown:
        about = " ".join(f"{key}={value}" for key, value in entry.detail.items() if value is not None)
        click.echo(f"{moment(entry.time)}\t{entry.who}\t{entry.action}\t{entry.memory or '-'}\t{about}")


def _log_of(cli: CliContext, data: str | None, org: str) -> str:
    """Return the address of an organisation's log."""
    from ..server.organization_log import log_address
    from .tenants import control_of, organization_of

    with control_of(cli, data) as (control, settings):
        return log_address(settings, organization_of(control, org).id)


def _print_verification(cli: CliContext, store: AuditLog) -> None:
    from ..doctor import describe_audit

    broken = store.broken_audit()
    cli.answer(
        {"sound": not broken, "broken": broken},
        "The audit log is whole." if not broken else f"The audit log: {describe_audit(store, broken)}",
    )
    if broken:
        raise click.exceptions.Exit(exit_codes.PROBLEMS)


def _entries(store: AuditLog, memory: str | None, since: float | None) -> Iterator[AuditEntry]:
    """Yield all entries, newest first, read page by page."""
    before = None
    while page := store.audit(memory=memory, since=since, limit=_PAGE, before=before):
        yield from page
        before = page[-1].n


def _audit_log(brain: Brain, cli: CliContext) -> AuditLog | None:
    """Return the audit log of a store; None if there is no store yet."""
    from ..stores.capabilities import AuditLog

    if isinstance(brain.store, AuditLog):
        return brain.store
    path = store_file(cli.address)
    if str(cli.address) == ":memory:" or (path is not None and not path.exists()):
        return None
    raise ConfigError(f"{brain.store.kind} keeps no audit log")
