"""`rmem install`, `rmem uninstall` and `rmem status`: connect coding agents to the team memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import ConfigError
from ..team.install import AGENTS
from . import exit_codes
from .cli_context import CliContext
from .options import command_options
from .output import moment, size, visible

if TYPE_CHECKING:
    from ..team.install.files import Ledger
    from ..team.install.plan import InstallPlan

_ALL = "all"
_MAX_LINES = 20  # shown of a new file
_MAX_ERRORS = 3  # shown of the log
_NAMES = click.Choice([*AGENTS, _ALL])


@click.command("install")
@click.argument("agents", nargs=-1, type=_NAMES, metavar="[AGENT…|all]")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@command_options
def install(cli: CliContext, agents: tuple[str, ...], dry_run: bool, yes: bool) -> None:
    """Connect coding agents to the team memory: hooks, the MCP server and a skill. Without AGENT nothing is changed.

    AGENT is claude-code, codex, cursor, gemini, opencode or copilot; or, by the MCP server and a skill without hooks,
    so that nothing is captured by itself: amp, cline, kilo, kiro, qwen, windsurf or zed. `all` means those found on
    this machine. You see what will change and are asked before it happens. Your own entries, comments and formatting
    stay, what was there is kept as a copy, and a second run changes nothing. A file that is broken or cannot be
    written stops its agent, and no other.

    \b
    Examples:
      rmem install
      rmem install claude-code
      rmem install all --dry-run
      rmem install codex cursor --yes
    """
    from ..team.daemon_client import check_system
    from ..team.install.files import Ledger
    from ..team.install.plan import install, plan_install

    check_system()
    _warn_missing(cli)
    ledger = Ledger()
    if not agents:
        _overview(cli, [plan_install(tool) for tool in _tools(AGENTS)])
        return
    plans = [plan_install(tool) for tool in _tools(_chosen(cli, agents))]
    _carry_out(cli, plans, ledger, install, "Install", dry_run, yes)


@click.command("uninstall")
@click.argument("agents", nargs=-1, type=_NAMES, metavar="AGENT…|all")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@command_options
def uninstall(cli: CliContext, agents: tuple[str, ...], dry_run: bool, yes: bool) -> None:
    """Remove what `rmem install` added, and nothing else. Memories stay.

    A file that nobody changed since becomes what it was, byte for byte; in others only our entries go. Files and
    folders that were made for them go too, if nothing else is in them.

    \b
    Examples:
      rmem uninstall claude-code
      rmem uninstall all --dry-run
    """
    from ..team.install.files import Ledger
    from ..team.install.plan import plan_uninstall, uninstall

    if not agents:
        raise click.UsageError(f"Name an agent ({', '.join(AGENTS)}) or all.", click.get_current_context())
    ledger = Ledger()
    names = AGENTS if _ALL in agents else tuple(dict.fromkeys(agents))
    staying = _tools([name for name in AGENTS if name not in names])
    plans = [plan_uninstall(tool, ledger, staying) for tool in _tools(names)]
    _carry_out(cli, plans, ledger, uninstall, "Uninstall", dry_run, yes)


@click.command("status")
@click.option("--retry", is_flag=True, help="Put events that were set aside back first, and take in all that wait now.")
@command_options
def status(cli: CliContext, retry: bool) -> None:
    """Show which coding agents are wired and try their hooks, where memory goes, what waits, and what went wrong.

    The hook of each installed agent is run as the agent would, with an event that leaves nothing behind. Shown are also
    the settings of this repository, the last capture, the last sync with the server and whether it takes the token,
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
        _retry(cli)
    state = report(Path.cwd(), cli.address)
    if cli.json:
        cli.document(state)
        return
    for agent in state["agents"]:
        _print_agent(agent)
    _print_memory(state)


def _retry(cli: CliContext) -> None:
    from ..team import daemon_client, spool

    count = spool.put_back()
    outcome = (
        "all that wait are being tried now" if daemon_client.restart() else "the process that takes them in is busy"
    )
    cli.note(f"put back of what was set aside: {count:,}; {outcome}")


def _warn_missing(cli: CliContext) -> None:
    """Warn if libraries are missing without which nothing is captured or agents cannot search; `team` has them all."""
    from .. import extras
    from ..errors import ConfigError

    for effect, needed_by, modules in (
        ("nothing is captured yet", "the privacy policy", extras.MODULES["privacy"]),
        ("agents cannot search yet", "the MCP server", ("mcp",)),
    ):
        try:
            extras.require("team", needed_by, *modules)
        except ConfigError as error:
            cli.note(f"{effect}: {error}")


def _tools(names: Sequence[str]) -> list[Any]:
    from ..team.install import Command, tool

    command = Command.here()
    return [tool(name, command) for name in names]


