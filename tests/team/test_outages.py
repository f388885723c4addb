"""Events of hooks survive a store that fails for a while: they wait in their order, are tried again, and arrive once.
Only what can never be taken in is set aside. Failures are real ones: of SQLite, of the system, of real processes."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recorded_events import TOLD, Story

from rmem import Brain, Encryption
from rmem.crypto.encryption import MASTER_KEY, new_master_key
from rmem.embed.function import FunctionEmbedder
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.team import backlog, daemon, outage, paths, spool
from rmem.team.capture import Capture
from rmem.team.daemon import Daemon
from rmem.team.dialects import dialect
from rmem.team.event_mask import mask_event
from rmem.team.event_processor import EventProcessor
from rmem.team.events import Event, EventKind
from rmem.team.sessions import Sessions

MANY = 50


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the agents work; it is in no repository."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(MASTER_KEY, raising=False)
    place = tmp_path / "work"
    place.mkdir()
    return place


@pytest.fixture
def quick(monkeypatch):
    """Pauses of hundredths of a second, not of minutes."""
    monkeypatch.setattr(outage, "_FIRST", 0.01)
    monkeypatch.setattr(outage, "_LONGEST", 0.04)


@pytest.fixture
def brain(tmp_path):
    with Brain(tmp_path / "team.db", privacy="default") as brain:
        yield brain


def recorded(folder, count=MANY):
    """Events as the agents tell them: session after session, each with wishes, errors and fixes of its own."""

    def told():
        for number, agent in enumerate(itertools.cycle(TOLD)):
            story = Story(
                f"s{number}", str(folder), f"Always use the port {5000 + number} for service {number}. Then fix it",
                f"pytest tests/test_{number}.py", f"E   KeyError: 'column_{number}'\n1 failed in 2.31s",
                str(folder / f"load_{number}.py"), f"row['column_{number}']", f"row.get('column_{number}')",
                f"{number + 1} passed in 2.02s",
            )  # fmt: skip
            for name, payload in TOLD[agent](story):
                event = dialect(agent).read(name, payload)
                if event is not None:
                    yield event

    return list(itertools.islice(told(), count))


def wish(number, folder, session="s1"):
    """An event that becomes one memory."""
    said = f"Always use the port {5000 + number} for service {number}"
    return Event(f"{session}-{number}", "claude-code", EventKind.PROMPT, session, str(folder), time.time(), prompt=said)


def wishes(brain):
    return [memory.text for memory in brain.memories({"type": "preference"}, order="oldest", limit=None)]


def content(brain, sessions):
    """Everything that events leave behind: memories in their order with how often they were learned, and sessions."""
    memories = [(one.memory_id, one.text, one.timestamp, one.contents) for one in brain.store.select()]
    states = {state.session: {**state.to_dict(), "started": None} for state in sessions.all()}
    return memories, states


def expected(events, tmp_path):
    """What the events leave behind where nothing fails."""
    sessions = Sessions(tmp_path / "expected")
    with Brain(tmp_path / "expected.db", privacy="default") as brain:
        capture = Capture(brain, sessions)
        for event in events:
            capture.take(mask_event(event))
        return content(brain, sessions)


def limit(brain, pages):
    """SQLite itself refuses pages beyond a number, with the error that it has for a full disk."""
    writer = brain.store._file.writer
    (used,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {used + pages}")


def wait_for(what, patience=60.0):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError(f"it did not happen in time; {backlog.report()}")


def drain(work):
    """As the daemon does, until nothing waits."""
    wait_for(lambda: (work.drain(200), not spool.waiting())[1])
    assert spool.unusable() == []


def fail(work, error, attempts=5):
    """Drain in vain, as the daemon does; the first events that wait are still the same afterwards."""

    def is_failing():
        work.drain(200)
        failure = outage.read()
        return failure is not None and failure.attempts >= attempts

    wait_for(is_failing)
    assert error in outage.read().error
    assert spool.unusable() == []


# A store that fails for a while


def test_a_full_store_takes_in_every_event_once_and_in_order_when_there_is_room(brain, folder, tmp_path, quick):
    events = recorded(folder)
    for event in events:
        spool.put(event)
    work = EventProcessor(brain)
    limit(brain, 8)
    fail(work, "StoreFullError: no space left for")
    assert 0 < len(spool.waiting()) < MANY, "it was not full, or from the beginning: this tested less than it should"
    limit(brain, 10_000)
    drain(work)
    assert content(brain, Sessions()) == expected(events, tmp_path)
    assert outage.read() is None


def test_a_locked_store_loses_no_event(folder, tmp_path, quick):
    events = recorded(folder, 10)
    path = tmp_path / "team.db"
    with Brain(SqliteRecordStore(path, busy_timeout=0.05), privacy="default") as brain:
        for event in events:
            spool.put(event)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        work = EventProcessor(brain)
        fail(work, "StoreBusyError: another process held the write lock")
        other.execute("ROLLBACK")
        other.close()
        drain(work)
        assert content(brain, Sessions()) == expected(events, tmp_path)


def test_a_missing_key_loses_no_event(folder, tmp_path, quick):
    encryption = Encryption(master=new_master_key())
    with Brain(tmp_path / "team.db", privacy="default", encryption=encryption) as brain:
        spool.put(wish(1, folder))
        drain(EventProcessor(brain))
    spool.put(wish(1, folder, session="s2"))
    with Brain(tmp_path / "team.db", privacy="default") as brain:
        fail(EventProcessor(brain), "KeyMissingError")
    with Brain(tmp_path / "team.db", privacy="default", encryption=encryption) as brain:
        drain(EventProcessor(brain))
        (memory,) = brain.memories({"type": "preference"})
        assert memory.contents["count"] == 2


@pytest.mark.parametrize(
    ("answer", "error"), [(None, "EmbedderError"), ([1.0, 2.0], "VectorError")], ids=["none", "of another length"]
)
def test_an_embedder_with_a_wrong_answer_loses_no_event(folder, tmp_path, quick, answer, error):
    works = False

    def embed(texts):
        return [[float(len(text)), *range(7)] if works else answer for text in texts]

    with Brain(tmp_path / "team.db", privacy="default", embedder=FunctionEmbedder(embed, name="lengths")) as brain:
        for number in range(3):
            spool.put(wish(number, folder))
        work = EventProcessor(brain)
        fail(work, error)
    works = True
    with Brain(tmp_path / "team.db", privacy="default", embedder=FunctionEmbedder(embed, name="lengths")) as brain:
        drain(EventProcessor(brain))
        assert wishes(brain) == [wish(number, folder).prompt for number in range(3)]


def test_a_spool_file_that_cannot_be_read_now_is_not_set_aside_and_is_not_overtaken(brain, folder, quick):
    if not Path("/proc/self/mem").exists():
        pytest.skip("needs a file that gives an input/output error")
    spool.put(wish(1, folder))
    unreadable = paths.spool() / "00000000000000000001-1.json"
    unreadable.symlink_to("/proc/self/mem")
    work = EventProcessor(brain)
    fail(work, "OSError: [Errno 5] Input/output error")
    assert wishes(brain) == []
    unreadable.unlink()
    drain(work)
    assert wishes(brain) == [wish(1, folder).prompt]


def test_an_event_whose_session_cannot_be_saved_is_learned_once_though_somebody_commits_meanwhile(
    brain, folder, tmp_path, quick
):
    for words in ("init -q", "config user.email ann@acme.io", "commit -q --allow-empty -m one --no-gpg-sign"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    spool.put(wish(1, folder))
    paths.sessions().write_text("a file is where the folder has to be")
    work = EventProcessor(brain)
    fail(work, "FileExistsError")
    assert wishes(brain) == [wish(1, folder).prompt], "the memory is kept before the session"
    commit = ["git", "-c", "user.name=ann", "commit", "-q", "--allow-empty", "-m", "two", "--no-gpg-sign"]
    subprocess.run(commit, cwd=folder, check=True)
    paths.sessions().unlink()
    drain(work)
    (memory,) = brain.memories({"type": "preference"})
    assert memory.contents["count"] == 1


def test_a_session_that_cannot_be_read_now_is_not_replaced_by_an_empty_one(brain, folder, quick):
    work = EventProcessor(brain)
    spool.put(wish(1, folder))
    drain(work)
    (path,) = paths.sessions().glob("*.json")
    path.rename(path.with_suffix(".hidden"))
    path.symlink_to(path.name)  # too many levels of symbolic links
    spool.put(wish(2, folder))
    fail(work, "OSError: [Errno 40]")
    path.with_suffix(".hidden").rename(path)
    drain(work)
    assert len(Sessions().load("claude-code", "s1").prompts) == 2


def test_attempts_come_less_and_less_often(monkeypatch, tmp_path):
    clock = [1000.0]
    monkeypatch.setattr(outage.time, "monotonic", lambda: clock[0])
    failing = outage.Outage()
    pauses = []
    for _ in range(12):
        assert failing.is_due
        failing.record_failure(OSError("no space left"), progress=False)
        pauses.append(failing._due - clock[0])
        clock[0] = failing._due - 0.001
        assert not failing.is_due
        clock[0] = failing._due
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    failing.record_failure(OSError("no space left"), progress=True)
    assert failing._due - clock[0] == 1


# What can never be taken in

START = '{"id": "1", "agent": "codex", "session": "s", "cwd": "", '
BAD = {
    "broken JSON": "{broken",
    "nothing": "",
    "no event": "[1, 2]",
    "a kind that nobody knows": START + '"kind": "nap", "time": 1}',
    "no session": '{"id": "1", "agent": "codex", "kind": "prompt"}',
    "a time that is none": START + '"kind": "stop", "time": "noon"}',
    "files that are none": START + '"kind": "tool", "time": 1, "files": 5}',
    "too deep": "[" * 200_000,
    "no text": "\udcff\udcfe",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_one_bad_event_between_good_ones_is_set_aside_alone_and_with_its_reason(brain, folder, text):
    events = [wish(number, folder) for number in range(4)]
    files = [spool.put(event) for event in events]
    files[1].write_bytes(text.encode("utf-8", "surrogateescape"))
    work = EventProcessor(brain)
    assert work.drain(200) == 3
    assert [path.name for path in spool.unusable()] == [files[1].name]
    assert spool.unusable()[0].read_bytes() == text.encode("utf-8", "surrogateescape")
    reason = spool.reason_of(spool.unusable()[0])
    assert reason
    assert reason in paths.log().read_text()
    assert wishes(brain) == [events[number].prompt for number in (0, 2, 3)]
    assert outage.read() is None
    assert spool.waiting() == []


def test_an_event_that_fails_by_accident_is_taken_in(brain, folder):
    """Somebody forgets the memory between looking it up and counting it again."""
    work = EventProcessor(brain)
    spool.put(wish(1, folder))
    drain(work)
    spool.put(wish(1, folder, session="s2"))
    known = brain.memories({"type": "preference"})[0]
    look = brain.get

    def get_and_forget(key):
        found = look(key)
        brain.get = look
        brain.forget(key)
        return found

    brain.get = get_and_forget
    assert work.drain(200) == 1
    assert spool.unusable() == []
    assert brain.get(known.memory_id).contents["count"] == 1


def test_what_was_set_aside_can_be_put_back_in_its_place(brain, folder):
    events = [wish(number, folder) for number in range(3)]
    files = [spool.put(event) for event in events]
    whole = files[0].read_bytes()
    files[0].write_text("{")
    EventProcessor(brain).drain(1)
    (aside,) = spool.unusable()
    aside.write_bytes(whole)  # as a newer version might understand it
    assert spool.put_back() == 1
    assert spool.unusable() == []
    assert spool.waiting() == files
    assert not list((paths.spool() / "unusable").iterdir())
    drain(EventProcessor(brain))
    assert wishes(brain) == [event.prompt for event in events]


# Word for `rmem status`


def test_a_last_capture_that_cannot_be_recorded_neither_loses_nor_repeats_an_event(brain, folder):
    paths.last_capture().mkdir()
    work = EventProcessor(brain)
    for number in range(3):
        spool.put(wish(number, folder))
    assert work.drain(200) == 3
    assert work.drain(200) == 0
    assert wishes(brain) == [wish(number, folder).prompt for number in range(3)]
    assert "the last capture was not recorded" in paths.log().read_text()
    assert [path for path in paths.folder().iterdir() if path.name.startswith(".")] == []


def test_the_last_capture_is_the_last_event_that_was_taken_in(brain, folder):
    for event in recorded(folder, 9):
        spool.put(event)
    drain(EventProcessor(brain))
    told = json.loads(paths.last_capture().read_text())
    assert (told["agent"], told["cwd"]) == ("codex", str(folder))
    assert paths.last_capture().stat().st_mode & 0o077 == 0


# Real processes


class DaemonProcess:
    """A daemon that may write no file longer than a limit, until it is lifted."""

    def __init__(self, longest):
        import resource

        def starve():
            resource.setrlimit(resource.RLIMIT_FSIZE, (longest, resource.RLIM_INFINITY))

        environment = {**os.environ, "RMEM_KEEPER_IDLE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "rmem.team.daemon"]
        self.process = subprocess.Popen(command, env=environment, preexec_fn=starve if longest else None)

    def feed(self):
        import resource

        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, unlimited)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def start_daemon():
    started = []

    def start(longest=0):
        started.append(DaemonProcess(longest))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs prlimit")
def test_a_daemon_without_space_that_is_killed_and_started_again_loses_and_doubles_nothing(
    folder, tmp_path, start_daemon
):
    events = recorded(folder)
    store = paths.folder().parent / "memories.db"
    Brain(store, privacy="default").close()
    for event in events:
        spool.put(event)
    first = start_daemon(200_000)
    before = wait_for(lambda: (failure := outage.read()) and failure.attempts > 1 and failure)
    assert "StoreFullError" in before.error or "StoreError" in before.error
    assert 0 < len(spool.waiting()) < MANY
    first.kill()
    assert backlog.report()["failure"]["daemon_runs"] is False
    assert "with the next hook" in backlog.problems(backlog.report())[0]
    second = start_daemon(200_000)
    after = wait_for(lambda: (failure := outage.read()) and failure.attempts > before.attempts + 1 and failure)
    assert after.since == before.since
    time.sleep(1.5)  # longer than it may be idle
    assert second.process.poll() is None, "it ended though events wait"
    assert backlog.report()["failure"]["daemon_runs"] is True
    second.feed()
    wait_for(lambda: not spool.waiting())
    assert second.process.wait(30) == 0
    assert spool.unusable() == []
    assert outage.read() is None
    with Brain(store, privacy="default") as brain:
        assert content(brain, Sessions()) == expected(events, tmp_path)


def test_a_daemon_outlives_its_idle_time_while_events_wait_but_not_for_ever(folder, monkeypatch):
    monkeypatch.setattr(daemon, "_LONGEST_OUTAGE", 3.0)
    (paths.folder().parent / "memories.db").mkdir()  # no store can be opened here
    spool.put(wish(1, folder))
    started = time.monotonic()
    Daemon(idle=0.1).run()
    assert 3.0 <= time.monotonic() - started < 30
    assert len(spool.waiting()) == 1


def test_a_daemon_with_nothing_to_do_ends_though_the_store_cannot_be_opened(folder):
    (paths.folder().parent / "memories.db").mkdir()
    Daemon(idle=0.1).run()
    assert outage.read().error.startswith("StoreCorruptError")


def test_a_daemon_removes_drafts_of_killed_processes_and_no_others(folder):
    kept, swept = [], []
    for place in (paths.folder(), paths.spool(), paths.sessions()):
        place.mkdir(exist_ok=True)
        old, young, whole = place / ".old.json-1", place / ".young.json-2", place / "whole.txt"
        for path in (old, young, whole):
            path.write_text("half")
        for path in (old, whole):
            os.utime(path, (time.time() - 7200,) * 2)
        swept.append(old)
        kept += [young, whole]
    Daemon(idle=0.1).run()
    assert not any(path.exists() for path in swept)
    assert all(path.exists() for path in kept)


# Writing to the spool


def in_child(code, folder):
    """Run Python under a limit of what a file may hold; what it printed."""
    lead = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
    done = subprocess.run([sys.executable, "-c", lead + code], capture_output=True, text=True, timeout=60, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_event_that_does_not_fit_leaves_no_draft(folder):
    told = in_child(
        "from rmem.team import spool\n"
        "from rmem.team.events import Event, EventKind\n"
        "try:\n"
        "    spool.put(Event('1', 'codex', EventKind.PROMPT, 's', '/w', 1.0, prompt='x ' * 100))\n"
        "except OSError as error:\n"
        "    print(type(error).__name__)",
        folder,
    )
    assert told == "OSError"
    assert list(paths.spool().iterdir()) == []


def test_a_session_that_does_not_fit_leaves_no_draft(folder):
    told = in_child(
        "from rmem.team.sessions import Sessions, SessionState\n"
        "try:\n"
        "    Sessions().save(SessionState('codex', 's'))\n"
        "except OSError as error:\n"
        "    print(type(error).__name__)",
        folder,
    )
    assert told == "OSError"
    assert list(paths.sessions().iterdir()) == []


def test_a_spool_that_is_full_refuses_events_in_the_log_and_is_emptied_nevertheless(folder, monkeypatch, capsys):
    from io import StringIO

    from rmem.team import hook

    monkeypatch.setenv("RMEM_KEEPER_IDLE", "1")
    monkeypatch.setattr(spool, "MOST", 3)
    for number in range(3):
        spool.put(wish(number, folder))
    assert "no other event is kept before" in " ".join(backlog.problems(backlog.report()))
    payload = {"session_id": "s9", "cwd": str(folder), "tool_name": "Read", "tool_input": {"file_path": "a.py"}}
    monkeypatch.setattr("sys.stdin", StringIO(json.dumps(payload)))
    assert hook.main(["claude-code", "PostToolUse"]) == 0
    assert capsys.readouterr().out == ""
    assert "claude-code PostToolUse: this event was not kept: 3 wait in" in paths.log().read_text()
    wait_for(lambda: not spool.waiting())  # by a daemon that the hook started


# A disk that is really full


def test_a_disk_that_is_full_for_eight_seconds_costs_no_event(tmp_path):
    """A real file system of eight megabytes, where this machine lets us make one; the rest is in full_disk.py."""
    home = tmp_path / "disk"
    home.mkdir()
    mount = f"mount -t tmpfs -o size=8m tmpfs {home}"
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    script = Path(__file__).with_name("full_disk.py")
    environment = {**os.environ, "RMEM_HOME": str(home / "memory"), "HOME": str(tmp_path)}
    command = [unshare, "-m", "sh", "-c", f"{mount} && exec {sys.executable} {script}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["hook"] == [0, "", ""]
    assert "no space left" in told["status"]
    assert "the next at" in told["status"]
    assert told["doctor"] == 6
    assert told["set aside"] == 0
    assert told["drafts"] == []
    assert told["wishes"] == [wish(number, tmp_path).prompt for number in range(MANY)]
    assert told["counts"] == [1] * MANY
    assert told["status afterwards"] == 0
