"""Whether a folder's work may be remembered, and whether memories may be told there: a repository can opt out by its
`.remanence.toml`. It cannot opt anybody in; that is what `rmem install` is for."""

from __future__ import annotations

from pathlib import Path

FILE = ".remanence.toml"


def may_capture(cwd: str) -> bool:
    return _wish(cwd, "capture")


def may_recall(cwd: str) -> bool:
    return _wish(cwd, "recall")


def _wish(cwd: str, name: str) -> bool:
    """What the repository's file says; a file that cannot be used means no, because nobody knows what it meant."""
    if not cwd:
        return True
    start = Path(cwd)
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            from ..errors import RemanenceError
            from .repository_file import read_settings

            try:
                return bool(getattr(read_settings(folder / FILE), name))
            except RemanenceError as error:
                from .hook import note

                note(f"{folder / FILE}: {error}")
                return False
        if (folder / ".git").exists():
            return True
    return True
