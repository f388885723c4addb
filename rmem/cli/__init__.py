"""The command line, `rmem`: a face over Brain that reads arguments and prints answers, and decides nothing else.

`app` is the command itself and loads one module for each group of subcommands, when it is asked for. Start-up
time is part of the product here: anything heavier than click is imported where it is used, and a hook, which an agent
waits for, does without click too."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from contextlib import suppress

_YOUNG = 10_000  # objects between two looks for garbage: loading makes many that stay, and no look takes a millisecond


def main() -> None:
    gc.set_threshold(_YOUNG, 10, 10)
    try:
        _run()
    except SystemExit as ended:
        if isinstance(ended.code, int) and threading.active_count() == 1:
            _leave(ended.code)
        raise


def _run() -> None:
    if sys.argv[1:2] == ["hook"] and len(sys.argv) == 4:
        from ..team.hook import main as hook

        sys.exit(hook(sys.argv[2:]))
    from .app import main as app

    app()


def _leave(code: int) -> None:
    """End without taking the interpreter apart, which takes a sixth of the time of a short command: all is written."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody listens any more
            stream.flush()
    os._exit(code)


__all__ = ["main"]
