"""The MCP Inspector's command line, which is another implementation of the protocol: another language, another SDK.
It is fetched by npm into a temporary cache; without node or the package the tests are skipped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from mcp_clients import ETL, clone

pytestmark = pytest.mark.slow
PACKAGE = "@modelcontextprotocol/inspector@2.12.0"
TOOLS = [
    "connect", "facts", "feedback", "file_history", "forget", "get_memory", "list_recent", "recall", "remember",
    "session_state", "state_fact", "who_knows",
]  # fmt: skip


@pytest.fixture(scope="module")
def npm(tmp_path_factory):
    """A function that runs the inspector."""
    if shutil.which("npx") is None:
        pytest.skip("the MCP Inspector needs npx, which comes with node")
    folder = tmp_path_factory.mktemp("npm")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["npx", "--yes", PACKAGE, "--cli", *words],
            env=os.environ | {"npm_config_cache": str(folder), "HOME": str(folder), "NO_COLOR": "1"},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
        )

    fetched = run("--help")
    if fetched.returncode != 0:
        pytest.skip(f"npm cannot get {PACKAGE}: {fetched.stderr.strip()[-300:]}")
    return run


@pytest.fixture(params=["stdio", "http"])
def inspect(request, npm, tmp_path):
    """A function: what the inspector prints for a method, as a document; each call is a process of its own."""
    if request.param == "stdio":
        target = [sys.executable, "-m", "rmem", "mcp", "--project", str(clone(tmp_path, "ann"))]
        more = ["-e", f"RMEM_HOME={os.environ['RMEM_HOME']}"]
    else:
        server = request.getfixturevalue("server")
        target = [f"{server.url}/workspaces/lab/mcp"]
        token = server.token_for("acme", "lab", "WRITE", member="ann@acme.io")
        headers = [f"Authorization: Bearer {token}", f"X-Rmem-Repository: {ETL}"]
        more = ["--transport", "http", *(part for header in headers for part in ("--header", header))]

    def run(method: str, *options: str, well: bool = True):
        done = npm(*target, *more, "--method", method, *options)
        assert (done.returncode == 0) == well, done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


def call(inspect, tool: str, *arguments: str, well: bool = True):
    given = [part for argument in arguments for part in ("--tool-arg", argument)]
    return inspect("tools/call", "--tool-name", tool, *given, well=well)


def test_the_inspector_lists_calls_and_reads(inspect):
    listed = inspect("tools/list", "--strict")["tools"]  # it would complain of schemas that some clients cannot read
    assert sorted(one["name"] for one in listed) == TOOLS
    assert all(one["annotations"] for one in listed)

    text = "transform_parquet runs out of memory on large files; read it in batches"
    kept = call(inspect, "remember", f"text={text}", "kind=error_fix")["structuredContent"]
    found = call(inspect, "recall", "query=out of memory while reading parquet", "limit=3")["structuredContent"]
    assert found["memories"][0]["id"] == kept["id"]
    assert found["memories"][0]["line"] == f"[error fix] {text}"
    whole = call(inspect, "get_memory", f"id={kept['id']}")["structuredContent"]
    assert (whole["text"], whole["repository"]) == (text, ETL)
    wrong = call(inspect, "recall", "query=x", "limit=500", well=False)
    assert wrong["isError"]
    assert "limit" in wrong["content"][0]["text"]

    uris = {one["uri"] for one in inspect("resources/list")["resources"]}
    assert uris == {"remanence://briefing", f"remanence://memories/{kept['id']}"}
    assert inspect("resources/templates/list")["resourceTemplates"]
    memory = inspect("resources/read", "--uri", f"remanence://memories/{kept['id']}")["contents"][0]["text"]
    assert json.loads(memory)["text"] == text


def test_the_inspector_is_refused_without_a_token(npm, server):
    server.token_for("acme", "lab", "WRITE")
    done = npm(f"{server.url}/workspaces/lab/mcp", "--transport", "http", "--method", "tools/list")
    assert done.returncode != 0
    assert "auth_required" in done.stdout + done.stderr
