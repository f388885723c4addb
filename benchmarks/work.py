"""The work of one library, run by that library's own Python: `work.py PEER DATA FOLDER`, figures as JSON.

`work.py first PEER DATA FOLDER` is the short-lived process: open the store, answer one question, say how much
memory that took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from adapters import PEERS, NotPossible

K = 10
QUERIES = 100
SINGLE = 100
CHUNK = 1000


def main(peer: str, data: Path, folder: Path) -> dict[str, Any]:
    """Fill, ask, add one by one, start anew; in this order, so that every library is asked with the same rows."""
    facts = json.loads((data / "facts.json").read_text("utf-8"))
    store = PEERS[peer](folder)
    result: dict[str, Any] = {"bulk": fill(store, data, facts["rows"])}
    questions = json.loads((data / "questions.json").read_text("utf-8"))
    for name in ("hybrid", "vector", "words"):
        search = getattr(store, name)
        result[name] = timed(lambda at, search=search: ask(search, questions[at], None), QUERIES)
        result[f"{name}_one_agent"] = timed(
            lambda at, search=search: ask(search, questions[at], facts["agent"]), QUERIES
        )
    fresh = json.loads((data / "fresh.json").read_text("utf-8"))
    result["add_one"] = timed(lambda at: store.add_one(fresh[at]), SINGLE)
    last = fresh[SINGLE - 1]
    found = store.vector(last["text"], last["vector"], None, K)
    result["found_at_once"] = last["text"] in found
    store.close()
    result["first_hit"] = first_hits(peer, data, folder)
    result["bytes"] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return result


def fill(store: Any, data: Path, count: int) -> dict[str, float]:
    wall = cpu = 0.0
    for chunk in rows(data):
        started, used = time.perf_counter(), time.process_time()
        store.add_many(chunk)
        wall += time.perf_counter() - started
        cpu += time.process_time() - used
    started, used = time.perf_counter(), time.process_time()
    if hasattr(store, "finish"):
        store.finish()
    wall += time.perf_counter() - started
    cpu += time.process_time() - used
    return {
        "wall_s": round(wall, 2),
        "rows_per_wall_s": round(count / wall, 1),
        "rows_per_cpu_s": round(count / cpu, 1),
    }


def rows(data: Path) -> Iterator[list[dict[str, Any]]]:
    """Chunks of rows, each with its vector as a list of numbers: what every library takes."""
    import numpy as np

    vectors = np.load(data / "vectors.npy", mmap_mode="r")
    chunk: list[dict[str, Any]] = []
    with (data / "rows.jsonl").open(encoding="utf-8") as lines:
        for at, line in enumerate(lines):
            chunk.append({**json.loads(line), "vector": vectors[at].tolist()})
            if len(chunk) == CHUNK:
                yield chunk
                chunk = []
    if chunk:
        yield chunk


def ask(search: Callable[..., list[str]], question: dict[str, Any], agent: str | None) -> None:
    """An empty answer from all rows would mean that we time something broken; one agent may know nothing."""
    if not search(question["text"], question["vector"], agent, K) and agent is None:
        raise RuntimeError(f"nothing found for {question['text']!r}")


def timed(call: Callable[[int], None], calls: int) -> dict[str, Any]:
    """Milliseconds at the median and the 95th percentile; or why it cannot be done."""
    wall, cpu = [], []
    try:
        call(0)  # warm up
        for at in range(calls):
            started, used = time.perf_counter(), time.process_time()
            call(at)
            wall.append(1000 * (time.perf_counter() - started))
            cpu.append(1000 * (time.process_time() - used))
    except NotPossible as reason:
        return {"not_possible": str(reason)}
    return {"wall_ms": spread(wall), "cpu_ms": spread(cpu)}


def spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {f"p{share}": round(ordered[min(len(ordered) - 1, len(ordered) * share // 100)], 2) for share in (50, 95)}


def first_hits(peer: str, data: Path, folder: Path) -> dict[str, Any]:
    """New processes, from start to the end: import, open, one question."""
    walls, told = [], {}
    for _ in range(6):
        started = time.perf_counter()
        line = [sys.executable, __file__, "first", peer, str(data), str(folder)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        walls.append(1000 * (time.perf_counter() - started))
        if done.returncode:
            raise RuntimeError(f"a new process failed: {done.stderr[-1000:]}")
        told = json.loads(done.stdout.splitlines()[-1])
    return {"wall_ms": spread(walls[1:]), **told}


def first(peer: str, data: Path, folder: Path) -> dict[str, Any]:
    question = json.loads((data / "first.json").read_text("utf-8"))
    store = PEERS[peer](folder)
    search = "hybrid"
    try:
        ask(store.hybrid, question, None)
    except NotPossible:
        search = "vector"
        ask(store.vector, question, None)
    status = Path("/proc/self/status")
    lines = status.read_text("utf-8").splitlines() if status.exists() else []
    resident = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS")), None)
    return {"search": search, "rss_bytes": resident}


if __name__ == "__main__":
    if sys.argv[1] == "first":
        report = first(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        report = main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    print(json.dumps(report), flush=True)
    os._exit(0)  # some libraries keep threads that would hold the process
