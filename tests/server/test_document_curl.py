"""The shell commands of the public document on agent memory, as they are written there, against our server.

Only the address of the API and of the embeddings are ours; the embeddings come from a real HTTP server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "embed"))
from embedding_server import Answer, EmbeddingServer

HELPER, CREATE, INSERT, SEARCH = re.split(
    r"^(?=# [124]\.)", Path(__file__).with_name("document_curl.sh").read_text(encoding="utf-8"), flags=re.MULTILINE
)

VECTORS = {"Fix": [0.9, 0.1, 0.3, 0.2], "ETL": [0.8, 0.2, 0.4, 0.1]}


@pytest.fixture
def embeddings():
    server = EmbeddingServer()

    def answer(request: dict) -> Answer:
        data = [{"index": at, "embedding": VECTORS[text.split()[0]]} for at, text in enumerate(request["input"])]
        return Answer({"data": data})

    server.script = [answer] * 4
    yield server
    server.close()


@pytest.fixture
def shell(server, admin, embeddings):
    for tool in ("bash", "curl", "jq"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    environment = {
        **os.environ,
        "API_URL": server.url,
        "EMBEDDINGS_URL": embeddings.url,
        "OPENROUTER_API_KEY": "any",
        "DEEPLAKE_API_KEY": server.first_token,
        "DEEPLAKE_ORG_ID": admin.get("/me").json()["organization"]["id"],
        "DEEPLAKE_WORKSPACE": "default",
        "NO_PROXY": "127.0.0.1",
    }

    def run(script: str) -> dict:
        done = subprocess.run(["bash", "-euc", HELPER + script], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_the_commands_of_the_document_work_as_written(shell, admin):
    for _ in range(2):  # IF NOT EXISTS
        made = shell(CREATE)
        assert "error" not in made, made
    written = shell(INSERT)
    assert written.get("row_count") == 1, written
    found = shell(SEARCH)
    assert found["columns"] == ["task", "outcome", "error_trace", "tools_used", "score"]
    assert found["row_count"] == 1
    ((task, outcome, trace, tools, score),) = found["rows"]
    assert task == "Fix OOM crash in data pipeline when processing 50GB parquet files"
    assert "pyarrow.dataset" in outcome
    assert trace == "MemoryError: Unable to allocate 47.3 GiB"
    assert tools == "pyarrow.dataset, memory_profiler, htop"
    assert 0 < score <= 1
    stored = {"query": "SELECT id, metadata, embedding FROM debug_memory"}
    row = admin.post("/workspaces/default/tables/query", json=stored).json()["rows"][0]
    assert row[0] == 1
    assert row[1] == {"agent": "swe-01", "error_type": "MemoryError"}
    assert row[2] == pytest.approx(VECTORS["Fix"])


def test_a_token_of_somebody_who_may_only_read_cannot_insert(shell, server, monkeypatch):
    shell(CREATE)
    reader = server.token_for("default", "default", "READ")
    refused = shell(f"export DEEPLAKE_API_KEY={reader}\n{INSERT}")
    assert refused == {"error": "this needs the role WRITE; your role is READ"}
    assert shell(f"export DEEPLAKE_API_KEY={reader}\n{SEARCH}")["rows"] == []
