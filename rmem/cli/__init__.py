"""The command line, `rmem`: an interface over Brain that reads arguments and prints answers, and decides nothing else.

`app` is the command itself and loads one module for each group of subcommands, when it is asked for. Start-up
time is part of the product here: anything heavier than click is imported where it is used, and a hook, which an agent
waits for, does without click too."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import threading
from contextlib import suppress

_YOUNG = 100_000  # allocations between collections: imports and the index of a recall allocate much that stays


def main() -> None:
    gc.set_threshold(_YOUNG, 10, 10)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # or numpy starts threads, which takes longer than one answer
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")  # an old code page, or the locale C, shows "?" instead of failing
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
    """Exit without the interpreter's cleanup, a sixth of the time of a short command. All output is flushed first."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader of the pipe is gone
            stream.flush()
    os._exit(code)


__all__ = ["main"]
