"""What happens beside the workers, each in a process of its own with a journal of its own: commands of `rmem`, which
may be killed, and what they leave behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from . import examine
from .faces import exported
from .journal import Journal
from .plan import Fault

PATIENCE = 60.0  # seconds that a command or a process may take; SQLite itself waits 30 for a lock
COMMANDS = ("open", "doctor", "export", "backup", "reindex")


def help_with(fault: Fault, address: str, journal: Journal) -> None:
    """Do what a fault of the plan asks for, and write down what came of it."""
    target = journal.path.with_suffix(".db" if fault.kind == "backup" else ".out.jsonl")
    match fault.kind:
        case "open":
            _run(journal, "open", address, "stats", "--json")
        case "doctor":
            _run(journal, "doctor", address, "doctor", "--json")
        case "reindex":
            embedder = ("static", "chaos")[int(fault.which * 2)]
            patience = 3 * fault.how if fault.how < 0.5 else PATIENCE  # the first half is killed on the way
            _run(journal, "reindex", address, "reindex", "--embedder", embedder, "--json", patience=patience)
        case "export" | "backup":
            _copy(journal, fault.kind, address, target)


def _run(journal: Journal, op: str, address: str, *arguments: str, patience: float = PATIENCE) -> bool:
    """Run `rmem`; whether it ended well."""
    number = journal.issue(op, {"command": ["rmem", *arguments]})
    command = [sys.executable, "-m", "rmem", "--store", address, *arguments]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output, _ = child.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        if patience < PATIENCE:
            journal.acknowledge(number, "killed")
        else:
            journal.fail(number, TimeoutError(f"no answer within {patience:.0f} s"))
        return False
    if child.returncode:
        journal.fail(number, RuntimeError(f"exit code {child.returncode}: {output[-400:].strip()}"), excusable=True)
    else:
        journal.acknowledge(number, None)
    return child.returncode == 0


def _copy(journal: Journal, op: str, address: str, target: Path) -> None:
    """Write all memories to a file, and write them down as a read that took as long as the command."""
    number = journal.issue(op, {"agent": None})
    if not _run(journal, f"{op} command", address, op, str(target), "--json"):
        return
    done = time.monotonic_ns()
    found, problems = (exported(target), []) if op == "export" else examine.read_copy(str(target))
    journal.acknowledge(number, found, at=done)
    if problems:
        journal.fail(journal.issue("doctor", {"of": target.name}), RuntimeError("; ".join(problems)))
    target.unlink()
