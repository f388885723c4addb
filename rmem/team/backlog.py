"""Report what waits in the spool and why, and what was set aside: for `rmem status` and `rmem doctor`. Read only."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from .. import config
from . import daemon_client, outage, paths, spool

_LATE = 600.0  # seconds; where all is well an event waits for less than one
_RETRY = "`rmem status --retry`"


def report() -> dict[str, Any]:
    """Report how many events wait and since when, the last failure to store them, and what was set aside."""
    found: dict[str, Any] = {"waiting": 0, "waiting_since": None, "failure": None, "set_aside": None}
    if not _is_used():
        return found
    waiting, unusable, failure = _paths(spool.waiting), _paths(spool.unusable), outage.read()
    if waiting:
        found |= {"waiting": len(waiting), "waiting_since": _write_time(waiting[0])}
    if failure is not None:
        found["failure"] = failure._asdict() | {"daemon_runs": paths.lock().exists() and daemon_client.is_running()}
    if unusable:
        newest = unusable[-1]
        reason = spool.reason_of(newest) or None
        found["set_aside"] = {"count": len(unusable), "folder": str(newest.parent), "newest_reason": reason}
    return found


def summary(backlog: dict[str, Any]) -> str:
    """Say how many events wait, and since when: "3 events, the oldest since 2026-05-01 10:00:00"."""
    since = backlog["waiting_since"]
    return _count(backlog["waiting"]) + ("" if since is None else f", the oldest since {clock(since)}")


def problems(backlog: dict[str, Any]) -> list[str]:
    """List what is wrong in a report and what to do about it, one sentence each."""
    found = []
    failure, since, aside = backlog["failure"], backlog["waiting_since"], backlog["set_aside"]
    if failure is not None:
        again = f"at {clock(failure['next'])}" if failure["daemon_runs"] else "with the next hook"
        found.append(
            f"events are not taken in: {failure['error']} (since {clock(failure['since'])}; attempt "
            f"{failure['attempts']:,} at {clock(failure['last'])}, the next {again}; {_RETRY} tries now)"
        )
    elif since is not None and time.time() - since > _LATE:
        found.append(f"events are not taken in ({_RETRY} tries now)")
    if backlog["waiting"] >= spool.MOST:
        found.append("no other event is kept before some of these are taken in")
    if aside is not None:
        reason = aside["newest_reason"] or "unknown"
        found.append(
            f"can never be taken in, and set aside: {_count(aside['count'])} in {aside['folder']}; the reason of the "
            f"newest: {reason} ({_RETRY} tries again)"
        )
    return found


def _is_used() -> bool:
    return (config.home() / "team").is_dir()


def _paths(events: Callable[[], list[Path]]) -> list[Path]:
    try:
        return events()
    except OSError:
        return []  # the daemon meets the same error, and writes it down


def _write_time(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None  # it was taken in just now


def _count(number: int) -> str:
    return f"{number:,} event{'s' * (number != 1)}"


def clock(seconds: float) -> str:
    """Format a local time to the second."""
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")
