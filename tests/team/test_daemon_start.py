"""Whoever asks while the daemon starts is answered, at once or with the next prompt; nothing that goes wrong with one
connection ends the daemon."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import psutil
import pytest

from rmem import Brain
from rmem.team import daemon_client, event_processor, paths, spool
from rmem.team.daemon import Daemon
from rmem.team.event_processor import EventProcessor
from rmem.team.events import Event, EventKind
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note

RULE = "Always run the linter before a commit"
FIX = "transform_parquet dies with MemoryError on large files; read it in batches with dataset.to_batches()"
TASK = "transform_parquet dies with MemoryError: Unable to allocate 12 GiB"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "memory"))
    monkeypatch.setenv("RMEM_KEEPER_IDLE", "5")
    monkeypatch.setenv("HOME", str(tmp_path))
    with Brain(privacy="default") as brain:
        team = TeamMemory(brain, author="ann@acme.io")
        team.remember(Note(RULE, "preference", author="ann@acme.io", scope="organisation"))
        team.remember(Note(FIX, "error_fix", author="ann@acme.io", scope="organisation"))
    yield tmp_path / "memory"
    for process in daemons():
        process.kill()


def daemons():
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "rmem.team.daemon" in (process.info["cmdline"] or []):
            with suppress(psutil.NoSuchProcess):
                if process.environ().get("RMEM_HOME") == os.environ["RMEM_HOME"]:
                    found.append(process)
    return found


def hook_process(event, session, folder, **more):
    command = [sys.executable, "-m", "rmem", "hook", "claude-code", event]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(json.dumps({"session_id": session, "cwd": str(folder), **more}))
    process.stdin.close()
    return process


def told(process) -> str:
    with process:
        return process.stdout.read()


def log(home) -> str:
    path = home / "team" / "hooks.log"
    return path.read_text() if path.exists() else ""


def start_of(session, number="1"):
    return Event(number, "claude-code", EventKind.SESSION_START, session, "", time.time(), source="startup")


def prompt_of(session, number="2", prompt=TASK):
    return Event(number, "claude-code", EventKind.PROMPT, session, "", time.time(), prompt=prompt)


def test_every_session_that_starts_beside_the_daemon_is_briefed(home, tmp_path):
    silent = []
    for turn in range(2):
        for process in daemons():
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        names = [f"s{turn}-{n}" for n in range(4)]
        running = [hook_process("SessionStart", name, tmp_path, source="startup") for name in names]
        late = [name for name, process in zip(names, running, strict=True) if RULE not in told(process)]
        for name in late:  # on a machine that is busy with other things
            prompt = told(hook_process("UserPromptSubmit", name, tmp_path, prompt="How is the nightly export sent?"))
            silent += [] if RULE in prompt else [name]
    assert silent == [], log(home)


def test_a_first_prompt_that_comes_with_its_session_is_answered(home, tmp_path):
    """OpenCode and Copilot send both in the same moment."""
    start = hook_process("SessionStart", "s1", tmp_path, source="startup")
    prompt = hook_process("UserPromptSubmit", "s1", tmp_path, prompt=TASK)
    both = told(start) + told(prompt)
    for _ in range(5):  # on a machine that is busy with other things
        if RULE not in both or "to_batches" not in both:
            both += told(hook_process("UserPromptSubmit", "s1", tmp_path, prompt=TASK))
    assert RULE in both, log(home)
    assert "to_batches" in both, log(home)


def slow_daemon(monkeypatch, seconds):
    """A daemon in this process whose first answers take so long."""
    whole = EventProcessor.context
    delays = iter([seconds])

    def slow(self, event):
        time.sleep(next(delays, 0.0))
        return whole(self, event)

    monkeypatch.setattr(EventProcessor, "context", slow)
    one = Daemon(idle=30.0)
    thread = threading.Thread(target=one.run, daemon=True)
    thread.start()
    while not paths.socket().exists():
        time.sleep(0.01)
    return one, thread


def ended(one, thread):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(os.fspath(paths.socket()))
        line.sendall(daemon_client.END)
    thread.join(60)
    assert not thread.is_alive()


def test_an_answer_that_comes_too_late_is_told_with_the_first_prompt(home, monkeypatch):
    running = slow_daemon(monkeypatch, 1.0)
    with pytest.raises(TimeoutError):
        daemon_client.call(start_of("s1"), 0.2, 0.3)
    time.sleep(1.5)
    told = daemon_client.call(prompt_of("s1"), 5.0, 5.0)
    assert RULE in told
    assert "to_batches" in told
    assert RULE not in daemon_client.call(
        prompt_of("s1", "3", "How is the report of the nightly export sent?"), 5.0, 5.0
    )
    ended(*running)


def test_a_start_that_nobody_answered_is_told_with_the_first_prompt(home):
    """The hook could write its event down, and then reached no daemon."""
    spool.put(start_of("s1"))
    with Brain(privacy="default") as brain:
        work = EventProcessor(brain)
        work.drain(10)
        told = work.context(prompt_of("s1"))
        assert RULE in told
        assert "to_batches" in told
        spool.put(start_of("s2", "3"))
        assert RULE in work.context(start_of("s2", "3"))
        work.drain(10)
        assert RULE not in work.context(prompt_of("s2", "4"))


def test_a_prompt_gets_the_briefing_of_a_start_that_still_waits_and_the_start_itself_nothing_more(home, monkeypatch):
    """On a busy machine the hook of the start gave up, and its question is read after the prompt's."""
    monkeypatch.setattr(event_processor, "_CATCHING_UP", 0.01)
    start, prompt = start_of("s1"), prompt_of("s1")
    spool.put(start)
    with Brain(privacy="default") as brain:
        work = EventProcessor(brain)
        assert RULE in work.answer(prompt)
        assert work.answer(start) == ""
        work.drain(10)
        work.confirm(prompt.id)
        assert RULE not in work.answer(prompt_of("s1", "3"))


