"""Makes a recall set of commits that is asked 20 questions of its own in each store, and the prompts of
benchmarks/team_prompts that no commit answers.

    python benchmarks/unanswerable.py history.json.gz team.json.gz
    rmem eval recall team.json.gz --reliability relevance.svg

The repositories that are for testing only are left out."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

PROMPTS = Path(__file__).with_name("team_prompts")
TESTING = ("black", "fastify")
OWN = 20


def main(source: str, target: str) -> None:
    given = json.loads(gzip.decompress(Path(source).read_bytes()))
    files = [path for path in sorted(PROMPTS.glob("*.jsonl")) if path.stem not in TESTING]
    lines = [json.loads(line) for path in files for line in path.read_text("utf-8").splitlines()]
    added = [{"question": one["prompt"], "relevant": []} for one in lines if one["kind"] == "nothing"]
    given["name"] = f"{given['name']} with team prompts"
    for store in given["stores"]:
        store["questions"] = [*store["questions"][:OWN], *added]
    Path(target).write_bytes(gzip.compress(json.dumps(given).encode()))


if __name__ == "__main__":
    main(*sys.argv[1:])
