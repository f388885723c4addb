"""Lock an open file against other threads and processes, until it is closed."""

from __future__ import annotations


def lock(file: int, *, wait: bool) -> None:
    """Lock an open file by its descriptor; without `wait`, OSError if another holds the lock."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
