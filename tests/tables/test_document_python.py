"""The Python code of the two documents about tables runs as it is written, with one import changed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import rmem
from rmem import Client
from rmem.embed import embedder_for

DEBUGGING = '''
import os
import json
import time
import requests
from datetime import datetime
from rmem import Client

# --- Embedding via OpenRouter (google/gemini-embedding-001, ctx 20K) ---
OPENROUTER_API_KEY = os.environ["OPENROUTER_API_KEY"]

def embed(texts):
    """Generate embeddings using Google Gemini Embedding 001 via OpenRouter."""
    res = requests.post(
        "https://openrouter.ai/api/v1/embeddings",
        headers={"Authorization": f"Bearer {OPENROUTER_API_KEY}"},
        json={"model": "google/gemini-embedding-001", "input": texts},
    )
    return [item["embedding"] for item in res.json()["data"]]

# 1. Setup Client (workspace per agent team is recommended)
client = Client()

# 2. Store a debugging trace after resolving an issue
task = "Fix OOM crash in data pipeline when processing 50GB parquet files"
outcome = (
    "Root cause: pandas.read_parquet() loads entire file into memory. "
    "Fix: switched to pyarrow.dataset with batch_size=10000 and row-group "
    "filtering. Peak RAM dropped from 48GB to 3.2GB. Also added "
    "memory_profiler guard to CI to catch regressions."
)
error_trace = "MemoryError: Unable to allocate 47.3 GiB, triggered in ETL step 3 (transform_parquet)"
tools_used = "pyarrow.dataset, memory_profiler, htop"
metadata = {
    "agent_id": "swe-01",
    "repo": "data-pipeline",
    "error_type": "MemoryError",
    "files_changed": ["etl/transform.py", "ci/memory_guard.yml"],
    "resolution_time_min": 45,
}
task_emb = embed([task])[0]

client.ingest("debug_memory", {
    "task": [task],
    "outcome": [outcome],
    "error_trace": [error_trace],
    "tools_used": [tools_used],
    "metadata": [json.dumps(metadata)],
    "timestamp": [datetime.now().isoformat()],
    "embedding": [task_emb],
})

# 3. Later: a different agent hits a similar issue and searches the team memory
new_bug = "ETL job killed by OOM when loading large CSV exports"
search_emb = embed([new_bug])[0]
emb_pg = "{" + ",".join(str(x) for x in search_emb) + "}"

results = client.query("""
    SELECT task, outcome, error_trace, tools_used, metadata,
           (embedding, task)::deeplake_hybrid_record <#>
           deeplake_hybrid_record($1::float4[], $2, 0.5, 0.5) AS score
    FROM debug_memory
    ORDER BY score DESC
    LIMIT 3
