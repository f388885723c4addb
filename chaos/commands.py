"""Commands of `rmem` that run beside the workers, each in a process with a journal of its own. Some are killed; exports
and backups are read back and checked."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from . import inspection
from .clients import read_export
from .journal import Journal
from .plan import Fault

TIMEOUT = 60.0  # seconds of a command or a process; SQLite itself waits 30 for a lock
COMMANDS = ("open", "doctor", "export", "backup", "reindex")


def run_command(fault: Fault, address: str, journal: Journal) -> None:
    """Run the command of a fault, and write the result to the journal."""
    target = journal.path.with_suffix(".db" if fault.kind == "backup" else ".out.jsonl")
    match fault.kind:
        case "open":
            _run(journal, "open", address, "stats", "--json")
        case "doctor":
            _run(journal, "doctor", address, "doctor", "--json")
        case "reindex":
            embedder = ("static", "chaos")[int(fault.which * 2)]
            timeout = 3 * fault.how if fault.how < 0.5 else TIMEOUT  # the first half is killed on the way
            _run(journal, "reindex", address, "reindex", "--embedder", embedder, "--json", timeout=timeout)
        case "export" | "backup":
            _copy(journal, fault.kind, address, target)


def _run(journal: Journal, op: str, address: str, *arguments: str, timeout: float = TIMEOUT) -> bool:
    """Run `rmem`; return whether it succeeded."""
    number = journal.issue(op, {"command": ["rmem", *arguments]})
    command = [sys.executable, "-m", "rmem", "--store", address, *arguments]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        if timeout < TIMEOUT:
            journal.acknowledge(number, "killed")
        else:
            journal.fail(number, TimeoutError(f"no answer within {timeout:.0f} s"))
        return False
    if child.returncode:
        journal.fail(number, RuntimeError(f"exit code {child.returncode}: {output[-400:].strip()}"), excusable=True)
    else:
        journal.acknowledge(number, None)
    return child.returncode == 0


def _copy(journal: Journal, op: str, address: str, target: Path) -> None:
    """Export or back up all memories, and journal them as a read that took as long as the command."""
    number = journal.issue(op, {"agent": None})
    if not _run(journal, f"{op} command", address, op, str(target), "--json"):
        return
    done = time.monotonic_ns()
    found, problems = (read_export(target), []) if op == "export" else inspection.read_copy(str(target))
    journal.acknowledge(number, found, at=done)
    if problems:
        journal.fail(journal.issue("doctor", {"of": target.name}), RuntimeError("; ".join(problems)))
    target.unlink()
