"""The error that keeps the daemon from storing events: which, since when, and when it tries again. Written to a file
for `rmem status`, `rmem doctor` and the next daemon."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import NamedTuple

from . import paths
from .atomic_files import replace_file

_FIRST, _LONGEST = 1.0, 300.0  # seconds before the second attempt, and at most between two
_SIZE = 4096  # bytes of the file
_LONG_ERROR = 800


class Failure(NamedTuple):
    """The last failed attempt. `since` and `attempts` count from the first one, also of an earlier process."""

    error: str
    since: float
    attempts: int
    last: float
    next: float


class Outage:
    """Failed attempts to store events, each followed by a longer pause."""

    def __init__(self) -> None:
        self._failure = read()
        self._pause = 0.0
        self._due = 0.0
        self._began: float | None = None
        self._is_written = False

    @property
    def is_active(self) -> bool:
        """Return whether the last attempt of this process failed."""
        return self._began is not None

    @property
    def is_due(self) -> bool:
        """Return whether it is time for an attempt."""
        return time.monotonic() >= self._due

    @property
    def seconds(self) -> float:
        """Return how long this process has been failing."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    def record_failure(self, error: Exception, *, progress: bool) -> bool:
        """Start a pause, a short one if the attempt made progress. Return whether the error differs from the one
        before."""
        self._pause = _FIRST if progress or not self._pause else min(2 * self._pause, _LONGEST)
        self._due = time.monotonic() + self._pause
        if self._began is None:
            self._began = time.monotonic()
        now, before = time.time(), self._failure
        message = " ".join(f"{type(error).__name__}: {error}".split())[:_LONG_ERROR]
        since, attempts = (now, 0) if before is None else (before.since, before.attempts)
        self._failure = Failure(message, since, attempts + 1, now, now + self._pause)
        self._write()
        return before is None or before.error != message

    def over(self) -> bool:
        """Record a success. Return whether there was an outage, also of an earlier process."""
        ended = self._failure is not None
        if ended or not self._is_written:
            self._failure = None
            self._pause, self._began = 0.0, None
            self._write()
            self._is_written = True
        return ended

    def _write(self) -> None:
        """Write the file, best effort. A full disk has no room for a draft but mostly allows overwriting, so the file
        always exists with the same size."""
        saved = None if self._failure is None else self._failure._asdict()
        data = json.dumps(saved, ensure_ascii=False).encode("utf-8", "replace").ljust(_SIZE)
        try:
            replace_file(paths.outage(), data)
        except OSError:
            with suppress(OSError), paths.outage().open("r+b") as file:
                file.write(data)
                file.truncate()


def read() -> Failure | None:
    """Return the recorded outage, or None."""
    try:
        saved = json.loads(paths.outage().read_bytes())
        return Failure(
            str(saved["error"]),
            float(saved["since"]),
            int(saved["attempts"]),
            float(saved["last"]),
            float(saved["next"]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
