"""Progress bars: on stderr, only where a person sees it, and only for work that takes more than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE = 1.0


class Bar:
    """Call it with how many are done and how many there are, as the `on_progress` of any long call."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._started = time.monotonic()
        self._seen = sys.stderr.isatty()
        self._shown: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, done: int, total: int | None = None) -> None:
        self._show(self._label, done, total)

    def under(self, label: str) -> Callable[[int, int | None], None]:
        """The same bar with another label, for a first part of the work."""
        return lambda done, total: self._show(label, done, total)

    def _show(self, label: str, done: int, total: int | None) -> None:
        if not self._seen or (self._shown is None and time.monotonic() - self._started < _PATIENCE):
            return
        if self._shown is None:
            self._shown = _bar()
            self._task = self._shown.add_task(label, total=total)
            self._shown.start()
        assert self._task is not None
        self._shown.update(self._task, description=label, completed=done, total=total)

    def close(self) -> None:
        if self._shown is not None:
            self._shown.stop()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


@contextmanager
def progress(label: str) -> Iterator[Bar]:
    bar = Bar(label)
    try:
        yield bar
    finally:
        bar.close()
