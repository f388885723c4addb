"""What search in SQL costs: a table of texts and 256 numbers each, hybrid, vector and word searches.

    python benchmarks/tables_search.py [rows] [--random] [postgresql://…]

Each line is a new process on the same table: its first search, and later ones, in milliseconds of CPU and of the clock,
beside a numpy brute force over the same vectors in the same process. `--random` takes vectors without any clusters,
which nothing but a full scan can search exactly. The files are in the system's cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

DIMENSION, BATCH, ASKED = 256, 16_384, 30
HYBRID = "(e, body) <#> deeplake_hybrid_record($1::float4[], $2, 0.5, 0.5)"
STATEMENTS = {
    "hybrid": f"SELECT id, {HYBRID} AS score FROM docs ORDER BY score DESC LIMIT 10",
    "hybrid, 1 row of 2": f"SELECT id, {HYBRID} AS score FROM docs WHERE id % 2 = 0 ORDER BY score DESC LIMIT 10",
    "hybrid, 1 row of 100": f"SELECT id, {HYBRID} AS score FROM docs WHERE repo = 'r7' ORDER BY score DESC LIMIT 10",
    "hybrid, 1 row of 10000": f"SELECT id, {HYBRID} AS score FROM docs WHERE id % 10000 = 7 ORDER BY score LIMIT 10",
    "vector": "SELECT id FROM docs ORDER BY e <#> $1::float4[] LIMIT 10",
    "words": "SELECT id FROM docs ORDER BY body <#> $1 LIMIT 10",
    "words, all matches": "SELECT count(*) FROM docs WHERE body <#> $1 > 0",
    "all rows": f"SELECT max({HYBRID}) FROM docs",
}
UPDATES = {
    "another column of all rows": "UPDATE docs SET repo = repo",
    "the text of all rows": "UPDATE docs SET body = body || ' again'",
}


def fill(folder: Path, address: str, rows: int, *, random: bool) -> float:
    """Make the table with its indexes, and files of its vectors and of some queries; seconds that the indexes took."""
    import numpy as np

    from rmem.tables.workspace import Workspace
    from rmem.testing.synthetic import clustered_vectors, synthetic_memories

    rng = np.random.default_rng(1)
    texts = [str(memory["text"]) for memory in synthetic_memories(rows)]
    parts = []
    with Workspace(address) as workspace:
        workspace.create_table("docs", {"id": "BIGINT", "repo": "TEXT", "body": "TEXT", "e": f"EMBEDDING({DIMENSION})"})
        for part, start in enumerate(range(0, rows, BATCH)):
            numbers = list(range(start, min(rows, start + BATCH)))
            vectors = clustered_vectors(len(numbers), DIMENSION, part=part)
            if random:
                vectors = rng.standard_normal(vectors.shape).astype(np.float32)
            repos = [f"r{number % 100}" for number in numbers]
            bodies = texts[start : start + BATCH]
            workspace.insert("docs", {"id": numbers, "repo": repos, "body": bodies, "e": list(vectors)})
            parts.append(vectors)
        started = time.perf_counter()
        workspace.query("CREATE INDEX ON docs USING deeplake_index (body)")
        workspace.query("CREATE INDEX ON docs USING deeplake_index (e)")
        spent = time.perf_counter() - started
    matrix = np.concatenate(parts)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    np.save(folder / "vectors.npy", matrix)
    chosen = matrix[rng.integers(0, rows, ASKED)]
    np.save(folder / "queries.npy", chosen + 0.05 * rng.standard_normal(chosen.shape).astype(np.float32))
    return spent


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of CPU and of the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    call()
    return 1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - clock)


def median(samples: list[tuple[float, float]]) -> tuple[float, float]:
    cpu, clock = (sorted(values)[len(values) // 2] for values in zip(*samples, strict=True))
    return cpu, clock


def child(folder: Path, address: str, update: str) -> dict[str, Any]:
    """In a process of its own: open, update if asked to, search."""
    started = time.perf_counter()
    import numpy as np
    from rmem_bench.child import resident_bytes

    from rmem.tables.workspace import Workspace
    from rmem.testing.synthetic import synthetic_questions

    told: dict[str, Any] = {"import": 1000 * (time.perf_counter() - started)}
    queries, questions = list(np.load(folder / "queries.npy")), synthetic_questions(ASKED)
    with Workspace(address) as workspace:

        def asked(name: str, at: int) -> list[Any]:
            hybrid = [queries[at].tolist(), questions[at]]
            return hybrid if "$2" in STATEMENTS[name] else hybrid[:1] if name == "vector" else hybrid[1:]

        def search(name: str, at: int) -> list[tuple[Any, ...]]:
            return workspace.query(STATEMENTS[name], asked(name, at)).rows

        if update:
            search("hybrid", 0)
            told["update"] = timed(lambda: workspace.query(update))
        told["first"] = timed(lambda: search("hybrid", 0))
        told["resident"], told["peak"] = resident_bytes()
        matrix = np.load(folder / "vectors.npy")
        found = 0
        for at, query in enumerate(queries):
            best = np.argsort(-(matrix @ query), kind="stable")[:10]
            found += len(set(best.tolist()) & {row[0] for row in search("vector", at)})
        told["found"] = found / (10 * len(queries))
        told["brute force"] = median([timed(lambda q=q: np.argpartition(matrix @ q, -10)) for q in queries])  # type: ignore[misc]
        for name in STATEMENTS if not update else ():
            few = range(3 if name == "all rows" else ASKED)
            told[name] = median([timed(lambda n=name, at=at: search(n, at)) for at in few])  # type: ignore[misc]
    return told


def process(*arguments: object) -> dict[str, Any]:
    line = [sys.executable, __file__, "--child", *map(str, arguments)]
    clock = time.perf_counter()
    told: dict[str, Any] = json.loads(subprocess.run(line, check=True, stdout=subprocess.PIPE).stdout)
    return {**told, "whole": 1000 * (time.perf_counter() - clock)}


def report(title: str, told: dict[str, Any]) -> None:
    print(title)
    for name, value in told.items():
        if isinstance(value, list):
            ratio = f"{value[0] / told['brute force'][0]:9.2f} × brute force" if name in STATEMENTS else ""
            print(f"  {name:26}{value[0]:9.1f} ms CPU{value[1]:9.1f} ms{ratio}")
    print(f"  {'resident memory, peak':26}{told['resident'] / 1e6:9.0f} MB    {(told['peak'] or 0) / 1e6:9.0f} MB")
    print(f"  {'of the true best ten':26}{told['found']:9.4f}", flush=True)


def main(*arguments: str) -> None:
    rows = next((int(one) for one in arguments if one.isdecimal()), 100_000)
    address = next((one for one in arguments if "://" in one), None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = address or f"sqlite:///{folder / 'bench.db'}"
        spent = fill(folder, place, rows, random="--random" in arguments)
        print(f"{rows} rows; CREATE INDEX of both columns {spent:.1f} s", flush=True)
        report("a new process", process(folder, place, ""))
        report("another new process", process(folder, place, ""))
        for title, statement in UPDATES.items():
            report(f"UPDATE of {title}, in the same process", process(folder, place, statement))
            report(f"UPDATE of {title}, in a new process", process(folder, place, ""))
        if address:
            from rmem.tables.workspace import Workspace

            with Workspace(address) as workspace:
                workspace.drop_table("docs")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(Path(sys.argv[2]), sys.argv[3], sys.argv[4])))
    else:
        main(*sys.argv[1:])
