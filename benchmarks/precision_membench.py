"""Run PrecisionMemBench, a peer's benchmark of retrieval precision, with its own harness (needs npm).

    git clone https://github.com/tenurehq/precisionMemBench CLONE
    python benchmarks/precision_membench.py CLONE 0.3

35 short notes, 77 questions: does a memory return what answers a question and nothing else? The second argument is the
`min_relevance` of `recall`. The harness sends each note with its user and scope, and asks inside a scope; what it
counts is written to CLONE/test-results/retrieval-report-rmem.json."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from rmem import Brain

_PROVIDER = "rmem"


def main(clone: str, least: str) -> None:
    folder = Path(clone)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = folder / "providers.config.json"
    known = json.loads(config.read_text())
    known[_PROVIDER] = {"envVar": "RMEM_URL", "defaultUrl": "", "seedDelayMs": 0, "supportsUpdate": True}
    config.write_text(json.dumps(known, indent=2))
    server = uvicorn.Server(uvicorn.Config(_service(float(least)), port=port, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    variables = os.environ | {
        "MEMORY_PROVIDER": _PROVIDER,
        "RESEED": "true",
        "RMEM_URL": f"http://127.0.0.1:{port}",
    }
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
    suite = ["npx", "-y", "-p", "node@22", "npx", "ava", "src/retrieval.external.eval.test.ts"]
    subprocess.run(suite, cwd=folder, env=variables, check=False, stdout=subprocess.DEVNULL)
    server.should_exit = True
    report = json.loads((folder / "test-results" / f"retrieval-report-{_PROVIDER}.json").read_text())
    found = report["retrieval"]
    print(f"passed {found['totalPassed']} of {found['totalCases']}, by retrieval {found['activeRetrievalPasses']}")
    print(f"precision {found['meanPrecision']:.2f}, recall {found['meanRecall']:.2f}, p50 {found['p50LatencyMs']} ms")


def _service(least: float) -> FastAPI:
    """Return the three calls that the harness makes, on one Brain."""
    app = FastAPI()
    brains = [Brain(":memory:")]

    @app.post("/add")
    def add(note: dict[str, Any]) -> dict[str, bool]:
        about = note["metadata"]
        brains[0].remember(note["text"], id=about["beliefId"], agent=note["user_id"], tags={"scope": about["scope"]})
        return {"ok": True}

    @app.post("/search")
    def search(asked: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        where = {"agent": asked["user_id"]} | ({"tags": {"scope": asked["scope"]}} if asked.get("scope") else {})
        hits = brains[0].recall(asked["query"], asked["limit"], where=where, min_relevance=least)
        return {"results": [{"id": hit.id, "memory": hit.text, "score": hit.relevance} for hit in hits]}

    @app.delete("/reset")
    def reset() -> dict[str, bool]:
        brains[0].close()
        brains[0] = Brain(":memory:")
        return {"ok": True}

    return app


if __name__ == "__main__":
    main(*sys.argv[1:])
