"""`rmem forget --subject` removes somebody from the states of sessions, waiting events and logs, too."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from rmem import Brain
from rmem.team import paths, spool
from rmem.team.events import Event, EventKind
from rmem.team.hook import note
from rmem.team.sessions import Sessions, SessionState


def rmem(*words):
    command = [sys.executable, "-m", "rmem", *words, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


def somewhere(word: bytes) -> list[str]:
    home = paths.folder().parent
    return [str(path) for path in home.rglob("*") if path.is_file() and word in path.read_bytes()]


@pytest.fixture
def filled():
    sessions = Sessions()
    naming = SessionState("claude-code", "s-1", task="Call Zelda Quux back", repository="github.com/acme/etl")
    naming.prompts = ["Call Zelda Quux back", "Run the tests"]
    naming.edits = [{"file": "a.py", "change": "- owner = 'Zelda Quux'"}, {"file": "b.py", "change": "- x"}]
    naming.failures = {"make": {"command": "make", "error": "zelda quux: not found"}, "ls": {"error": "no"}}
    sessions.save(naming)
    sessions.save(SessionState("claude-code", "s-2", task="Make it faster"))
    for number, said in enumerate(("Always ask Zelda Quux first", "Always run the linter")):
        spool.put(Event(str(number), "codex", EventKind.PROMPT, "s-3", "", time.time(), prompt=said))
    broken = paths.spool() / "0-0.json"
    broken.write_text('{"prompt": "Zelda Quux')
    spool.set_aside(broken, "ValueError: Zelda Quux")
    note("codex prompt: Zelda Quux is not a command")
    note("codex prompt: no such command")
    paths.last_capture().write_text('{"time": 1.0, "agent": "codex", "cwd": "/srv/zelda quux"}')
    with Brain(privacy="default") as brain:
        brain.remember("Zelda Quux has the keys", id="m1")
        brain.remember("The keys are in the safe", id="m2")


def test_somebody_is_gone_from_sessions_and_events_and_others_stay(filled):
    told = rmem("forget", "--subject", "Zelda Quux", "--dry-run")
    assert told == {"dry_run": True, "memories": [{"id": "m1"}], "sessions": 1, "events": 2, "lines": 2}
    assert len(somewhere(b"Zelda")) > 3
    told = rmem("forget", "--subject", "Zelda Quux", "--yes")
    assert told == {"dry_run": False, "memories": [{"id": "m1"}], "sessions": 1, "events": 2, "lines": 2}
    assert somewhere(b"Zelda") + somewhere(b"zelda") == []
    state = Sessions().load("claude-code", "s-1")
    assert (state.task, state.prompts, state.repository) == ("", ["Run the tests"], "github.com/acme/etl")
    assert [edit["file"] for edit in state.edits] == ["b.py"]
    assert list(state.failures) == ["ls"]
    assert Sessions().load("claude-code", "s-2").task == "Make it faster"
    assert len(spool.waiting()) == 1
    assert spool.unusable() == []
    assert paths.log().read_text().endswith("codex prompt: no such command\n")


@pytest.mark.parametrize("subject", ["claude-code", "s-1"])
def test_what_an_agent_or_a_session_did_goes_as_a_whole(filled, subject):
    rmem("forget", "--subject", subject, "--yes")
    assert Sessions().find("s-1") is None
    assert (Sessions().find("s-2") is None) == (subject == "claude-code")
    assert len(spool.waiting()) == 2


def test_a_home_without_a_team_memory_stays_without_one(tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "new"))
    with Brain() as brain:
        brain.remember("Zelda Quux has the keys", id="m1")
    assert rmem("forget", "--subject", "Zelda Quux", "--yes")["memories"] == [{"id": "m1"}]
    assert not (tmp_path / "new" / "team").exists()


def test_two_processes_change_one_session_one_after_the_other(tmp_path):
    """The daemon and `rmem forget` do not overwrite each other."""
    code = """
import sys, time
from rmem.team.sessions import Sessions
for n in range(20):
    with Sessions().changing("codex", "s-1") as state:
        time.sleep(0.002)
        state.requests = [*state.requests, f"{sys.argv[1]}-{n}"]
"""
    running = [subprocess.Popen([sys.executable, "-c", code, name]) for name in ("one", "two")]
    assert [process.wait(60) for process in running] == [0, 0]
    assert len(Sessions().load("codex", "s-1").requests) == 40
