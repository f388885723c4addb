"""`rmem status` and `rmem doctor` tell what became of the events of hooks, and `rmem status --retry` tries again."""

from __future__ import annotations

import json
import os
import signal
import time

import psutil
import pytest

from rmem import Brain
from rmem.team import outage, spool
from rmem.team.event_processor import EventProcessor
from rmem.team.events import Event, EventKind

GOOD = "Always run the linter before a commit"


@pytest.fixture
def home(rmem, monkeypatch):
    """The home of `rmem`, for this process too. Its daemon ends with the test."""
    monkeypatch.setenv("RMEM_HOME", str(rmem.home))
    monkeypatch.setenv("RMEM_KEEPER_IDLE", "2")
    monkeypatch.setenv("HOME", str(rmem.home.parent))
    yield rmem.home
    for process in daemons():
        os.kill(process.pid, signal.SIGKILL)


def daemons():
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        is_ours = (process.info["environ"] or {}).get("RMEM_HOME") == os.environ["RMEM_HOME"]
        if "rmem.team.daemon" in (process.info["cmdline"] or []) and is_ours:
            found.append(process)
    return found


def event(number=1, said=GOOD):
    return Event(str(number), "claude-code", EventKind.PROMPT, "s1", "", time.time(), prompt=said)


def wait_for(what, patience=30.0):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError(f"it did not happen in time; {outage.read()}")


def finding(rmem):
    answer = rmem("doctor", "--json")
    (found,) = [one for one in answer.json["findings"] if one["name"] == "events"]
    return answer.code, found["ok"], found["detail"]


def test_without_a_team_memory_there_is_nothing_to_tell_or_make(rmem):
    rmem("remember", "something")
    told = rmem("status", "--json").json
    assert (told["waiting"], told["waiting_since"], told["failure"], told["set_aside"]) == (0, None, None, None)
    assert "events" not in [one["name"] for one in rmem("doctor", "--json").json["findings"]]
    assert not (rmem.home / "team").exists()


def test_events_that_wait_for_a_moment_are_no_problem(rmem, home):
    rmem("remember", "something")
    spool.put(event())
    assert "waiting       1 event, the oldest since 20" in rmem("status").out
    assert " ! " not in rmem("status").out
    code, ok, detail = finding(rmem)
    assert (code, ok) == (0, True)
    assert detail.startswith("waiting: 1 event, the oldest since 20")


def test_events_that_wait_for_long_are_a_problem(rmem, home):
    rmem("remember", "something")
    path = spool.put(event())
    os.utime(path, (time.time() - 3600,) * 2)
    assert "events are not taken in (`rmem status --retry` tries now)" in rmem("status").out
    assert finding(rmem)[:2] == (6, False)
    assert "--repair" not in rmem("doctor").err, "there is nothing to repair in the store"


def test_a_failing_store_is_told_with_its_error_and_the_next_attempt(rmem, home):
    spool.put(event())
    (home / "memories.db").mkdir()
    EventProcessor().drain(10)
    text = rmem("status").out
    assert "events are not taken in: StoreCorruptError: " in text
    assert "; attempt 1 at 20" in text
    assert "the next with the next hook; `rmem status --retry` tries now)" in text
    told = rmem("status", "--json").json
    assert told["failure"]["attempts"] == 1
    assert told["failure"]["next"] > told["failure"]["last"]
    assert told["failure"]["daemon_runs"] is False
    code, ok, detail = finding(rmem)
    assert (code, ok) == (6, False)
    assert "StoreCorruptError" in detail
    assert (home / "team" / "outage.json").stat().st_mode & 0o077 == 0


def test_what_was_set_aside_is_told_with_its_reason_and_can_be_tried_again(rmem, home):
    bad = spool.put(event(1))
    whole = bad.read_bytes()
    told = json.loads(whole)
    told["files"] = 5
    bad.write_text(json.dumps(told))
    spool.put(event(2, "Never use tabs in this repository"))
    with Brain(home / "memories.db", privacy="default") as brain:
        assert EventProcessor(brain).drain(10) == 1
    text = rmem("status").out
    assert f"can never be taken in, and set aside: 1 event in {home / 'team/spool/unusable'}" in text
    assert "files of an event must be a list, got 5" in text
    assert rmem("status", "--json").json["set_aside"]["count"] == 1
    code, ok, detail = finding(rmem)
    assert (code, ok) == (6, False)
    assert "files of an event must be a list, got 5" in detail
    spool.unusable()[0].write_bytes(whole)  # as a newer version might understand it
    answer = rmem.process("status", "--retry")
    assert answer.code == 0
    assert "put back of what was set aside: 1; all that wait are being tried now" in answer.err
    wait_for(lambda: not spool.waiting())
    assert finding(rmem)[:2] == (0, True)
    with Brain(home / "memories.db") as brain:
        texts = {memory.text for memory in brain.memories({"type": "preference"})}
    assert texts == {GOOD, "Never use tabs in this repository"}


def test_a_retry_has_all_events_tried_by_a_new_process_at_once(rmem, home):
    (home / "memories.db").mkdir(parents=True)
    payload = json.dumps({"session_id": "s1", "cwd": "/", "prompt": GOOD})
    rmem.process("hook", "claude-code", "UserPromptSubmit", input=payload)
    wait_for(lambda: (failure := outage.read()) and failure.attempts >= 3)  # the next attempt is four seconds away
    (before,) = daemons()
    (home / "memories.db").rmdir()
    answer = rmem.process("status", "--retry", "--json")
    assert answer.code == 0
    wait_for(lambda: not spool.waiting())
    assert before.pid not in [process.pid for process in daemons()]
    assert outage.read() is None
