"""Progress bars on stderr: only on a terminal, and only for work that takes longer than a moment."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE = 0.4  # seconds before a bar appears, even if no progress was reported yet


class Stopped(click.Abort):
    """Interrupted by the user; `advice` says how to resume."""

    def __init__(self, advice: str) -> None:
        self.advice = advice


class Bar:
    """A progress bar to pass as `on_progress`: call it with the number done and the total."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._state: tuple[str, int, int | None] = (label, 0, None)
        self._lock = threading.Lock()
        self._closed = False
        self._shown: Progress | None = None
        self._task: TaskID | None = None
        self._timer = threading.Timer(_PATIENCE, self._appear)
        self._timer.daemon = True
        if sys.stderr.isatty():
            self._timer.start()

    def __call__(self, done: int, total: int | None = None) -> None:
        self._show(self._label, done, total)

    def under(self, label: str) -> Callable[[int, int | None], None]:
        """Return a callback that shows this bar with another label, for one part of the work."""
        return lambda done, total: self._show(label, done, total)

    def _show(self, label: str, done: int, total: int | None) -> None:
        with self._lock:
            self._state = (label, done, total)
            self._update()

    def _appear(self) -> None:
        with self._lock:
            if not self._closed:
                self._shown = _bar()
                self._task = self._shown.add_task(self._label, total=None)
                self._shown.start()
                self._update()

    def _update(self) -> None:
        if self._shown is not None and self._task is not None:
            label, done, total = self._state
            self._shown.update(self._task, description=label, completed=done, total=total)

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._shown is not None:
                self._shown.stop()
        if self._timer.is_alive():
            self._timer.join()


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
def progress(label: str, *, stopped: str = "") -> Iterator[Bar]:
    """Show a bar while the work runs. `stopped` is the advice after an interruption: how to resume."""
    bar = Bar(label)
    try:
        yield bar
    except KeyboardInterrupt:
        if stopped:
            raise Stopped(stopped) from None
        raise
    finally:
        bar.close()
