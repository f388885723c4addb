"""A team's debugging memory as a table: traces of many agents, found by meaning and by words in one SQL statement.

swe-01 ingests a trace among those of its team; swe-02 meets a similar bug and asks. `python examples/debug_memory.py`
uses a temporary file; with `--server URL` (and RMEM_API_KEY) the same code runs against `rmem serve`. Ends with 1
if the fix is not the first row.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from team_traces import TRACES

from rmem import Client
from rmem.embed import embedder_for

FIX = {
    "task": "Fix OOM crash in data pipeline when processing 50GB parquet files",
    "outcome": (
        "Root cause: pandas.read_parquet() loads entire file into memory. Fix: switched to pyarrow.dataset with "
        "batch_size=10000 and row-group filtering. Peak RAM dropped from 48GB to 3.2GB."
    ),
    "error_trace": "MemoryError: Unable to allocate 47.3 GiB, triggered in ETL step 3 (transform_parquet)",
    "tools_used": ["pyarrow.dataset", "memory_profiler", "htop"],
    "repo": "data-pipeline",
}
QUESTION = "MemoryError: ETL job killed by OOM when loading large CSV exports"

SIMILAR = """
    SELECT task, outcome, metadata->>'agent' AS agent,
           (embedding, trace) <#> deeplake_hybrid_record($1::float4[], $2, 0.5, 0.5) AS score
    FROM debug_memory
    ORDER BY score DESC
    LIMIT 3
"""


def learn(client: Client) -> None:
    """What the team knows: forty older traces, and the one of swe-01."""
    known = [*TRACES, (0, "swe-01", FIX)]
    # Found is what is in `trace`: the whole story, for nobody asks in the words of a title.
    traces = [f"{trace['task']}. {trace['error_trace']} {trace['outcome']}" for _, _, trace in known]
    now = datetime.now(UTC)
    client.ingest(
        "debug_memory",
        {
            "task": [trace["task"] for _, _, trace in known],
            "outcome": [trace["outcome"] for _, _, trace in known],
            "trace": traces,
            "metadata": [{"agent": agent, "repo": trace["repo"]} for _, agent, trace in known],
            "happened": [now - timedelta(days=days) for days, _, _ in known],
            "embedding": embedder_for("static").embed(traces),
        },
        index=["trace", "embedding"],
    )


def ask(client: Client) -> bool:
    """What swe-02 finds, and whether the fix comes first."""
    vector = embedder_for("static").embed([QUESTION])[0]
    rows = client.query(SIMILAR, [vector, QUESTION])
    print(f"{QUESTION}\n")
    for row in rows:
        print(f"{row['score']:.2f}  {row['task']} ({row['agent']})\n      {row['outcome']}")
    per_repo = client.query(
        "SELECT metadata->>'repo' AS repo, count(*) AS traces FROM debug_memory GROUP BY 1 ORDER BY traces DESC LIMIT 3"
    )
    print("\nMost traces come from " + ", ".join(f"{row['repo']} ({row['traces']})" for row in per_repo))
    return bool(rows) and rows[0]["task"] == FIX["task"]


def main() -> int:
    choice = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice.add_argument("--server", metavar="URL", help="use a server instead of a temporary file")
    server = choice.parse_args().server
    with (
        tempfile.TemporaryDirectory() as folder,
        Client(api_url=server) if server else Client(path=Path(folder) / "team.db") as client,
    ):
        learn(client)
        return 0 if ask(client) else 1


if __name__ == "__main__":
    sys.exit(main())
