"""The public `deeplake` package's Client, unchanged, against our server."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("public_sdk_child.py")


@pytest.fixture(scope="session")
def python_with_the_sdk(tmp_path_factory) -> str:
    """An interpreter that has the package: this one, or one of a folder that it is installed into."""
    if importlib.util.find_spec("deeplake") is not None:
        return sys.executable
    folder = tmp_path_factory.mktemp("sdk")
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    done = subprocess.run([python, "-m", "pip", "install", "-q", "deeplake>=4.7,<5"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the package cannot be installed here: {done.stderr.strip()[-200:]}")
    return python


def test_the_documented_calls_work(server, admin, python_with_the_sdk):
    done = subprocess.run(
        [python_with_the_sdk, str(CHILD), server.url, server.first_token],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["org"] == admin.get("/me").json()["organization"]["id"]
    assert (told["created"], told["again"]) == (True, False)
    assert "already exists" in told["exists"]
    assert "already has a 'bm25' index" in told["conflict"]
    assert told["tables"] == ["docs"]
    assert told["rows"] == [{"id": 1, "body": "rename a file"}, {"id": 2, "body": "read in batches"}]
    assert told["json"] == [{"n": "0"}, {"n": "1"}, {"n": "2"}]
    assert told["nearest"] == [0, 2]
    assert told["words"] == [0]
    assert told["built"] == [{"id": 1, "body": "rename a file"}]
    assert set(told["indexes"]) >= {"idx_docs_body", "idx_docs_id", "idx_docs_vec"}
    assert told["left"] == []
    assert "docs" in told["missing"] or "Not found" in told["missing"]
    assert "Forbidden" in told["other org"]
    assert (told["ingested"]["row_count"], told["appended"]["row_count"]) == (1, 1)
    assert [row["task"][:7] for row in told["ingested rows"]] == ["Fix OOM", "another"]
    assert told["ingested rows"][0]["metadata"] in ({"agent": "swe-01"}, '{"agent": "swe-01"}')
    assert told["ingested rows"][0]["embedding"] == told["vector"] == [0.25, 0.5, 1.0]
    assert told["hybrid"] == told["opened"][0]
    assert set(told["described"]) == {"task", "outcome", "metadata", "embedding"}
    assert told["described"]["task"]["type"].startswith("text")
    assert told["opened"][1] == "another"
    assert "data must hold JSON" in told["refused by the table"]
    assert told["strict"] == [{"n": 0}]
    assert told["tables at the end"] == ["debug_memory", "strict"]
