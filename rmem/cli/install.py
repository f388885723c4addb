"""`rmem install`, `rmem uninstall` and `rmem status`: connect coding agents to the team memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import ConfigError
from ..team.events import AGENTS
from . import exit_codes
from .face import Face
from .options import answering
from .output import moment, size, visible

if TYPE_CHECKING:
    from ..team.install.files import Ledger
    from ..team.install.plan import Plan

_ALL = "all"
_MOST_LINES = 20  # of a file that is new, to be shown
_MOST_ERRORS = 3  # of the log
_NAMES = click.Choice([*AGENTS, _ALL])


@click.command("install")
@click.argument("agents", nargs=-1, type=_NAMES, metavar="[AGENT…|all]")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@answering
def install(face: Face, agents: tuple[str, ...], dry_run: bool, yes: bool) -> None:
    """Wire coding agents to the team memory: hooks, the MCP server and a skill. Without AGENT nothing is changed.

    AGENT is claude-code, codex, cursor, gemini, opencode or copilot; `all` means those found on this machine. You see
    what will change and are asked before it happens. Your own entries, comments and formatting stay, what was there is
    kept as a copy, and a second run changes nothing. A file that is broken or cannot be written stops its agent, and
    no other.

    \b
    Examples:
      rmem install
      rmem install claude-code
      rmem install all --dry-run
      rmem install codex cursor --yes
    """
    from ..team.daemon_client import check_system
    from ..team.install.files import Ledger
    from ..team.install.plan import install, planned_install

    check_system()
    _tell_missing(face)
    ledger = Ledger()
    if not agents:
        _overview(face, [planned_install(one) for one in _tools(AGENTS)])
        return
    plans = [planned_install(one) for one in _tools(_chosen(face, agents))]
    _carry_out(face, plans, ledger, install, "Install", dry_run, yes)


@click.command("uninstall")
@click.argument("agents", nargs=-1, type=_NAMES, metavar="AGENT…|all")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@answering
def uninstall(face: Face, agents: tuple[str, ...], dry_run: bool, yes: bool) -> None:
    """Take out what `rmem install` put in, and nothing else. Memories stay.

    A file that nobody changed since becomes what it was, byte for byte; in others only our entries go. Files and
    folders that were made for them go too, if nothing else is in them.

    \b
    Examples:
      rmem uninstall claude-code
      rmem uninstall all --dry-run
    """
    from ..team.install.files import Ledger
    from ..team.install.plan import planned_uninstall, uninstall

    if not agents:
        raise click.UsageError(f"Name an agent ({', '.join(AGENTS)}) or all.", click.get_current_context())
    ledger = Ledger()
    names = AGENTS if _ALL in agents else tuple(dict.fromkeys(agents))
    staying = _tools([name for name in AGENTS if name not in names])
    plans = [planned_uninstall(one, ledger, staying) for one in _tools(names)]
    _carry_out(face, plans, ledger, uninstall, "Uninstall", dry_run, yes)


@click.command("status")
@click.option("--retry", is_flag=True, help="Put events that were set aside back first, and take in all that wait now.")
@answering
def status(face: Face, retry: bool) -> None:
    """Show which coding agents are wired and try their hooks, where memory goes, what waits, and what went wrong.

    The hook of each installed agent is run as the agent would, with an event that leaves nothing behind. Shown are also
    the wishes of this repository, the last capture, the last meeting with the server and whether it takes the token,
    the space on the disk, and what hooks and the daemon complained of.

    Events of hooks wait while the store fails, and are tried again with longer and longer pauses. What can never be
    taken in is set aside, with its reason. --retry puts that back and starts a new process that takes in all events,
    with this version of rmem and the environment of this shell.

    \b
    Examples:
      rmem status
      rmem status --json
      rmem status --retry
    """
    from ..team.install.status import report

    if retry:
        _retry(face)
    told = report(Path.cwd(), face.address)
    if face.json:
        face.document(told)
        return
    for agent in told["agents"]:
        _tell_agent(agent)
    _tell_memory(told)


def _retry(face: Face) -> None:
    from ..team import daemon_client, spool

    count = spool.put_back()
    outcome = (
        "all that wait are being tried now" if daemon_client.restart() else "the process that takes them in is busy"
    )
    face.note(f"put back of what was set aside: {count:,}; {outcome}")


def _tell_missing(face: Face) -> None:
    """What is captured is masked first, so without the libraries for that nothing is."""
    from .. import extras
    from ..errors import ConfigError
    from ..privacy.findings import KINDS
    from ..privacy.libraries import require

    try:
        require(KINDS)
    except ConfigError as error:
        face.note(f"nothing is captured yet: {error}")
    try:
        extras.require("team", "the MCP server", "mcp")
    except ConfigError as error:
        face.note(f"agents cannot search yet: {error}")


def _tools(names: Sequence[str]) -> list[Any]:
    from ..team.install import Command, tool

    command = Command.here()
    return [tool(name, command) for name in names]


def _chosen(face: Face, agents: Sequence[str]) -> list[str]:
    """The agents that were named; for `all` those that are there."""
    if _ALL not in agents:
        return list(dict.fromkeys(agents))
    found = [one.name for one in _tools(AGENTS) if one.found]
    if not found:
        face.note("no coding agent was found on this machine; name one to install it nevertheless")
    return found


def _overview(face: Face, plans: list[Plan]) -> None:
    if face.json:
        face.document({"changed": False, "agents": [_document(plan, "planned") for plan in plans]})
        return
    for plan in plans:
        found = f"found in {plan.tool.home}" if plan.tool.home.is_dir() else "found" if plan.tool.found else "not found"
        _tell_title(plan.tool.title, plan.tool.name, found)
        if plan.refused:
            click.echo(f"  cannot be installed: {visible(plan.refused)}")
        elif not plan.changes:
            click.echo("  already installed")
        for change in plan.changes:
            click.echo(f"  would {change.kind} {change.path}: {_counted(change.told)}")
    face.note("Nothing was changed. `rmem install AGENT` installs one, `rmem install all` all that were found.")


def _carry_out(
    face: Face, plans: list[Plan], ledger: Ledger, do: Callable[..., None], verb: str, dry_run: bool, yes: bool
) -> None:
    """Show the plans, ask, do them, and sum up. What is refused does not keep others from being done."""
    from ..team.install.plan import distinct

    distinct(plans)
    nothing = "already installed" if verb == "Install" else "nothing of ours is there"
    if not face.json:
        for plan in plans:
            _show(plan)
    changing = [plan for plan in plans if plan.changes]
    outcomes = {plan.tool.name: "refused" if plan.refused else nothing for plan in plans}
    if changing and not dry_run and not face.json and not yes and sys.stdin.isatty():
        names = ", ".join(plan.tool.title for plan in changing)
        if not click.confirm(f"{verb} for {names}?", err=True):
            raise click.Abort
    for plan in changing:
        outcomes[plan.tool.name] = "planned" if dry_run else f"{verb.lower()}ed"
        if dry_run:
            continue
        try:
            do(plan, ledger)
        except ConfigError as error:
            plan.refused = str(error)
            outcomes[plan.tool.name] = "refused"
    _sum_up(face, plans, outcomes, ledger, verb)


def _show(plan: Plan) -> None:
    if plan.changes:
        _tell_title(plan.tool.title, plan.tool.name, "")
    for change in plan.changes:
        lines = change.diff()
        whole = change.kind != "change" and len(lines) > _MOST_LINES
        click.echo(f"  {change.kind} {change.path}: {_counted(change.told)}{f' ({len(lines)} lines)' * whole}")
        for line in () if whole else lines:
            coloured = click.style(visible(line), fg="green" if line.startswith("+") else "red")
            click.echo(f"    {coloured}")


def _sum_up(face: Face, plans: list[Plan], outcomes: dict[str, str], ledger: Ledger, verb: str) -> None:
    refused = [plan for plan in plans if plan.refused]
    if face.json:
        changed = any(outcome == f"{verb.lower()}ed" for outcome in outcomes.values())
        told = [_document(plan, outcomes[plan.tool.name]) for plan in plans]
        face.document({"changed": changed, "agents": told, "backups": str(ledger.folder / "backups")})
    else:
        for plan in plans:
            click.echo(f"{plan.tool.title}: {outcomes[plan.tool.name]}")
        if any(change.seen.data is not None for plan in plans for change in plan.changes):
            face.note(f"Copies of what was changed are in {ledger.folder / 'backups'}.")
        for plan in plans:
            if outcomes[plan.tool.name] == "installed":
                face.note(plan.tool.note or f"New sessions of {plan.tool.title} use it.")
    for plan in refused:
        exit_codes.tell(ConfigError(f"{plan.tool.title}: {plan.refused}; nothing was changed for it"), face.json)
    if refused:
        raise click.exceptions.Exit(exit_codes.USAGE)


def _document(plan: Plan, outcome: str) -> dict[str, Any]:
    return {
        "agent": plan.tool.name,
        "found": plan.tool.found,
        "outcome": "refused" if plan.refused else outcome if plan.changes or outcome != "planned" else "installed",
        "refused": plan.refused or None,
        "files": [
            {"path": str(change.path), "action": change.kind, "changes": change.told, "diff": change.diff()}
            for change in plan.changes
        ],
    }


def _counted(told: Sequence[str]) -> str:
    """What a change does, in few words: "add 7 hooks, add MCP server remanence"."""
    hooks: dict[str, int] = {}
    rest = []
    for one in told:
        verb, _, what = one.partition(" ")
        if what.startswith("hook "):
            hooks[verb] = hooks.get(verb, 0) + 1
        else:
            rest.append(one)
    return ", ".join([*(f"{verb} {count} hook{'s' * (count > 1)}" for verb, count in hooks.items()), *rest])


def _tell_title(title: str, name: str, told: str) -> None:
    click.echo(f"{click.style(title, bold=True)} ({name}){': ' if told else ''}{told}")


def _tell_agent(agent: dict[str, Any]) -> None:
    from ..team import health

    found = agent["state"] if agent["found"] or agent["state"] != "not installed" else "not found"
    _tell_title(agent["title"], agent["agent"], found)
    if agent["state"] == "not installed":
        return
    for role, label in (("hooks", "hooks"), ("mcp", "MCP"), ("skill", "skill")):
        part = agent[role]
        told = [
            f"{word} {', '.join(part[word])}" if role == "hooks" or word != "wired" else "wired"
            for word in ("wired", "outdated", "missing")
            if part[word]
        ]
        if told:
            note = f" ({part['note']})" if part.get("note") else ""
            click.echo(f"  {label:<6} {'; '.join(told)}{note}")
    tried = agent["self_test"]
    if tried is not None and tried["ok"]:
        click.echo(f"  tried  its hook answered in {tried['ms']} ms")
    failed = [health.hook_problem(agent)] if tried is not None and not tried["ok"] else []
    _tell_problems([*agent["problems"], *([agent["off"]] if agent["off"] else []), *failed])


def _tell_problems(problems: Sequence[str]) -> None:
    for problem in problems:
        click.echo(f"  {click.style('!', fg='red')} {visible(problem)}")


def _tell_memory(told: dict[str, Any]) -> None:
    from ..team import health
    from ..team.backlog import problems, summary

    memory, where, last = told["memory"], told["repository"], told["last_capture"] or {}
    click.echo(f"store         {memory['store']}")
    if memory["server"]:
        workspace = "/".join(part for part in (memory["organisation"], memory["workspace"]) if part)
        click.echo(
            f"server        {visible(str(memory['server']))}{f', workspace {visible(workspace)}' * bool(workspace)}"
        )
    else:
        click.echo("server        none; memories stay on this machine (`rmem login URL`)")
    if where is not None:
        click.echo(f"repository    {visible(where['id'])}{_wishes(where)}")
    click.echo(f"waiting       {summary(told)}")
    _tell_problems(problems(told))
    if memory["server"]:
        _tell_sync(told["last_sync"] or {})
    time = last.get("time")
    who = f" ({visible(str(last['agent']))})" if last.get("agent") else ""
    click.echo(f"last capture  {moment(time) + who if isinstance(time, int | float) else 'never'}")
    click.echo(f"daemon        {'runs' if told['daemon_runs'] else 'does not run; the next hook starts it'}")
    disk = told["disk"]
    held = f"; the store has {size(disk['store'])}" if disk["store"] is not None else ""
    click.echo(f"disk          {size(disk['free'])} free{held}; the spool has {size(disk['spool'])}")
    _tell_problems(health.problems(told))
    errors = told["errors"]
    click.echo(f"log           {told['log']}{f', {len(errors):,} complaints since yesterday' * bool(errors)}")
    for one in errors[-_MOST_ERRORS:]:
        click.echo(f"  {moment(one['time'])}  {visible(one['error'])}")


def _tell_sync(last: dict[str, Any]) -> None:
    """When this memory and the team's met last, what went wrong, and which repositories are shared."""
    succeeded = last.get("succeeded")
    click.echo(f"last sync     {moment(succeeded) if isinstance(succeeded, int | float) else 'never'}")
    problems = []
    if last.get("error"):
        problems.append(f"not shared at {moment(last['time'])}: {last['error']}")
    refused = last.get("refused") or []
    if refused:
        first = refused[0]
        problems.append(f"{len(refused):,} memories were refused; {first.get('id')}: {first.get('error')}")
    _tell_problems(problems)
    for workspace, one in (last.get("workspaces") or {}).items():
        shared = "all repositories" if one["shared"] is None else ", ".join(one["shared"]) or "no repository"
        here = ", ".join(one["received"]) or "none"
        click.echo(f"shared        {visible(workspace)} shares {visible(shared)}; received here: {visible(here)}")


def _wishes(where: dict[str, Any]) -> str:
    if where["file"] is None:
        return ""
    if "problem" in where:
        return f"; refused: {visible(where['problem'])}"
    said = [f"{key} {where[key]}" for key in ("workspace", "scope") if where[key]]
    said += [f"no {key}" for key in ("capture", "recall") if not where[key]]
    said += [f"ignored: {', '.join(visible(key) for key in where['ignored'])}"] if where["ignored"] else []
    return f"; {where['file']}: {', '.join(said) or 'no wishes'}"
