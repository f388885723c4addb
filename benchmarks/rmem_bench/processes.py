"""What is measured in new processes: from start to the first hit, imports, and memory with a store open."""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rmem import config

from .material import Material
from .measure import Samples

_IMPORT = "import time; t = time.perf_counter(); {}; print(1000 * (time.perf_counter() - t))"


def compile_package() -> None:
    """Compile our modules, as installing does; otherwise the first start, or without a writable cache every one, would
    measure the compiler."""
    import rmem

    compileall.compile_dir(str(Path(rmem.__file__).parent), quiet=2)


def starts(
    home: Path, material: Material, size: int, seed: int, calls: int, advance: Callable[[str, int, int], None]
) -> dict[str, Any]:
    """A new process for each call: `rmem recall`, an empty Python, and imports by the process's own clock.

    The file is in the system's cache, as it is for a hook that runs many times a day.
    """
    compile_package()
    samples = {"recall": Samples(), "python": Samples()}
    imports: dict[str, list[float]] = {"import_rmem": [], "import_brain": []}
    command = [sys.executable, "-m", "rmem", "recall", "--json"]
    for at, question in enumerate(material.questions(calls + 1, seed, size)):
        warm_up = at == 0
        for name, line in (("recall", [*command, "--", question]), ("python", [sys.executable, "-c", "pass"])):
            wall, cpu = _run(line, home)
            if not warm_up:
                samples[name].add(wall, cpu)
        for name, statement in (
            ("import_rmem", "import rmem"),
            ("import_brain", "from rmem import Brain"),
        ):
            told = _output([sys.executable, "-c", _IMPORT.format(statement)], home)
            if not warm_up:
                imports[name].append(float(told))
        advance("start processes", at + 1, calls + 1)
    result: dict[str, Any] = {
        "through": "library" if "-c" in command else "command line",
        "recall_in_a_new_process": samples["recall"].summary(),
        "baselines": {"python_pass": samples["python"].summary()},
    }
    for name, values in imports.items():
        result[f"{name}_ms"] = round(sorted(values)[len(values) // 2], 2)
    return result


def memory(home: Path, material: Material, size: int, seed: int) -> dict[str, Any]:
    """Resident memory of a fresh process that has the store open and has answered one question."""
    (question,) = material.questions(1, seed + 2, size)
    line = [sys.executable, "-m", "rmem_bench.child", str(home / config.STORE_NAME), question]
    told: dict[str, Any] = json.loads(_output(line, home))
    return told


def environment_with(home: Path) -> dict[str, str]:
    """The environment of a process that keeps what Python compiles, as an installed package is compiled: otherwise
    every process would compile click and numpy again."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, config.HOME: str(home)}


def _run(line: list[str], home: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a process, its start and end included."""
    started = time.perf_counter()
    process = subprocess.Popen(
        line, env=environment_with(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    out, error = process.communicate()
    wall = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{' '.join(line[:4])} … failed ({process.returncode}): {(error or out)[-2000:]}")
    return wall, _children_cpu()


_seen = 0.0


def _children_cpu() -> float:
    """CPU seconds of the child processes that ended since the last call."""
    global _seen
    times = os.times()
    total = times.children_user + times.children_system
    used, _seen = total - _seen, total
    return used


def _output(line: list[str], home: Path) -> str:
    done = subprocess.run(line, env=environment_with(home), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(line[:4])} … failed ({done.returncode}): {done.stderr[-2000:]}")
    _children_cpu()
    return done.stdout
