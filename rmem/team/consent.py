"""Check whether a folder's work may be captured, and whether memories may be shown there. A repository can opt out in
its `.rmem.toml`; it cannot opt anybody in, which `rmem install` does."""

from __future__ import annotations

from pathlib import Path

from ..old_names import REPOSITORY_FILES


def may_capture(cwd: str) -> bool:
    return _allows(cwd, "capture")


def may_recall(cwd: str) -> bool:
    return _allows(cwd, "recall")


def _allows(cwd: str, name: str) -> bool:
    """Return what the repository's file says. A file that cannot be read means no."""
    if not cwd:
        return True
    start = Path(cwd)
    # Most folders have no such file, and looking for it needs no reading of TOML.
    if not any((folder / name).exists() for folder in (start, *start.parents) for name in REPOSITORY_FILES):
        return True
    from ..errors import RemanenceError
    from .repository_file import settings_of

    try:
        settings = settings_of(start)
    except RemanenceError as error:
        from .hook import note

        note(str(error))
        return False
    return True if settings is None else bool(getattr(settings, name))
