"""Many agents at once on one store: processes of threads that read and write, and what becomes of it. Every write that
was acknowledged is looked for at the end, among the rows and in the index."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from os import urandom
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any

from . import machine
from .load_worker import Order, is_marked
from .measure import Samples

if TYPE_CHECKING:
    from rmem import Brain

Advance = Callable[[str, int, int], None]
FORMAT = 1
_TICK = 0.1
_FETCH = 500
_PATIENCE = 60.0  # beyond the time of the run, for calls that wait for each other


@dataclass(frozen=True, slots=True)
class Load:
    """Who does what for how long."""

    readers: int = 40
    writers: int = 10
    seconds: float = 30.0
    processes: int = 2
    memories: int = 5000
    """Synthetic memories that the store holds before anybody starts."""
    pause: float = 0.0
    """Seconds that an agent waits between two calls."""
    seed: int = 0

    @property
    def agents(self) -> int:
        return self.readers + self.writers


def run(
    load: Load, address: str | None = None, *, folder: Path | None = None, keep: bool = False, advance: Advance
) -> dict[str, Any]:
    """The whole report, as `--json` prints it. Without an address the store is a temporary file; in a store of yours,
    what was written is forgotten again unless `keep` is set."""
    parent = folder or machine.disk_folder()
    facts = machine.facts(parent)
    started = datetime.now(UTC)
    with _store(address, parent) as where:
        run_name = f"load-{urandom(3).hex()}"
        try:
            _fill(where, load, run_name, advance)
            results, failures = _simulate(where, load, run_name, advance)
            found = _verified(where, results)
        finally:
            if address is not None and not keep:
                _forget(where, run_name)
    return {
        "format": FORMAT,
        "date": started.isoformat(timespec="seconds"),
        "machine": facts,
        "load": {"agents": load.agents, **asdict(load), "store": _kind(address)},
        **_figures(results, failures),
        **found,
    }


def _kind(address: str | None) -> str:
    """What is told of the store: no path and no password."""
    if address is None:
        return "a temporary SQLite file"
    return f"{address.partition('://')[0]} store" if "://" in address else "an SQLite file"


@contextmanager
def _store(address: str | None, parent: Path) -> Iterator[str]:
    if address is not None:
        yield address
        return
    with TemporaryDirectory(prefix="rmem-load-", dir=parent) as temporary:
        yield str(Path(temporary) / "load.db")


def _fill(address: str, load: Load, run_name: str, advance: Advance) -> None:
    from rmem import Brain
    from rmem.testing.synthetic import synthetic_memories

    if not load.memories:
        return
    with Brain(address) as brain:
        items = (
            {**item, "agent": f"{run_name}-{item['agent']}", "session": f"{run_name}-{item['session']}"}
            for item in synthetic_memories(load.memories, load.seed)
        )
        brain.remember_many(items, on_progress=lambda done, _: advance("fill", done, load.memories))


# The run


def orders(address: str, load: Load, run_name: str) -> list[Order]:
    """Readers and writers dealt out to the processes in turn."""
    dealt = [Order(address, [], [], load.seconds, load.pause, load.seed, load.memories) for _ in range(load.processes)]
    for number in range(load.readers):
        dealt[number % load.processes].readers.append(f"{run_name}-reader-{number:03}")
    for number in range(load.writers):
        dealt[-1 - number % load.processes].writers.append(f"{run_name}-writer-{number:03}")
    return [order for order in dealt if order.readers or order.writers]


class WorkerProcess:
    """A worker; its pipes are read by a thread, so that nobody waits for a full pipe."""

    def __init__(self, module: str, order: Mapping[str, Any]) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._child.stdin is not None
        self._lines: list[str] = []
        self._errors: list[str] = []
        self._threads = [
            Thread(target=self._read, args=(self._child.stdout, self._lines), daemon=True),
            Thread(target=self._read, args=(self._child.stderr, self._errors), daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        self.say(json.dumps(order))

    @staticmethod
    def _read(pipe: Any, into: list[str]) -> None:
        for line in pipe:
            into.append(line)

    def say(self, line: str) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(f"{line}\n")
            self._child.stdin.flush()
        except BrokenPipeError:  # it has ended; `result` tells why
            pass

    @property
    def ready(self) -> bool:
        """Whether it waits for the start, or has ended too early."""
        return bool(self._lines) or self._child.poll() is not None

    @property
    def ended(self) -> bool:
        return self._child.poll() is not None

    def result(self) -> dict[str, Any] | str:
        """Its figures, or why there are none."""
        for thread in self._threads:
            thread.join(5)
        if self._child.returncode == 0 and len(self._lines) == 2:
            figures: dict[str, Any] = json.loads(self._lines[1])
            return figures
        last = "".join(self._errors).strip().splitlines()[-1:] or ["no message"]
        return f"a process ended with {self._child.returncode}: {last[0]}"

    def end(self) -> None:
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()


def _simulate(address: str, load: Load, run_name: str, advance: Advance) -> tuple[list[dict[str, Any]], list[str]]:
    dealt = orders(address, load, run_name)
    processes = [WorkerProcess("rmem.bench.load_worker", asdict(order)) for order in dealt]
    try:
        while not all(process.ready for process in processes):
            time.sleep(_TICK)
        for process in processes:
            process.say("go")
        started = time.monotonic()
        while not all(process.ended for process in processes):
            passed = time.monotonic() - started
            if passed > load.seconds + _PATIENCE:
                break
            advance("load", int(min(passed, load.seconds) * 10), int(load.seconds * 10))
            time.sleep(_TICK)
        stuck = [process for process in processes if not process.ended]
        for process in stuck:
            process.end()
        told = [process.result() for process in processes]
    finally:
        for process in processes:
            process.end()
    return [one for one in told if isinstance(one, dict)], [one for one in told if isinstance(one, str)]


# The figures


def _figures(results: Sequence[dict[str, Any]], failures: Sequence[str]) -> dict[str, Any]:
    wall = max((one["wall_s"] for one in results), default=0.0)
    errors: Counter[str] = Counter(failures)
    for one in results:
        for agent in (*one["readers"], *one["writers"]):
            errors.update(agent["errors"])
    start, half, end = (sum(one[f"rss_{when}_bytes"] for one in results) for when in ("start", "half", "end"))
    cpu = sum(one["cpu_s"] for one in results)
    return {
        "wall_s": round(wall, 3),
        "reads": _calls([agent for one in results for agent in one["readers"]], wall),
        "writes": _calls([agent for one in results for agent in one["writers"]], wall),
        "cpu": {"seconds": round(cpu, 3), "cores": round(cpu / wall, 2) if wall else 0.0},
        "errors": {"total": errors.total(), "told": dict(errors.most_common(10))},
        "rss": {
            "start_bytes": start,
            "half_bytes": half,
            "end_bytes": end,
            "growth_bytes": end - start,
            "late_growth_bytes": end - half,
            "processes": [[one["rss_start_bytes"], one["rss_end_bytes"]] for one in results],
        },
    }


def _calls(agents: Sequence[dict[str, Any]], wall: float) -> dict[str, Any]:
    samples = Samples()
    for agent in agents:
        samples.wall += agent["wall"]
        samples.cpu += agent["cpu"]
    if not samples.wall:
        return {"calls": 0, "per_s": 0.0}
    summary = samples.summary()
    summary["wall_ms"]["max"] = round(1000 * max(samples.wall), 3)
    return {"per_s": round(len(samples.wall) / wall, 1), **summary}


def _verified(address: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Are all acknowledged writes there, whole, and does the index of a newcomer know them?"""
    from rmem import Brain, Filter

    acknowledged = lost = unindexed = 0
    with Brain(address) as brain:
        for agent in (agent for one in results for agent in one["writers"]):
            known = {memory.memory_id for memory in brain.store.select(Filter(agent=(agent["name"],)))}
            unindexed += sum(key not in known for _, key in agent["kept"])
            acknowledged += len(agent["kept"])
            for start in range(0, len(agent["kept"]), _FETCH):
                lost += _absent(brain, agent["name"], agent["kept"][start : start + _FETCH])
    return {"acknowledged": acknowledged, "lost_writes": lost, "unindexed_writes": unindexed}