def test_an_answer_that_no_hook_confirms_is_given_again_once(home):
    with Brain(privacy="default") as brain:
        work = EventProcessor(brain)
        assert RULE in work.answer(start_of("s1"))  # sent, but the hook had just stopped waiting
        second = prompt_of("s1")
        assert RULE in work.answer(second)
        work.confirm(second.id)
        assert RULE not in work.answer(prompt_of("s1", "3"))


def test_a_prompt_waits_for_the_briefing_that_is_being_made(home, monkeypatch):
    running = slow_daemon(monkeypatch, 0.8)
    asking = threading.Thread(target=lambda: suppress_timeout(start_of("s1"), 0.2))
    asking.start()
    time.sleep(0.3)
    assert RULE in daemon_client.call(prompt_of("s1"), 5.0, 5.0)
    asking.join()
    ended(*running)


def suppress_timeout(event, patience):
    with suppress(TimeoutError):
        daemon_client.call(event, patience, patience)


def test_a_hook_that_gave_up_before_the_daemon_heard_it_is_answered_with_the_next_prompt(home):
    one = Daemon(idle=30.0)
    mine, theirs = socket.socketpair(socket.AF_UNIX)
    with mine:
        mine.sendall(prompt_of("s1").to_json().encode())
    one._processor = EventProcessor()
    one._is_ready.set()
    one._answer(theirs)
    answer = one._processor.answer(prompt_of("s1", "3", "How is the report of the nightly export sent?"))
    one._processor.close()
    assert "to_batches" in answer
    assert log(home) == ""


def test_a_daemon_goes_on_listening_after_a_failed_accept(home, monkeypatch):
    """Too many open files, or a hook that is gone again, are no reason to be deaf for ever."""
    real, failures = socket.socket.accept, iter([errno.EMFILE, errno.ECONNABORTED, errno.EMFILE])

    def accept(self):
        number = next(failures, None)
        if number is not None:
            raise OSError(number, os.strerror(number))
        return real(self)

    monkeypatch.setattr(socket.socket, "accept", accept)
    running = slow_daemon(monkeypatch, 0.0)
    assert RULE in daemon_client.call(start_of("s1"), 10.0, 10.0)
    assert "a hook was not heard: OSError" in log(home)
    ended(*running)


def test_an_error_while_answering_one_hook_leaves_the_next_ones_answered(home, monkeypatch):
    whole, failing = EventProcessor.context, [OSError(errno.EIO, "an input/output error")]

    def context(self, event):
        if failing:
            raise failing.pop()
        return whole(self, event)

    monkeypatch.setattr(EventProcessor, "context", context)
    one = Daemon(idle=30.0)
    thread = threading.Thread(target=one.run, daemon=True)
    thread.start()
    assert daemon_client.call(start_of("s1"), 10.0, 10.0) == ""
    assert "input/output error" in log(home)
    assert RULE in daemon_client.call(start_of("s2"), 10.0, 10.0)
    ended(one, thread)


def test_a_daemon_that_took_long_to_start_takes_in_what_waits(home):
    spool.put(prompt_of("s1", prompt="Always use port 5000 for the importer"))
    one = Daemon(idle=0.2)
    time.sleep(0.3)
    one.run()
    assert not spool.waiting()


def test_an_event_of_the_last_moment_gets_a_daemon(home, tmp_path, monkeypatch):
    """The hook saw a daemon that was about to end."""
    monkeypatch.setenv("RMEM_KEEPER_IDLE", "0.5")
    with daemon_client.Lock() as held:
        spool.put(prompt_of("s1", prompt="Always use port 5000 for the importer"))
        assert daemon_client.ensure_daemon()
        # As a daemon does that has just looked into the spool for the last time.
        code = "import sys; from rmem.team import daemon; daemon.Daemon.run = lambda self: True; daemon.main()"
        words = [sys.executable, "-c", code, str(held.fileno())]
        process = subprocess.Popen(words, pass_fds=(held.fileno(),))
    assert process.wait(30) == 0
    end = time.monotonic() + 20
    while spool.waiting():
        assert time.monotonic() < end
        time.sleep(0.05)
