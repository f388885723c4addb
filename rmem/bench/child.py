"""`python -m rmem.bench.child STORE QUESTION`: a process that opens a store, answers, and reports its size."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def resident_bytes() -> tuple[int, int | None]:
    """Memory of this process now and at its peak."""
    try:
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
        return int(sizes["VmRSS"]) * 1024, int(sizes["VmHWM"]) * 1024
    except (OSError, KeyError):
        import psutil

        return psutil.Process().memory_info().rss, None


def main(address: str, question: str) -> None:
    from rmem import Brain

    started = time.perf_counter()
    with Brain(address) as brain:
        opened = time.perf_counter()
        brain.recall(question, k=10)
        answered = time.perf_counter()
        rss, peak = resident_bytes()
        report = {
            "rss_bytes": rss,
            "peak_rss_bytes": peak,
            "open_ms": round(1000 * (opened - started), 2),
            "first_recall_ms": round(1000 * (answered - opened), 2),
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:3])
