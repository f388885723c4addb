"""The command line, `rmem`: a face over Brain that reads arguments and prints answers, and decides nothing else.

`app` is the command itself and loads one module for each group of subcommands, when it is asked for. Start-up
time is part of the product here: anything heavier than click is imported where it is used."""

from .app import main

__all__ = ["main"]
