"""`rmem bench`: runs the scenarios at each size and prints the figures as tables or as JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from .scenarios import Advance

PARTS = ("bulk", "recall", "remember", "start", "memory", "file", "vectors")
SIZES = (10_000, 100_000)
FORMAT = 1


def one_thread() -> None:
    """One core for numpy's products, so that CPU is what a query costs. Too late once numpy is loaded."""
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ.setdefault("MKL_NUM_THREADS", "1")


@click.command()
@click.option("--size", "sizes", type=click.IntRange(min=100), multiple=True, help="Memories; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON.")
@click.option("--embedder", default="static", show_default=True, help="What turns the texts into vectors.")
@click.option("--only", type=click.Choice(PARTS), multiple=True, help="Measure this part only; may be repeated.")
@click.option("--calls", type=click.IntRange(min=1), help="Calls of each kind (by default fewer at a million).")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="Where to put the temporary files; by default a folder on a real disk.",
)
def bench(
    sizes: Sequence[int],
    as_json: bool,
    embedder: str,
    only: Sequence[str],
    calls: int | None,
    seed: int,
    folder: Path | None,
) -> None:
    """Measure writing, recalling, starting and space on synthetic memories.

    Each figure stands beside a baseline that ran in the same process on the same data: a bare SQLite insert,
    FTS5, a numpy brute force. Nothing of yours is read or written; 100,000 memories take a few minutes.
    """
    one_thread()
    report = run(
        sizes or SIZES, embedder=embedder, parts=only or PARTS, calls=calls, seed=seed, folder=folder, progress=True
    )
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return
    from rich.console import Console

    from .report import show

    show(report, Console() if sys.stdout.isatty() else Console(width=120))


def run(
    sizes: Sequence[int],
    *,
    embedder: str = "static",
    parts: Collection[str] = PARTS,
    calls: int | None = None,
    seed: int = 0,
    folder: Path | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """The whole report, as `--json` prints it."""
    from . import machine
    from .report import judged

    parent = folder or machine.disk_folder()
    started = datetime.now(UTC)
    facts = machine.facts(parent)
    figures = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="rmem-bench-", dir=parent) as temporary, _Progress(progress) as bar:
            figures[str(size)] = _run_size(Path(temporary), size, embedder, parts, calls, seed, bar.advance)
    return {
        "format": FORMAT,
        "date": started.isoformat(timespec="seconds"),
        "embedder": embedder,
        "seed": seed,
        "machine": facts,
        "sizes": figures,
        "targets": judged(figures),
    }


def _run_size(
    folder: Path,
    size: int,
    embedder: str,
    parts: Collection[str],
    calls: int | None,
    seed: int,
    advance: Advance,
) -> dict[str, Any]:
    from . import processes, scenarios

    many = calls or (300 if size <= 200_000 else 100)
    result: dict[str, Any] = {}
    if set(parts) - {"vectors"}:
        ground = scenarios.Ground(folder, size, seed, embedder, advance)
        result["bulk"] = ground.fill()
        # Recall first: later parts add memories that brute force does not know.
        if "recall" in parts:
            result["recall"] = scenarios.recalls(ground, many)
        if "remember" in parts:
            result["remember"] = scenarios.remembers(ground, many)
        ground.close()
        if "start" in parts:
            result["start"] = processes.starts(ground.home, size, seed, min(many, 10), advance)
        if "memory" in parts:
            result["memory"] = processes.memory(ground.home, size, seed)
        if "file" in parts:
            result["file"] = scenarios.file_size(ground.path, size)
    if "vectors" in parts:
        result["vectors"] = scenarios.exactness(folder, size, seed, min(many, 200), advance)
    return result


class _Progress:
    """Bars on the error stream, one for each thing that is going on."""

    def __init__(self, shown: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not (shown and console.is_terminal),
            transient=True,
        )
        self._tasks: dict[str, Any] = {}

    def advance(self, name: str, done: int, total: int) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=total)
        self._bars.update(self._tasks[name], completed=done)

    def __enter__(self) -> _Progress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()
