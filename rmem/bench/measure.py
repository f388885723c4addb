"""Timing: wall and CPU of each call, percentiles, and rounds that let noise fall on all tasks alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Result = TypeVar("Result")
Timing = dict[str, Any]

ROUND = 10  # calls of one task before the next task's turn


class Samples:
    """Durations of one kind of call, in seconds."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def time(self, call: Callable[[], Result]) -> Result:
        """Do the call and note how long it took; CPU counts every thread of the process."""
        cpu, wall = time.process_time(), time.perf_counter()
        result = call()
        self.add(time.perf_counter() - wall, time.process_time() - cpu)
        return result

    def add(self, wall: float, cpu: float) -> None:
        self.wall.append(wall)
        self.cpu.append(cpu)

    def summary(self) -> Timing:
        """`{"calls", "wall_ms": {"p50", "p95", "p99", "mean"}, "cpu_ms": {…}}`."""
        return {"calls": len(self.wall), "wall_ms": _spread(self.wall), "cpu_ms": _spread(self.cpu)}


def _spread(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(1000 * value for value in seconds)
    return {
        **{f"p{share}": round(_percentile(ordered, share), 3) for share in (50, 95, 99)},
        "mean": round(sum(ordered) / len(ordered), 3),
    }


def _percentile(ordered: list[float], share: int) -> float:
    """Between the two nearest samples, as numpy does; numpy itself may not be loaded yet."""
    place = (len(ordered) - 1) * share / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def interleaved(
    tasks: Mapping[str, Callable[[int], object]],
    calls: int,
    *,
    budget: float = 40.0,
    on_call: Callable[[], None] = lambda: None,
) -> dict[str, Samples]:
    """Call every task with 0…calls-1, ten calls at a time in turn.

    A task that has used up its `budget` of seconds is called no further, so a slow baseline cannot hold up a
    run; each is called at least `ROUND` times.
    """
    taken = {name: Samples() for name in tasks}
    for start in range(0, calls, ROUND):
        for name, task in tasks.items():
            samples = taken[name]
            if sum(samples.wall) > budget:
                continue
            for at in range(start, min(start + ROUND, calls)):
                samples.time(lambda task=task, at=at: task(at))  # type: ignore[misc]
                on_call()
    return taken


def ratios(subject: Timing, baseline: Timing) -> dict[str, float]:
    """How many times the baseline's time the subject takes, at the median."""
    return {
        kind.removesuffix("_ms"): round(subject[kind]["p50"] / max(baseline[kind]["p50"], 1e-6), 3)
        for kind in ("wall_ms", "cpu_ms")
    }
