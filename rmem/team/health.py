"""Report whether the team memory works on this machine: the daemon and its log, the server and its token, the disk. For
`rmem status` and `rmem doctor`. Read only."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import config
from ..doctor import CheckResult
from ..errors import RemanenceError
from . import backlog, daemon_client, paths, spool

_DAY = 86_400.0
_SHOWN = 3  # lines of the log
_TAIL = 64 << 10  # bytes of the log that are read
_LONGEST = 300  # characters of a line
_TIMEOUT = 3.0  # seconds that a server has to say who we are
_LITTLE = 500_000_000  # bytes of free space
_ENTRY = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (.*(?:\n(?!\d{4}-\d\d-\d\d ).*)*)", re.MULTILINE)
_TRACE = "Traceback (most recent call last):"
_GOOD = "daemon: events are taken in again"
NO_HOOKS = "none for this agent: it recalls and remembers by MCP, and nothing is captured by itself"


def report(store: str) -> dict[str, Any]:
    """Report the daemon, its last errors, the server's token and free disk space."""
    is_used = (config.home() / "team").is_dir()
    return {
        "daemon_runs": is_used and paths.lock().exists() and daemon_client.is_running(),
        "errors": errors() if is_used else [],
        "token": token() if is_used else None,
        "disk": disk(store),
    }


def errors() -> list[dict[str, Any]]:
    """Return the errors of hooks and daemon of the last day, newest last."""
    try:
        with paths.log().open("rb") as file:
            file.seek(max(0, paths.log().stat().st_size - _TAIL))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    found = []
    for when, entry in _ENTRY.findall(text):
        moment = time.mktime(time.strptime(when, "%Y-%m-%d %H:%M:%S"))
        if time.time() - moment < _DAY and not entry.startswith(_GOOD):
            lines = entry.rstrip().splitlines()
            message = lines[0].replace(_TRACE, lines[-1].strip()) if len(lines) > 1 else lines[0]
            found.append({"time": moment, "error": message[:_LONGEST]})
    return found


def token() -> dict[str, Any] | None:
    """Check the token with the server now. None without a login; `accepted` is None if the server does not answer."""
    from .login import login
    from .sync import SyncServer

    try:
        known = login()
        if known is None:
            return None
        server = SyncServer(*known, timeout=_TIMEOUT, attempts=1)
        try:
            server.me()
        finally:
            server.close()
    except RemanenceError as error:
        status = getattr(error, "status", None)
        return {"accepted": None if status is None or status >= 500 else False, "error": str(error)}
    return {"accepted": True, "error": None}


def disk(store: str) -> dict[str, Any]:
    """Bytes that are free where the memory is, and that the store and the spool take."""
    place = config.home()
    while not place.exists():
        place = place.parent
    path = Path(store)
    waiting = spool.waiting() if (config.home() / "team" / "spool").is_dir() else []
    return {
        "free": shutil.disk_usage(place).free,
        "store": sum(_size(path.with_name(path.name + end)) for end in ("", "-wal")) if path.exists() else None,
        "spool": sum(_size(event_file) for event_file in waiting),
    }


def problems(report: dict[str, Any]) -> list[str]:
    """What is wrong in a report of this module, and what to do about it."""
    found = []
    checked = report["token"]
    if checked is not None and checked["error"] is not None:
        kind = "the server does not answer" if checked["accepted"] is None else "the server refuses the token"
        found.append(f"{kind}: {checked['error']}")
    if report["disk"]["free"] < _LITTLE:
        found.append(
            f"the disk is almost full: {report['disk']['free'] / 1e6:.0f} MB are free; events that do not fit are lost"
        )
    return found


def findings(report: dict[str, Any]) -> list[CheckResult]:
    """A report of `rmem status` as `rmem doctor` shows it; nothing where no agent is wired and nothing was captured."""
    wired = [entry for entry in report["agents"] if entry["state"] != "not installed"]
    found = [agent_finding(entry) for entry in wired]
    if not (config.home() / "team").is_dir():
        return found
    wrong = backlog.problems(report)
    found.append(CheckResult("events", not wrong, "; ".join([f"waiting: {backlog.summary(report)}", *wrong])))
    if report["memory"]["server"]:
        found.append(_sync_finding(report))
    last = report["last_capture"] or {}
    time_of = last.get("time")
    capture = f"{backlog.clock(time_of)} ({last.get('agent')})" if isinstance(time_of, int | float) else "never"
    runs = "runs" if report["daemon_runs"] else "does not run; the next hook starts it"
    lately = [f"{backlog.clock(entry['time'])} {entry['error']}" for entry in report["errors"][-_SHOWN:]]
    summary = f"{len(report['errors']):,} complaints since yesterday{': ' * bool(lately)}{'; '.join(lately)}"
    little = report["disk"]["free"] < _LITTLE
    return [
        *found,
        CheckResult("daemon", True, f"{runs}; last capture {capture}; {summary}"),
        CheckResult("disk", not little, f"{report['disk']['free'] / 1e9:.1f} GB free"),
    ]


def agent_finding(agent: dict[str, Any]) -> CheckResult:
    """One agent of a report of `rmem status`."""
    wrong = [*agent["problems"], *([agent["off"]] if agent["off"] else [])]
    parts = [agent[role] for role in ("hooks", "mcp", "skill") if agent[role] is not None]
    lacking = [what for part in parts for what in (*part["missing"], *part["outdated"])]
    if lacking:
        wrong.append(f"missing or outdated: {', '.join(lacking)} (`rmem install {agent['agent']}`)")
    tried = agent["self_test"]
    if tried is not None and not tried["ok"]:
        wrong.append(hook_problem(agent))
    answered = f"its hook answered in {tried['ms']} ms" if tried is not None and tried["ok"] else ""
    answered = answered or (f"hooks: {NO_HOOKS}" if agent["hooks"] is None else "")
    return CheckResult(agent["agent"], not wrong, "; ".join(filter(None, (*wrong, answered))) or "installed")


def hook_problem(agent: dict[str, Any]) -> str:
    """What a self-test found, and what to do about it."""
    tried = agent["self_test"]
    return f"`{tried['command']}` fails: {tried['problem']} (`rmem install {agent['agent']}` renews it)"


def _sync_finding(report: dict[str, Any]) -> CheckResult:
    last, checked = report["last_sync"] or {}, report["token"] or {}
    succeeded = last.get("succeeded")
    detail = f"last sync {backlog.clock(succeeded)}" if isinstance(succeeded, int | float) else "no sync yet"
    wrong = []
    if checked.get("error"):
        wrong.append(checked["error"])
    elif last.get("error"):
        wrong.append(f"not shared at {backlog.clock(last['time'])}: {last['error']}")
    refused = last.get("refused") or []
    if refused:
        wrong.append(refusal_text(refused))
    return CheckResult("sharing", not wrong, "; ".join([detail, *wrong]))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def refusal_text(refused: Sequence[Mapping[str, Any]]) -> str:
    """Say how many memories a server refused, and why the first."""
    count = "1 memory was" if len(refused) == 1 else f"{len(refused):,} memories were"
    return f"{count} refused; {refused[0].get('id')}: {refused[0].get('error')}"
