"""A hook never breaks an agent: whatever happens it ends with 0, and what it was told is not lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from rmem import Brain
from rmem.team import outage

PROMPT = {"session_id": "s1", "prompt": "Always run the linter before a commit"}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "memory"))
    monkeypatch.setenv("RMEM_KEEPER_IDLE", "2")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "memory"


def hook(given, agent="claude-code", event="UserPromptSubmit"):
    command = [sys.executable, "-m", "rmem", "hook", agent, event]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)


def wait_for(what, patience=30.0):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def preferences(home):
    with Brain(home / "memories.db") as brain:
        return [memory.text for memory in brain.memories({"type": "preference"})]


def daemons():
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "rmem.team.daemon" in (process.info["cmdline"] or []):
            with suppress(psutil.NoSuchProcess):
                if process.environ().get("RMEM_HOME") == os.environ["RMEM_HOME"]:
                    found.append(process)
    return found


@pytest.mark.parametrize("given", ["", "{", "[1, 2]", "null", '"text"', "\x00\x01", '{"prompt": {"a": 1}}'])
def test_broken_input_ends_well_and_prints_nothing(home, given):
    done = hook(given)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_went_wrong_is_a_line_in_the_log(home):
    hook("{")
    assert "UserPromptSubmit" in (home / "team" / "hooks.log").read_text()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")
def test_what_a_hook_leaves_is_its_users_alone(home):
    before = os.umask(0)
    try:
        hook(json.dumps(PROMPT))
        hook("{")
    finally:
        os.umask(before)
    found = [path for path in (home, *home.rglob("*")) if path.exists()]
    assert any(path.name == "hooks.log" for path in found)
    assert {path.name: oct(path.stat().st_mode) for path in found if path.stat().st_mode & 0o077} == {}


def test_an_event_that_nobody_knows_is_passed_over(home):
    done = hook(json.dumps(PROMPT), event="SomethingNew")
    assert (done.returncode, done.stdout) == (0, "")
    assert not (home / "team" / "spool").exists()


def test_a_home_that_cannot_be_written_breaks_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "file" / "inside"))
    done = hook(json.dumps(PROMPT))
    assert (done.returncode, done.stdout) == (0, "")


def test_what_a_hook_was_told_is_kept_in_the_background(home, tmp_path):
    hook(json.dumps({**PROMPT, "cwd": str(tmp_path)}))
    wait_for(lambda: not list((home / "team" / "spool").glob("*.json")))
    assert preferences(home) == ["Always run the linter before a commit"]


def test_a_repository_can_opt_out(home, tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".rmem.toml").write_text("capture = false\nrecall = false\n")
    hook(json.dumps({**PROMPT, "cwd": str(tmp_path)}))
    assert not list((home / "team" / "spool").glob("*.json"))
    assert not (home / "memories.db").exists()


def test_a_killed_daemon_loses_and_doubles_nothing(home, tmp_path):
    for number in range(6):
        said = f"Always use the port {5000 + number} for service {number}"
        told = {"session_id": "s1", "cwd": str(tmp_path), "prompt": said}
        hook(json.dumps(told), agent="claude-code")
        if number in (1, 3):
            for process in daemons():
                os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: not list((home / "team" / "spool").glob("*.json")))
    wait_for(lambda: not daemons())
    with Brain(home / "memories.db") as brain:
        found = brain.memories({"type": "preference"}, limit=None)
    assert len(found) == 6
    assert all(memory.contents["count"] == 1 for memory in found)


def test_there_is_one_daemon_however_many_hooks_there_are(home, tmp_path):
    told = json.dumps({"session_id": "s1", "cwd": str(tmp_path), "stop_hook_active": False})
    command = [sys.executable, "-m", "rmem", "hook", "claude-code", "Stop"]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(6)]
    for process in running:
        process.communicate(told, timeout=60)
    wait_for(lambda: len(daemons()) == 1)
    assert [process.returncode for process in running] == [0] * 6


def test_help_teaches(home):
    done = subprocess.run([sys.executable, "-m", "rmem", "hook", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "rmem install" in done.stdout


def test_hooks_do_not_wait_for_a_store_that_cannot_be_opened(home, tmp_path):
    (home / "team").mkdir(parents=True)
    (home / "memories.db").mkdir()  # no store can be opened here
    hook(json.dumps({**PROMPT, "cwd": str(tmp_path)}))
    wait_for(lambda: outage.read() is not None)
    wait_for(lambda: "daemon: events wait: " in (home / "team" / "hooks.log").read_text())
    waited = []
    for number in range(2, 7):  # on a busy machine one may have to wait for the daemon, but not all
        before = (home / "team" / "hooks.log").read_text()
        done = hook(json.dumps({**PROMPT, "cwd": str(tmp_path), "session_id": f"s{number}"}))
        assert (done.returncode, done.stdout) == (0, "")
        waited.append((home / "team" / "hooks.log").read_text() != before)
    assert not all(waited), "the hooks gave up waiting"
    assert len(list((home / "team" / "spool").glob("*.json"))) == 6
    (home / "memories.db").rmdir()
    wait_for(lambda: not list((home / "team" / "spool").glob("*.json")))
    assert preferences(home) == ["Always run the linter before a commit"]