def _absent(brain: Brain, agent: str, kept: Sequence[tuple[int, str]]) -> int:
    found = brain.store.get_many([key for _, key in kept])
    return sum(
        memory is None or not is_marked(memory.text, agent, number)
        for memory, (number, _) in zip(found, kept, strict=True)
    )


def _forget(address: str, run_name: str) -> None:
    """Everything of this run, in steps that let others write in between."""
    from rmem import Brain, Filter

    with Brain(address) as brain:
        agents = [name for name in brain.stats()["by_agent"] if name.startswith(f"{run_name}-")]
        for name in agents:
            while held := brain.store.select(Filter(agent=(name,)), limit=_FETCH):
                brain.store.forget_many([memory.memory_id for memory in held])


def healthy(report: dict[str, Any]) -> bool:
    return not (report["lost_writes"] or report["unindexed_writes"] or report["errors"]["total"])


def shared(agents: int, readers: int | None, writers: int | None) -> Load:
    """A load for so many agents, a fifth of them writers unless it is said otherwise."""
    if writers is None:
        writers = max(1, agents // 5) if readers is None else agents - readers
    if readers is None:
        readers = agents - writers
    if readers < 0 or writers < 0 or readers + writers != agents:
        raise ValueError(f"{readers} readers and {writers} writers are not {agents} agents")
    return replace(Load(), readers=readers, writers=writers)
