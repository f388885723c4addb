"""Read a file of a repository, as its last commit has it or as it is now."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_SECONDS = 2.0  # after which git is given up
_LARGEST = 1 << 20  # bytes


def committed_text(root: Path, name: str) -> str:
    """Return the text of a file in HEAD; empty if it is not there, or large, or not on this machine."""
    # A clone without its contents must not fetch them now.
    env = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "-C", os.fspath(root), "cat-file", "blob", f"HEAD:{name}"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, env=env, check=False)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 and len(done.stdout) <= _LARGEST else ""


def working_text(root: Path, name: str) -> str:
    """Return the text of a file as it is now; empty if it is not there or large."""
    try:
        path = root / name
        return path.read_text(errors="replace") if path.stat().st_size <= _LARGEST else ""
    except (OSError, ValueError):
        return ""
