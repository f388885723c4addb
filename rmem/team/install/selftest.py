"""Test an installed hook: run the command in the agent's file as the agent would, with a session start that is marked
as a test. It passes through the spool, the daemon and the memory, and leaves nothing behind; a daemon started for it
ends soon after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import Any

from ...errors import ConfigError
from .. import paths
from ..events import SELF_TEST, SELF_TEST_ANSWER
from . import files
from .commands import lasting_path
from .parts import Hooks, Whole
from .tool import Tool

_LIMIT = 10.0  # seconds; all agents wait for so long
_IDLE = "10"  # seconds after which a daemon ends that was started for this
_LONGEST = 300  # characters of what went wrong


def try_hook(tool: Tool) -> dict[str, Any] | None:
    """Run the hook for a session start; return its command, milliseconds and problem. None if it is not installed."""
    command = _installed_command(tool)
    if command is None:
        return None
    started = time.perf_counter()
    problem = _run(command)
    taken = round((time.perf_counter() - started) * 1e3)
    return {"command": command, "ok": not problem, "ms": taken, "problem": problem or None}


def _installed_command(tool: Tool) -> str | None:
    part = tool.parts[0]
    if part.role != "hooks":
        return None
    assert isinstance(part, Hooks | Whole)
    try:
        text = files.read(part.path).text
        return None if text is None else part.command(text, tool.start)
    except ConfigError:
        return None


def _run(command: str) -> str:
    """Run a command; return what went wrong, empty if the memory answered."""
    folder = str(paths.folder())
    names = dict.fromkeys(("session_id", "sessionId", "sessionID", "conversation_id"), SELF_TEST)
    given = json.dumps({**names, "cwd": folder, "directory": folder, "source": SELF_TEST})
    environment = {**os.environ, "PATH": lasting_path()}
    environment.setdefault("RMEM_KEEPER_IDLE", _IDLE)
    process = subprocess.Popen(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        answer, complaint = process.communicate(given, timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        _kill(process)
        return f"it did not end within {_LIMIT:g} s"
    except BaseException:
        _kill(process)
        raise
    if SELF_TEST_ANSWER in answer:
        return ""
    message = " ".join(complaint.split())[-_LONGEST:]
    if process.returncode:
        return f"it ended with {process.returncode}{': ' * bool(message)}{message}"
    return message or "it printed nothing"


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and its children, which hold its pipes; a daemon has a session of its own."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()
