"""A session on a small file system that runs full and has room again: run by test_outages.py inside a mount of its own.
Prints one JSON document with what a user would see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from rmem import Brain
from rmem.team import outage, paths, spool
from rmem.team.events import Event, EventKind

MANY = 50
FULL = 8.0  # seconds


def rmem(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rmem", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)


def wish(number: int) -> Event:
    said = f"Always use the port {5000 + number} for service {number}"
    return Event(str(number), "claude-code", EventKind.PROMPT, "s1", "", time.time(), prompt=said)


def fill(path: Path) -> None:
    """Write until not one byte more fits."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass


def wait_for(what, patience: float = 60.0) -> None:
    end = time.monotonic() + patience
    while not what():
        assert time.monotonic() < end, f"it did not happen in time: {outage.read()}"
        time.sleep(0.05)


def main() -> None:
    os.environ["RMEM_KEEPER_IDLE"] = "2"
    home = paths.folder().parent
    Brain(home / "memories.db", privacy="default").close()
    outage.Outage().over()  # as any daemon has left it
    for number in range(MANY):
        spool.put(wish(number))
    fill(home.parent / "ballast")
    told: dict[str, object] = {}
    payload = json.dumps({"session_id": "s2", "cwd": "/", "prompt": "Never use tabs in this repository, please"})
    hook = rmem("hook", "claude-code", "UserPromptSubmit", given=payload)  # starts the daemon
    told["hook"] = [hook.returncode, hook.stdout, hook.stderr]
    wait_for(lambda: (failure := outage.read()) is not None and failure.attempts > 1)
    time.sleep(FULL)
    told["status"] = rmem("status").stdout
    told["doctor"] = rmem("doctor").returncode
    told["set aside"] = len(spool.unusable())
    told["drafts"] = [str(path) for path in home.rglob(".*")]
    (home.parent / "ballast").unlink()
    wait_for(lambda: not spool.waiting())
    with Brain(home / "memories.db", privacy="default") as brain:
        found = brain.memories({"type": "preference"}, order="oldest", limit=None)
    told["wishes"] = [memory.text for memory in found]
    told["counts"] = [memory.contents["count"] for memory in found]
    told["set aside"] += len(spool.unusable())
    told["status afterwards"] = rmem("status", "--json").stdout.count("StoreFullError")
    print(json.dumps(told))


main()
