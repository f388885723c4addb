"""The command line, `rmem`: a face over Brain that reads arguments and prints answers, and decides nothing else.

`app` is the command itself and loads one module for each group of subcommands, when it is asked for. Start-up
time is part of the product here: anything heavier than click is imported where it is used, and a hook, which an agent
waits for, does without click too."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:2] == ["hook"] and len(sys.argv) == 4:
        from ..team.hook import main as hook

        sys.exit(hook(sys.argv[2:]))
    from .app import main as app

    app()


__all__ = ["main"]
