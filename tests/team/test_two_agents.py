"""Two coding agents, end to end: one fails, edits, succeeds; another, on another clone, meets a variant of it and
is handed the fix before its first action. Everything runs as it does for a user: real hook commands with the events of
each tool, the real daemon, the real MCP server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time

import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from recorded_events import PROMPT, TOLD, Story

ERROR = (
    "Exit code 1\nE   MemoryError: Unable to allocate 47.3 GiB for transform_parquet\n"
    "FAILED tests/test_etl.py::test_large - MemoryError\n1 failed in 2.31s"
)
VARIANT = "Nightly ETL dies: MemoryError: Unable to allocate 12.0 GiB in transform_parquet. Find out why and fix it"
PAIRS = [
    ("claude-code", "codex"), ("codex", "cursor"), ("cursor", "gemini"), ("gemini", "opencode"),
    ("opencode", "copilot"), ("copilot", "claude-code"),
]  # fmt: skip


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def pair(request):
    """Both tests of a pair come one after the other, while the daemon runs."""
    return request.param


@pytest.fixture(scope="module")
def homes():
    """Agents, and the homes in which they have learned the fix."""
    return {}


@pytest.fixture
def taught(homes, tmp_path_factory, monkeypatch):
    """A function: the home of somebody whose agent has learned the fix. Its daemon ends soon after the test."""

    def home_of(agent):
        is_new = agent not in homes
        home = homes.setdefault(agent, tmp_path_factory.mktemp("home"))
        monkeypatch.setenv("RMEM_HOME", str(home / "memory"))
        monkeypatch.setenv("RMEM_KEEPER_IDLE", "3")
        monkeypatch.setenv("HOME", str(home))
        if is_new:
            for event, payload in TOLD[agent](
                story("s-1", clone(home, "ann"), "Make the import work for files of 50 GB")
            ):
                hook(agent, event, payload)
            settled(home)
        return home

    return home_of


def clone(folder, name):
    path = folder / name
    path.mkdir()
    for words in (
        "init -q -b main",
        "remote add origin git@github.com:acme/etl.git",
        f"config user.email {name}@acme.io",
    ):
        subprocess.run(["git", *words.split()], cwd=path, check=True)
    return path


def hook(agent, event, payload):
    """Run the real command; what it printed."""
    command = [sys.executable, "-m", "rmem", "hook", agent, event]
    done = subprocess.run(command, input=json.dumps(payload), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def settled(home, patience=30.0):
    """Wait until the spool is drained."""
    spool = home / "memory" / "team" / "spool"
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if not list(spool.glob("*.json")):
            return
        time.sleep(0.05)
    raise AssertionError(f"the spool was not drained: {(home / 'memory' / 'team' / 'hooks.log').read_text()}")


def story(session, cwd, task):
    return Story(
        session=session,
        cwd=str(cwd),
        task=task,
        command="pytest tests/test_etl.py",
        error=ERROR,
        file=str(cwd / "etl" / "transform.py"),
        old="pd.read_parquet(path)",
        new="ds.dataset(path).to_batches(batch_size=10000)",
        passed="1 passed in 2.02s",
    )


def test_the_second_agent_is_handed_the_fix_before_its_first_action(taught, tmp_path, pair):
    first, second = pair
    home, two = taught(first), clone(tmp_path, "bob")
    told = ""
    for event, payload in TOLD[second](story("s-2", two, VARIANT)):
        printed = hook(second, event, payload)
        if event == PROMPT[second]:
            told = printed
            break  # before its first action
    assert "pd.read_parquet(path)" in told, (home / "memory" / "team" / "hooks.log").exists()
    assert "to_batches(batch_size=10000)" in told
    assert "ann@acme.io" in told
    json.loads(told)


def test_the_fix_arrives_when_the_same_command_fails_for_another_agent(taught, tmp_path, pair):
    first, second = pair
    taught(first)
    two = clone(tmp_path, "bob")
    printed = {}
    task = "Rename the headings of the README, then check that everything is still green"
    for event, payload in TOLD[second](story("s-3", two, task)):
        printed[len(printed)] = hook(second, event, payload)
        if len(printed) == 3:
            break  # the command has failed; its next action has not come
    if second == "cursor":
        assert printed[2] == ""  # takes nothing in after a command
        return
    assert "to_batches" not in printed[0] + printed[1]
    assert "to_batches(batch_size=10000)" in printed[2]
    json.loads(printed[2])


def test_a_command_that_succeeds_is_told_nothing(taught, tmp_path):
    taught("claude-code")
    two = clone(tmp_path, "bob")
    ran = {"session_id": "s-4", "cwd": str(two), "tool_name": "Bash", "tool_input": {"command": "cat build.log"}}
    shown = {"stdout": ERROR, "stderr": "", "interrupted": False}
    assert hook("claude-code", "PostToolUse", {**ran, "tool_use_id": "1", "tool_response": shown}) == ""


def test_the_same_is_not_told_twice_in_a_session(taught, tmp_path):
    taught("claude-code")
    two = clone(tmp_path, "bob")
    asked = {"session_id": "s-5", "cwd": str(two), "prompt": VARIANT}
    assert "to_batches" in hook("claude-code", "UserPromptSubmit", asked)
    assert "to_batches" not in hook("claude-code", "UserPromptSubmit", {**asked, "prompt": VARIANT + ", please"})


def test_an_agent_can_search_for_more_by_mcp(taught, tmp_path):
    taught("codex")
    two = clone(tmp_path, "bob")

    async def ask():
        arguments = ["-m", "rmem", "mcp", "--project", str(two)]
        server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        async with Client(stdio_client(server)) as client:
            found = await client.call_tool(
                "recall", {"query": "out of memory while reading parquet", "kinds": ["error_fix"]}
            )
            history = await client.call_tool("file_history", {"path": "etl/transform.py"})
            experts = await client.call_tool("who_knows", {"topic": "MemoryError parquet"})
            best = await client.call_tool("get_memory", {"id": found.structured_content["memories"][0]["id"]})
            return best.structured_content, history.structured_content, experts.structured_content

    best, history, experts = asyncio.run(ask())
    assert best["kind"] == "error_fix"
    assert best["author"] == "ann@acme.io"
    assert best["files"] == ["etl/transform.py"]
    assert any(one["line"].startswith("[error fix]") for one in history["memories"])
    assert experts["experts"][0]["author"] == "ann@acme.io"