def _chosen(cli: CliContext, agents: Sequence[str]) -> list[str]:
    """Return the named agents; for `all` those that are installed."""
    if _ALL not in agents:
        return list(dict.fromkeys(agents))
    found = [tool.name for tool in _tools(AGENTS) if tool.found]
    if not found:
        cli.note("no coding agent was found on this machine; name one to install it nevertheless")
    return found


def _overview(cli: CliContext, plans: list[InstallPlan]) -> None:
    if cli.json:
        cli.document({"changed": False, "agents": [_document(plan, "planned") for plan in plans]})
        return
    for plan in plans:
        found = f"found in {plan.tool.home}" if plan.tool.home.is_dir() else "found" if plan.tool.found else "not found"
        _print_title(plan.tool.title, plan.tool.name, found)
        if plan.refused:
            click.echo(f"  cannot be installed: {visible(plan.refused)}")
        elif not plan.changes:
            click.echo("  already installed")
        for change in plan.changes:
            click.echo(f"  would {change.kind} {change.path}: {_summarise_changes(change.summary)}")
    cli.note("Nothing was changed. `rmem install AGENT` installs one, `rmem install all` all that were found.")


def _carry_out(
    cli: CliContext,
    plans: list[InstallPlan],
    ledger: Ledger,
    do: Callable[..., None],
    verb: str,
    dry_run: bool,
    yes: bool,
) -> None:
    """Show the plans, ask, carry them out, and sum up. One that fails does not stop the others."""
    from ..team.install.plan import distinct

    distinct(plans)
    nothing = "already installed" if verb == "Install" else "nothing of ours is there"
    if not cli.json:
        for plan in plans:
            _show(plan)
    changing = [plan for plan in plans if plan.changes]
    outcomes = {plan.tool.name: "refused" if plan.refused else nothing for plan in plans}
    if changing and not dry_run and not cli.json and not yes and sys.stdin.isatty():
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
    _sum_up(cli, plans, outcomes, ledger, verb)


def _show(plan: InstallPlan) -> None:
    if plan.changes:
        _print_title(plan.tool.title, plan.tool.name, "")
    for change in plan.changes:
        lines = change.diff()
        whole = change.kind != "change" and len(lines) > _MAX_LINES
        click.echo(
            f"  {change.kind} {change.path}: {_summarise_changes(change.summary)}{f' ({len(lines)} lines)' * whole}"
        )
        for line in () if whole else lines:
            coloured = click.style(visible(line), fg="green" if line.startswith("+") else "red")
            click.echo(f"    {coloured}")


def _sum_up(cli: CliContext, plans: list[InstallPlan], outcomes: dict[str, str], ledger: Ledger, verb: str) -> None:
    refused = [plan for plan in plans if plan.refused]
    if cli.json:
        changed = any(outcome == f"{verb.lower()}ed" for outcome in outcomes.values())
        documents = [_document(plan, outcomes[plan.tool.name]) for plan in plans]
        cli.document({"changed": changed, "agents": documents, "backups": str(ledger.folder / "backups")})
    else:
        for plan in plans:
            click.echo(f"{plan.tool.title}: {outcomes[plan.tool.name]}")
        if any(change.seen.data is not None for plan in plans for change in plan.changes):
            cli.note(f"Copies of what was changed are in {ledger.folder / 'backups'}.")
        for plan in plans:
            if outcomes[plan.tool.name] == "installed":
                cli.note(plan.tool.note or f"New sessions of {plan.tool.title} use it.")
    for plan in refused:
        exit_codes.report_error(ConfigError(f"{plan.tool.title}: {plan.refused}; nothing was changed for it"), cli.json)
    if refused:
        raise click.exceptions.Exit(exit_codes.USAGE)


def _document(plan: InstallPlan, outcome: str) -> dict[str, Any]:
    return {
        "agent": plan.tool.name,
        "found": plan.tool.found,
        "outcome": "refused" if plan.refused else outcome if plan.changes or outcome != "planned" else "installed",
        "refused": plan.refused or None,
        "files": [
            {"path": str(change.path), "action": change.kind, "changes": change.summary, "diff": change.diff()}
            for change in plan.changes
        ],
    }


def _summarise_changes(changes: Sequence[str]) -> str:
    """Summarise a change: "add 7 hooks, add MCP server remanence"."""
    hooks: dict[str, int] = {}
    rest = []
    for change in changes:
        verb, _, what = change.partition(" ")
        if what.startswith("hook "):
            hooks[verb] = hooks.get(verb, 0) + 1
        else:
            rest.append(change)
    return ", ".join([*(f"{verb} {count} hook{'s' * (count > 1)}" for verb, count in hooks.items()), *rest])


