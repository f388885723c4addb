"""Where a run takes place: facts about the machine, without names or paths, and a folder on a real disk."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

_IN_MEMORY = {"tmpfs", "ramfs"}


def facts(folder: Path) -> dict[str, Any]:
    """What a reader needs to judge figures."""
    import numpy

    from rmem import __version__

    return {
        "cpu_count": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "filesystem": filesystem(folder),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "sqlite": sqlite3.sqlite_version,
        "rmem": __version__,
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def filesystem(folder: Path) -> str | None:
    """The kind of file system that holds a folder; None where the system does not tell."""
    try:
        mounts = Path("/proc/mounts").read_text("utf-8").splitlines()
    except OSError:
        return None
    whole = folder.resolve()
    best, kind = -1, None
    for line in mounts:
        _, where, found, *_ = line.split()
        point = Path(where.replace("\\040", " "))
        if len(point.parts) >= best and (point == whole or point in whole.parents):
            best, kind = len(point.parts), found
    return kind


def disk_folder() -> Path:
    """A folder for temporary files on a disk, so that an fsync costs what it costs."""
    candidates = [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd(), Path.home()]
    usable = [folder for folder in candidates if folder.is_dir() and os.access(folder, os.W_OK)]
    on_disk = [folder for folder in usable if filesystem(folder) not in _IN_MEMORY]
    if not usable:
        sys.exit("no folder for temporary files can be written; set TMPDIR")
    return (on_disk or usable)[0]
