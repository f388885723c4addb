"""`rmem hook AGENT EVENT`: the command that a coding agent runs at each event, with JSON on standard input.

A hook never delays or breaks the agent. It writes the event to the spool and starts the daemon if none runs; where the
agent accepts context, it asks the daemon for it and prints it in the agent's own form. Errors go to the log, and the
exit code is 0. Only light modules are imported here."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence

from ..private_files import opener
from . import paths
from .events import AGENTS, SELF_TEST, SELF_TEST_ANSWER, Event, EventKind

_LARGEST = 8 << 20  # characters of standard input
_LARGEST_LOG = 1 << 20
_PATIENCE, _FIRST_PATIENCE = 0.6, 2.0  # seconds that an agent waits for what the team knows; while the daemon starts
_TEST_PATIENCE = 8.0
_DEAF = ("cursor",)  # agents that take nothing in after a command


def main(arguments: Sequence[str]) -> int:
    """Run the hook; return 0, except for `--help` and wrong usage."""
    if len(arguments) != 2 or arguments[0] not in AGENTS:
        print(f"usage: rmem hook {{{'|'.join(AGENTS)}}} EVENT  (the event's JSON on standard input)", file=sys.stderr)
        return 2 if sys.stdin.isatty() else 0
    try:
        _run(*arguments)
    except BaseException as error:
        note(f"{arguments[0]} {arguments[1]}: {_error_text(error)}")
    return 0


def _error_text(error: BaseException) -> str:
    """Return the message of our own errors; other errors with their traceback."""
    from ..errors import RemanenceError

    if isinstance(error, RemanenceError):
        return str(error)
    import traceback

    return "".join(traceback.format_exception(error, limit=-3))


def _run(agent: str, name: str) -> None:
    from .dialects import dialect

    payload = json.loads(sys.stdin.read(_LARGEST))
    if not isinstance(payload, dict):
        raise ValueError(f"expected a JSON object, got {type(payload).__name__}")
    spoken = dialect(agent)
    event = spoken.read(name, payload)
    if event is None:
        return
    from .consent import may_capture, may_recall
    from .daemon_client import ensure_daemon
    from .private_text import public

    event = public(event)
    if event.source == SELF_TEST:
        _try(event, lambda context: spoken.answer(name, context))
        return
    try:
        if may_capture(event.cwd):
            from .spool import put

            put(event)
    finally:
        running = ensure_daemon()  # where the spool is full, too: somebody has to empty it
    if _wants_context(event) and may_recall(event.cwd):
        first = not running and event.kind is not EventKind.TOOL
        context = request_context(event, _FIRST_PATIENCE if first else _PATIENCE)
        if context:
            print(spoken.answer(name, context), flush=True)


def _try(event: Event, form: Callable[[str], str]) -> None:
    """Run a self-test like the start of a session; leave nothing behind, and report errors to `rmem status`."""
    from .daemon_client import call, ensure_daemon
    from .spool import put

    path = None
    try:
        path = put(event)
        ensure_daemon()
        context = call(event, _FIRST_PATIENCE, _TEST_PATIENCE)
        if context == SELF_TEST_ANSWER:
            print(form(context), flush=True)
        else:
            print(context or "the daemon answered nothing; `rmem status --retry` starts another one", file=sys.stderr)
    except Exception as error:
        print(_error_text(error), file=sys.stderr)
    finally:
        if path is not None:
            path.unlink(missing_ok=True)


def _wants_context(event: Event) -> bool:
    """Return whether context may be shown for this event. The daemon decides whether a command failed."""
    if event.kind is EventKind.TOOL:
        return event.action in ("shell", "test") and event.agent not in _DEAF
    return event.kind in (EventKind.SESSION_START, EventKind.PROMPT)


def request_context(event: Event, patience: float) -> str:
    """Ask the daemon for relevant memories. A late answer is shown with the session's next prompt."""
    from .daemon_client import call

    try:
        return call(event, patience, _FIRST_PATIENCE)
    except TimeoutError:
        note(f"{event.agent} {event.kind}: the daemon did not answer in time; its answer is shown with the next prompt")
        return ""


def note(line: str) -> None:
    """Write a line to the log; ignore errors."""
    try:
        path = paths.log()
        if path.exists() and path.stat().st_size > _LARGEST_LOG:
            os.replace(path, path.with_suffix(paths.OLD_LOG))
        with open(path, "a", encoding="utf-8", errors="replace", opener=opener) as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line.rstrip()}\n")
    except OSError:
        pass
