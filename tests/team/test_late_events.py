"""An event that is stored late changes nothing of what is told: a question waits for the events before it, and an end
that comes after the next session's start is not the last work."""

from __future__ import annotations

import itertools
import subprocess
import threading
import time

import pytest
from recorded_events import TOLD, Story

from rmem import Brain
from rmem.team import event_processor, paths, spool
from rmem.team.briefing import Briefing
from rmem.team.capture import Capture
from rmem.team.daemon import Daemon
from rmem.team.daemon_client import call
from rmem.team.dialects import dialect
from rmem.team.events import Event, EventKind
from rmem.team.sessions import Sessions

IMPORT = "Make the import work for files of 50 GB"
ERROR = (
    "E   MemoryError: Unable to allocate 47.3 GiB for transform_parquet\n"
    "FAILED tests/test_etl.py::test_large - MemoryError\n1 failed in 2.31s"
)
NUMBERS = itertools.count()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "etl"
    path.mkdir()
    for words in ("init -q", "remote add origin git@github.com:acme/etl.git", "config user.email ann@acme.io"):
        subprocess.run(["git", *words.split()], cwd=path, check=True)
    return path


def events(agent, session, folder, task=IMPORT):
    story = Story(
        session, str(folder), task, "pytest tests/test_etl.py", ERROR, str(folder / "transform.py"), "read()",
        "batch()", "1 passed in 2.02s",
    )  # fmt: skip
    return [dialect(agent).read(name, payload) for name, payload in TOLD[agent](story)]


@pytest.fixture
def brain(tmp_path):
    with Brain(tmp_path / "team.db") as brain:
        yield brain


@pytest.fixture
def daemon(folder, monkeypatch):
    monkeypatch.setattr(event_processor, "_CATCHING_UP", 60.0)  # on a machine that is busy with other things
    one = Daemon(idle=60.0)
    thread = threading.Thread(target=one.run, daemon=True)
    thread.start()
    until(lambda: paths.socket().exists())
    yield one
    one._over.set()
    thread.join(60)


def until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("late", [1, 2, 3, 7])
@pytest.mark.parametrize("agents", [("opencode", "copilot"), ("claude-code", "claude-code")], ids="-".join)
def test_a_question_is_answered_as_if_the_events_before_it_had_been_stored_at_once(daemon, folder, agents, late):
    """`/clear` of Claude Code ends a session and starts another in the same moment; a busy machine stores late."""
    before, after = events(agents[0], "s-1", folder), events(agents[1], "s-2", folder, "Rename the headings")
    for event in before[:-late]:
        spool.put(event)
    until(lambda: not spool.waiting())
    for event in before[-late:]:
        spool.put(event)
    told = []
    for event in after[:3]:
        spool.put(event)
        told.append(call(event, 60, 60))
    start, prompt, failure = told
    assert "Fixed: MemoryError" in start
    assert "Still failing" not in start
    assert "Known to fail" not in start
    assert prompt == ""
    assert "`read()` → `batch()`" in failure


def test_hooks_that_overtake_each_other_are_stored_in_the_order_of_their_events(folder, brain):
    """OpenCode does not wait for most hooks; its plugin says when each event was."""
    story = Story(
        "s-1", str(folder), IMPORT, "pytest tests/test_etl.py", ERROR, str(folder / "transform.py"), "read()",
        "batch()", "1 passed in 2.02s",
    )  # fmt: skip
    start = time.time() - 10
    told = [
        (name, {**payload, "time": (start + at) * 1000}) for at, (name, payload) in enumerate(TOLD["opencode"](story))
    ]
    for name, payload in reversed(told):
        spool.put(dialect("opencode").read(name, payload))
    event_processor.EventProcessor(brain).drain(100)
    (fix,) = brain.memories({"type": "error_fix"})
    assert "`read()` → `batch()`" in fix.text
    (task,) = brain.memories({"type": "task"})
    assert "Fixed: MemoryError" in task.text
    assert start < fix.timestamp < start + 10


def event(folder, kind, session, when, **more):
    return Event(str(next(NUMBERS)), "codex", kind, session, str(folder), when, **more)


@pytest.fixture
def team(folder, brain, tmp_path):
    sessions = Sessions(tmp_path / "sessions")
    return Capture(brain, sessions), Briefing(brain, sessions)


def work(capture, folder, session, when, task=IMPORT):
    capture.take(event(folder, EventKind.SESSION_START, session, when))
    capture.take(event(folder, EventKind.PROMPT, session, when + 1, prompt=task))
    edit = {"tool": "edit", "action": "edit", "files": [str(folder / "transform.py")]}
    capture.take(event(folder, EventKind.TOOL, session, when + 2, **edit))


def test_a_session_that_was_told_is_not_told_again_when_its_end_comes_late(team, folder):
    capture, briefing = team
    now = time.time()
    work(capture, folder, "s-1", now - 60)
    assert IMPORT in briefing.context(event(folder, EventKind.SESSION_START, "s-2", now))
    capture.take(event(folder, EventKind.SESSION_END, "s-1", now + 1))
    assert briefing.context(event(folder, EventKind.PROMPT, "s-2", now + 2, prompt=IMPORT)) == ""
    assert IMPORT in briefing.context(event(folder, EventKind.PROMPT, "s-3", now + 3, prompt=IMPORT))


def test_a_late_end_does_not_make_an_older_session_the_last_one(team, folder):
    capture, briefing = team
    now = time.time()
    work(capture, folder, "s-1", now - 600)
    work(capture, folder, "s-2", now - 60, "Send the report by mail")
    capture.take(event(folder, EventKind.SESSION_END, "s-2", now - 50))
    capture.take(event(folder, EventKind.SESSION_END, "s-1", now - 40))
    told = briefing.context(event(folder, EventKind.SESSION_START, "s-3", now))
    assert "Send the report by mail" in told
    assert IMPORT not in told


def test_a_session_that_goes_on_after_the_end_of_an_earlier_process_is_summarised_again(team, folder):
    capture, briefing = team
    now = time.time()
    work(capture, folder, "s-1", now - 60)
    capture.take(event(folder, EventKind.SESSION_START, "s-1", now - 50, source="resume"))
    capture.take(event(folder, EventKind.SESSION_END, "s-1", now - 49))  # of the process before it
    capture.take(event(folder, EventKind.PROMPT, "s-1", now - 40, prompt="Now write the report into a file of its own"))
    capture.take(event(folder, EventKind.SESSION_END, "s-1", now - 30))
    assert "report into a file" in briefing.context(event(folder, EventKind.SESSION_START, "s-2", now))