def _print_title(title: str, name: str, details: str) -> None:
    click.echo(f"{click.style(title, bold=True)} ({name}){': ' if details else ''}{details}")


def _print_agent(agent: dict[str, Any]) -> None:
    from ..team import health

    found = agent["state"] if agent["found"] or agent["state"] != "not installed" else "not found"
    _print_title(agent["title"], agent["agent"], found)
    if agent["state"] == "not installed":
        return
    for role, label in (("hooks", "hooks"), ("mcp", "MCP"), ("skill", "skill")):
        part = agent[role]
        if part is None:
            click.echo(f"  {label:<6} {health.NO_HOOKS}")
            continue
        states = [
            f"{word} {', '.join(part[word])}" if role == "hooks" or word != "wired" else "wired"
            for word in ("wired", "outdated", "missing")
            if part[word]
        ]
        if states:
            note = f" ({part['note']})" if part.get("note") else ""
            click.echo(f"  {label:<6} {'; '.join(states)}{note}")
    tried = agent["self_test"]
    if tried is not None and tried["ok"]:
        click.echo(f"  tried  its hook answered in {tried['ms']} ms")
    failed = [health.hook_problem(agent)] if tried is not None and not tried["ok"] else []
    _print_problems([*agent["problems"], *([agent["off"]] if agent["off"] else []), *failed])


def _print_problems(problems: Sequence[str]) -> None:
    for problem in problems:
        click.echo(f"  {click.style('!', fg='red')} {visible(problem)}")


def _print_memory(state: dict[str, Any]) -> None:
    from ..team import health
    from ..team.backlog import problems, summary

    memory, where, last = state["memory"], state["repository"], state["last_capture"] or {}
    click.echo(f"store         {memory['store']}")
    if memory["server"]:
        workspace = "/".join(part for part in (memory["organisation"], memory["workspace"]) if part)
        click.echo(
            f"server        {visible(str(memory['server']))}{f', workspace {visible(workspace)}' * bool(workspace)}"
        )
    else:
        click.echo("server        none; memories stay on this machine (`rmem login URL`)")
    if where is not None:
        click.echo(f"repository    {visible(where['id'])}{_print_settings(where)}")
    click.echo(f"waiting       {summary(state)}")
    _print_problems(problems(state))
    if memory["server"]:
        _print_sync(state["last_sync"] or {})
    time = last.get("time")
    who = f" ({visible(str(last['agent']))})" if last.get("agent") else ""
    click.echo(f"last capture  {moment(time) + who if isinstance(time, int | float) else 'never'}")
    click.echo(f"daemon        {'runs' if state['daemon_runs'] else 'does not run; the next hook starts it'}")
    disk = state["disk"]
    held = f"; the store has {size(disk['store'])}" if disk["store"] is not None else ""
    click.echo(f"disk          {size(disk['free'])} free{held}; the spool has {size(disk['spool'])}")
    _print_problems(health.problems(state))
    errors = state["errors"]
    click.echo(f"log           {state['log']}{f', {len(errors):,} complaints since yesterday' * bool(errors)}")
    for error in errors[-_MAX_ERRORS:]:
        click.echo(f"  {moment(error['time'])}  {visible(error['error'])}")


def _print_sync(last: dict[str, Any]) -> None:
    """Print the time of the last sync, its problems, and which repositories are shared."""
    from ..team import health

    succeeded = last.get("succeeded")
    click.echo(f"last sync     {moment(succeeded) if isinstance(succeeded, int | float) else 'never'}")
    problems = []
    if last.get("error"):
        problems.append(f"not shared at {moment(last['time'])}: {last['error']}")
    refused = last.get("refused") or []
    if refused:
        problems.append(health.refusal_text(refused))
    _print_problems(problems)
    for workspace, result in (last.get("workspaces") or {}).items():
        shared = "all repositories" if result["shared"] is None else ", ".join(result["shared"]) or "no repository"
        here = ", ".join(result["received"]) or "none"
        click.echo(f"shared        {visible(workspace)} shares {visible(shared)}; received here: {visible(here)}")


def _print_settings(where: dict[str, Any]) -> str:
    if where["file"] is None:
        return ""
    if "problem" in where:
        return f"; refused: {visible(where['problem'])}"
    shown = [f"{key} {where[key]}" for key in ("workspace", "scope") if where[key]]
    shown += [f"no {key}" for key in ("capture", "recall") if not where[key]]
    shown += [f"ignored: {', '.join(visible(key) for key in where['ignored'])}"] if where["ignored"] else []
    return f"; {where['file']}: {', '.join(shown) or 'no wishes'}"