""", (emb_pg, new_bug))

# 4. Use the recalled memory to inform the fix
if results:
    best = results[0]
    print(f"Similar past issue: {best['task']}")
    print(f"Resolution: {best['outcome']}")
    print(f"Tools that helped: {best['tools_used']}")
    # The agent now has context: "last time we hit OOM on large files,
    # we switched to streaming reads with pyarrow.dataset"
else:
    print("No prior experience found. Starting from scratch.")
'''

CODING = '''
import rmem as deeplake

# Persistent coding agent memory
memory = deeplake.open("al://my-org/coding-agent-memory")

memory.add_column("content", deeplake.types.Text())
memory.add_column("embedding", deeplake.types.Embedding(1536))
memory.add_column("memory_type", deeplake.types.Text())
memory.add_column("repo", deeplake.types.Text())
memory.add_column("file_path", deeplake.types.Text())
memory.add_column("session_id", deeplake.types.Text())
memory.add_column("timestamp", deeplake.types.Int64())

# Before starting work, retrieve relevant context
def get_relevant_memory(repo: str, task_description: str):
    return memory.query("""
        SELECT content, memory_type, file_path
        FROM coding_agent_memory
        WHERE repo = :repo
        ORDER BY cosine_similarity(embedding, :q)
        LIMIT 15
    """, {"repo": repo, "q": embed(task_description)})

# After completing a task, persist what was learned
def save_learning(repo: str, session_id: str, learnings: list):
    for item in learnings:
        memory.append({
            "content": item["content"],
            "embedding": embed(item["content"]),
            "memory_type": item["type"],  # "architecture", "convention", "error_fix"
            "repo": repo,
            "file_path": item.get("file_path", ""),
            "session_id": session_id,
            "timestamp": int(time.time())
        })
'''


class Embeddings:
    """Answers `POST /embeddings` with vectors of the static embedder."""

    def __init__(self) -> None:
        self.keys = []
        self._embedder = embedder_for("static")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.keys.append(self.headers["Authorization"])
                rows = outer._embedder.embed(asked["input"]).tolist()
                body = json.dumps({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/embeddings"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def embeddings():
    server = Embeddings()
    yield server
    server.close()


@pytest.fixture(params=["embedded", "server"])
def place(request, monkeypatch, tmp_path):
    """Where a plain `Client()` keeps its tables: told by the environment, as a user would."""
    if request.param == "embedded":
        monkeypatch.setenv("RMEM_HOME", str(tmp_path))
        return request.param
    server = request.getfixturevalue("table_server")
    monkeypatch.setenv("DEEPLAKE_API_URL", server.url)
    monkeypatch.setenv("DEEPLAKE_API_KEY", server.token)
    monkeypatch.setenv("DEEPLAKE_WORKSPACE", server.new_workspace())
    return request.param


def test_the_debugging_memory(place, embeddings, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENROUTER_API_KEY", "a-key")
    address = "https://openrouter.ai/api/v1/embeddings"
    assert address in DEBUGGING
    script = tmp_path / "debugging.py"
    script.write_text(DEBUGGING.replace(address, embeddings.url), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == (
        "Similar past issue: Fix OOM crash in data pipeline when processing 50GB parquet files"
    )
    assert "Tools that helped: pyarrow.dataset, memory_profiler, htop" in done.stdout
    assert set(embeddings.keys) == {"Bearer a-key"}
    with Client() as client:
        row = client.query("SELECT * FROM debug_memory")[0]
        assert json.loads(row["metadata"])["agent_id"] == "swe-01"
        assert len(row["embedding"]) == 256


def test_the_memory_of_coding_agents(place, monkeypatch):
    static = embedder_for("static")

    def embed(text):
        return [float(value) for value in static.embed([text])[0]] + [0.0] * (1536 - 256)

    if place == "server":
        server_workspace(monkeypatch)
    space = {"embed": embed, "time": time}
    exec(compile(CODING, "coding.py", "exec"), space)
    space["save_learning"](
        "shop",
        "s-1",
        [
            {"content": "Money is kept in cents, never in floats", "type": "convention"},
            {
                "content": "The checkout test fails when the clock is near midnight",
                "type": "error_fix",
                "file_path": "t.py",
            },
            {"content": "Services talk through a message queue", "type": "architecture"},
        ],
    )
    space["save_learning"]("other", "s-2", [{"content": "Checkout is flaky here as well", "type": "error_fix"}])
    found = space["get_relevant_memory"]("shop", "a flaky test of checkout at midnight")
    assert len(found) == 3
    assert found[0] == {
        "content": "The checkout test fails when the clock is near midnight",
        "memory_type": "error_fix",
        "file_path": "t.py",
    }
    assert len(space["memory"]) == 4
    space["memory"].close()
    with rmem.open("rmem://my-org/coding-agent-memory") as again:
        assert again[0]["content"] == "Money is kept in cents, never in floats"
        assert again[0]["timestamp"] <= time.time()


def server_workspace(monkeypatch):
    """A workspace of the name that the document uses."""
    from rmem.tables.remote import RemoteWorkspace

    with Client() as client:
        assert isinstance(client._tables, RemoteWorkspace)
        link, headers = client._tables._link, client._tables._headers("application/json", {}, True)
        link.request("POST", "/workspaces", b'{"name": "my-org"}', headers, None)
    monkeypatch.delenv("DEEPLAKE_WORKSPACE")
