"""Write small files atomically: a temporary file beside them replaces them once it is on disk."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from threading import get_ident

_STALE = 3600.0  # seconds after which nobody is still writing a draft


def replace_file(path: Path, data: bytes) -> None:
    """Write a file atomically, readable by its owner alone. Durable on return; a failure leaves no draft."""
    draft = path.with_name(f".{path.name}-{os.getpid()}-{get_ident()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, if the system can open folders."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_stale(folder: Path) -> None:
    """Remove the drafts of processes that were killed while writing; what cannot be removed stays."""
    before = time.time() - _STALE
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.startswith(".") and entry.is_file() and entry.stat().st_mtime < before:
                    os.unlink(entry)
