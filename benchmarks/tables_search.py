"""What search in SQL costs: a table of texts and 256 numbers each, hybrid, vector and word searches.

    python benchmarks/tables_search.py [rows] [postgresql://…]

Prints milliseconds of this process's CPU, and of the clock, for each statement with ORDER BY … LIMIT 10."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rmem.tables.workspace import Workspace
from rmem.testing.synthetic import clustered_vectors, synthetic_memories, synthetic_questions

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


def fill(workspace: Workspace, rows: int) -> list[list[float]]:
    """The table, and vectors near some of its own."""
    workspace.create_table("docs", {"id": "BIGINT", "repo": "TEXT", "body": "TEXT", "e": f"EMBEDDING({DIMENSION})"})
    texts = [str(memory["text"]) for memory in synthetic_memories(rows)]
    queries = []
    for part, start in enumerate(range(0, rows, BATCH)):
        numbers = list(range(start, min(rows, start + BATCH)))
        vectors = clustered_vectors(len(numbers), DIMENSION, part=part)
        workspace.insert(
            "docs",
            {
                "id": numbers,
                "repo": [f"r{number % 100}" for number in numbers],
                "body": texts[start : start + BATCH],
                "e": list(vectors),
            },
        )
        queries += list(vectors[: ASKED // 2])
    rng = np.random.default_rng(1)
    return [(query + 0.05 * rng.standard_normal(DIMENSION)).tolist() for query in queries[:ASKED]]


def timed(workspace: Workspace, statement: str, params: list[list[Any]]) -> tuple[float, float]:
    """Milliseconds of CPU and of the clock for one statement."""
    workspace.query(statement, params[0])
    cpu, clock = time.process_time(), time.perf_counter()
    for values in params:
        workspace.query(statement, values)
    return tuple(1000 * spent / len(params) for spent in (time.process_time() - cpu, time.perf_counter() - clock))  # type: ignore[return-value]


def main(rows: int = 100_000, address: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder, Workspace(address or Path(folder) / "bench.db") as workspace:
        queries = fill(workspace, rows)
        questions = synthetic_questions(ASKED)
        cpu, clock = time.process_time(), time.perf_counter()
        workspace.query(STATEMENTS["hybrid"], [queries[0], questions[0]])
        print(f"{rows} rows; first search {time.process_time() - cpu:.1f} s CPU, {time.perf_counter() - clock:.1f} s")
        for name, statement in STATEMENTS.items():
            if "$2" in statement:
                params = [[query, question] for query, question in zip(queries, questions, strict=False)]
            else:
                params = [[value] for value in (queries if name == "vector" else questions)]
            cpu, clock = timed(workspace, statement, params[: 5 if name == "all rows" else ASKED])
            print(f"{name:24}{cpu:9.1f} ms CPU{clock:9.1f} ms")
        if address:
            workspace.drop_table("docs")


if __name__ == "__main__":
    main(*(int(argument) if argument.isdecimal() else argument for argument in sys.argv[1:]))  # type: ignore[arg-type]
