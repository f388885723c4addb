"""From events to memories: pairs of error and fix, folded outputs, wishes, summaries; nothing secret, nothing twice."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time

import pytest

from rmem import Brain
from rmem.team import paths, spool
from rmem.team.briefing import BUDGET, PROMPT_BUDGET, Briefing, reads_like_work
from rmem.team.capture import Capture
from rmem.team.error_fixes import command_key
from rmem.team.events import Event, EventKind
from rmem.team.outcomes import headline, looks_failed
from rmem.team.sessions import Sessions, SessionState
from rmem.team.tool_output import excerpt, fold_repeats, signature

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"


@pytest.fixture
def clone(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "clone"
    folder.mkdir()
    for words in ("init -q -b main", "remote add origin git@github.com:acme/etl.git", "config user.email ann@acme.io"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return folder


@pytest.fixture
def brain(tmp_path):
    with Brain(tmp_path / "team.db", privacy="default") as brain:
        yield brain


class Agent:
    """Tells events of one session to a Capture."""

    def __init__(self, brain, folder, session="s1"):
        self.capture = Capture(brain)
        self.folder, self.session = str(folder), session
        self._numbers = itertools.count()
        self._clock = itertools.count(int(time.time()))

    def event(self, kind, **more):
        number = f"{self.session}-{next(self._numbers)}"
        return Event(number, "claude-code", kind, self.session, self.folder, float(next(self._clock)), **more)

    def tell(self, kind, **more):
        event = self.event(kind, **more)
        self.capture.take(event)
        return event

    def runs(self, command, output, failed):
        return self.tell(EventKind.TOOL, tool="Bash", action="shell", command=command, output=output, failed=failed)

    def edits(self, path, old, new):
        given = {"old_string": old, "new_string": new}
        return self.tell(EventKind.TOOL, tool="Edit", action="edit", files=[path], input=given)


@pytest.fixture
def agent(brain, clone):
    return Agent(brain, clone)


def of_kind(brain, kind):
    return brain.memories({"type": kind}, limit=None)


def test_a_failure_and_the_later_success_are_a_pair(agent, brain):
    agent.tell(EventKind.PROMPT, prompt="Fix the carrier import, it broke yesterday")
    agent.runs("pytest tests/test_carrier.py -v", "E   KeyError: 'carrier_code'\n1 failed in 1.2s", True)
    agent.edits("etl/carrier.py", 'row["carrier_code"]', 'row.get("carrier_code")')
    agent.runs("pytest tests/test_carrier.py", "1 passed in 1.1s", False)
    (fix,) = of_kind(brain, "error_fix")
    assert "KeyError: 'carrier_code'" in fix.text
    assert fix.contents["files"] == ["etl/carrier.py"]
    assert 'row.get("carrier_code")' in fix.contents["fix"]
    assert fix.actor == "ann@acme.io"
    assert fix.contents["repository"] == "github.com/acme/etl"
    assert fix.contents["branch"] == "main"


def test_a_success_of_the_whole_fixes_the_failure_of_a_part(agent, brain):
    agent.runs("pytest tests/test_a.py::test_one", "E   ValueError: bad\n1 failed in 0.1s", True)
    agent.edits("a.py", "1", "2")
    agent.runs("pytest tests/test_a.py", "5 passed in 0.3s", False)
    assert ["ValueError" in memory.text for memory in of_kind(brain, "error_fix")] == [True]


def test_a_build_is_paired_too(agent, brain):
    agent.runs("npm run build", "src/a.ts(3,1): error TS2304: Cannot find name 'x'.", True)
    agent.edits("src/a.ts", "x", "y")
    agent.runs("npm run build", "built in 3.2s", False)
    assert any("TS2304" in memory.text for memory in of_kind(brain, "error_fix"))


def test_another_command_that_succeeds_fixes_nothing(agent, brain):
    agent.runs("pytest tests/test_a.py", "E   ValueError: bad\n1 failed", True)
    agent.runs("ls src", "a.py", False)
    assert of_kind(brain, "error_fix") == []


def test_the_same_event_twice_changes_nothing(agent, brain):
    event = agent.runs("make build", "error: linker failed", True)
    before = [(memory.memory_id, memory.contents["count"]) for memory in of_kind(brain, "tool_output")]
    agent.capture.take(event)
    assert [(memory.memory_id, memory.contents["count"]) for memory in of_kind(brain, "tool_output")] == before


def test_repeated_outputs_are_one_memory_with_a_count(agent, brain):
    for took in ("1.21s", "1.35s", "0.98s"):
        agent.runs("ruff check .", f"Found 3 errors in {took}", True)
    (kept,) = of_kind(brain, "tool_output")
    assert kept.contents["count"] == 3


def test_listings_are_not_kept(agent, brain):
    agent.runs("ls -R", "\n".join(f"file{n}.py" for n in range(500)), False)
    assert brain.memories(limit=None) == []


def test_wishes_and_decisions_in_prompts_are_kept_and_questions_are_not(agent, brain):
    agent.tell(
        EventKind.PROMPT,
        prompt="Always use ruff for formatting here. We decided to keep Python 3.11. Should we never squash?",
    )
    assert [memory.text for memory in of_kind(brain, "preference")] == ["Always use ruff for formatting here."]
    assert [memory.text for memory in of_kind(brain, "decision")] == ["We decided to keep Python 3.11."]


def test_secrets_are_kept_nowhere(agent, brain, clone):
    agent.tell(EventKind.PROMPT, prompt=f"Always use the token {SECRET} for the deploy step")
    agent.runs("make deploy", f"error: token {SECRET} was refused", True)
    agent.edits("deploy.sh", "TOKEN=", f"TOKEN={SECRET}")
    agent.runs("make deploy", "deployed", False)
    agent.tell(
        EventKind.TOOL, tool="TodoWrite", input={"todos": [{"content": f"revoke {SECRET}", "status": "pending"}]}
    )
    agent.tell(EventKind.SESSION_END)
    told = json.dumps([memory.to_dict() for memory in brain.memories(limit=None)], default=str)
    assert of_kind(brain, "error_fix")
    assert SECRET not in told
    states = "".join(path.read_text() for path in (paths.folder() / "sessions").glob("*.json"))
    assert states
    assert SECRET not in states


def test_a_session_is_summed_up_when_it_ends(agent, brain):
    agent.tell(EventKind.PROMPT, prompt="Split the customers step so that deletions run first")
    agent.edits("etl/steps/customers.py", "a", "b")
    agent.runs("pytest tests/steps", "E  AssertionError: order\n1 failed", True)
    agent.tell(EventKind.SESSION_END)
    (task,) = of_kind(brain, "task")
    assert "Split the customers step" in task.text
    assert "etl/steps/customers.py" in task.text
    assert "Still failing: `pytest tests/steps`" in task.text


def test_a_session_that_crashed_is_summed_up_by_the_next_one(agent, brain, clone, monkeypatch):
    agent.tell(EventKind.PROMPT, prompt="Rewrite the loader to use upserts everywhere")
    agent.edits("etl/load.py", "a", "b")
    later = time.time() + 13 * 3600
    monkeypatch.setattr("rmem.team.capture.time.time", lambda: later)
    Agent(brain, clone, "s2").tell(EventKind.SESSION_START, source="startup")
    assert "Rewrite the loader" in of_kind(brain, "task")[0].text


# What is told at the start


def start(brain, clone, session="s9", source="startup"):
    return Event("x", "claude-code", EventKind.SESSION_START, session, str(clone), time.time(), source=source)


def test_a_briefing_has_rules_decisions_what_fails_and_where_work_stopped(agent, brain, clone):
    agent.tell(
        EventKind.PROMPT, prompt="Always write tests first. Let's use httpx instead of requests. Then port the client"
    )
    agent.edits("client.py", "requests", "httpx")
    agent.runs("pytest tests/test_client.py", "E  TypeError: timeout\n1 failed in 1s", True)
    agent.tell(EventKind.SESSION_END)
    told = Briefing(brain).context(start(brain, clone))
    for words in ("Always write tests first", "httpx instead of requests", "Still failing", "TypeError"):
        assert words in told
    assert len(told) <= BUDGET


def test_a_briefing_names_the_files_that_change_most(brain, clone):
    for number, files in enumerate((["etl/load.py", "etl/once.py"], ["etl/load.py", "etl/pool.py"], ["etl/pool.py"])):
        agent = Agent(brain, clone, f"s{number}")
        agent.tell(EventKind.PROMPT, prompt=f"Repair the nightly import, part {number} of the plan")
        for path in files:
            agent.edits(path, "a", f"b{number}")
        agent.edits("etl/load.py", "c", f"d{number}")
        agent.tell(EventKind.SESSION_END)
    told = Briefing(brain).context(start(brain, clone))
    _, _, hot = told.partition("Files that change most:\n")
    assert hot.splitlines() == ["- etl/load.py", "- etl/pool.py"]


def test_where_a_session_that_crashed_stopped_is_told_to_the_next_one(agent, brain, clone):
    agent.tell(EventKind.SESSION_START, source="startup")
    agent.tell(EventKind.PROMPT, prompt="Rewrite the loader to use upserts everywhere")
    agent.tell(EventKind.TOOL, tool="TodoWrite", input={"todos": [{"content": "port load()", "status": "in_progress"}]})
    agent.edits("etl/load.py", "a", "b")
    agent.runs("pytest tests/test_load.py", "E  KeyError: 'id'\n1 failed in 1s", True)
    # Nobody says that it ends: the agent was killed. The next one starts in a new process.
    told = Briefing(brain, Sessions()).context(start(brain, clone, session="s2"))
    _, _, stopped = told.partition("Where work stopped last time:\n")
    for words in ("Task: Rewrite the loader", "Plan: [in_progress] port load()", "Edited: etl/load.py",
                  "Still failing: pytest tests/test_load.py", "KeyError: 'id'"):  # fmt: skip
        assert words in stopped
    elsewhere = start(brain, clone.parent, session="s3")
    assert "Rewrite the loader" not in Briefing(brain, Sessions()).context(elsewhere)


def test_what_no_longer_fails_is_not_told_as_failing(agent, brain, clone):
    agent.runs("pytest tests/test_client.py -v", "E  TypeError: timeout\n1 failed in 1s", True)
    agent.edits("client.py", "a", "b")
    agent.runs("pytest tests/test_client.py", "1 passed in 1s", False)
    assert "Known to fail" not in Briefing(brain).context(start(brain, clone))


def test_after_a_compaction_the_state_is_restored(agent, brain, clone):
    agent.tell(EventKind.PROMPT, prompt="Port the client to httpx and keep the retries")
    agent.tell(EventKind.TOOL, tool="TodoWrite", input={"todos": [{"content": "port get()", "status": "completed"}]})
    agent.edits("client.py", "requests", "httpx")
    agent.tell(EventKind.COMPACT, source="auto")
    told = Briefing(brain).context(start(brain, clone, session="s1", source="compact"))
    for words in ("Port the client to httpx", "port get()", "client.py"):
        assert words in told


def test_a_prompt_is_told_no_more_than_its_budget(agent, brain, clone):
    for number in range(6):
        agent.runs("make build", f"error: linker failed on object {'x' * 900} symbol_{number}", True)
        agent.edits(f"src/file{number}.c", "a", "b")
        agent.runs("make build", "built", False)
    prompt = "make build says: linker failed on object, symbol not found"
    event = Event("p", "claude-code", EventKind.PROMPT, "s7", str(clone), time.time(), prompt=prompt)
    told = Briefing(brain, bar=0.0).context(event)
    assert told
    assert len(told) <= PROMPT_BUDGET


@pytest.mark.parametrize("prompt", ["yes", "ok, go on", "thanks!", "continue", "lgtm", "do it"])
def test_chatter_is_no_work(prompt):
    assert not reads_like_work(prompt)


# The spool


def test_a_huge_output_is_cut_before_it_is_handed_over(brain, clone):
    event = Agent(brain, clone).event(EventKind.TOOL, output="x" * 5_000_000)
    assert spool.put(event).stat().st_size < 300_000


def test_events_are_only_for_their_owner(brain, clone):
    path = spool.put(Agent(brain, clone).event(EventKind.STOP))
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_state_that_cannot_be_read_is_a_new_session(tmp_path):
    sessions = Sessions(tmp_path)
    with sessions.changing("codex", "s1") as state:
        state.task = "port the client"
    (path,) = tmp_path.glob("*.json")
    assert sessions.load("codex", "s1").task == "port the client"
    path.write_text("{half")
    assert sessions.load("codex", "s1").task == ""


# Trimming


def test_the_useful_lines_of_a_long_log_are_kept():
    log = [f"[{n}/5000] Compiling unit_{n}.c" for n in range(5000)]
    log[3000] = "src/pool.c:41:7: error: use of undeclared identifier 'retries'"
    log += ["make: *** [Makefile:12: all] Error 1"]
    kept = excerpt("\n".join(log), 600)
    assert "undeclared identifier" in kept
    assert "Error 1" in kept
    assert len(kept) <= 700


def test_colours_and_progress_go():
    assert excerpt("\x1b[31mFAILED\x1b[0m tests/a.py\n10%\r50%\r100% done") == "FAILED tests/a.py\n100% done"


def test_lines_alike_are_folded():
    assert fold_repeats(["warning: unused a1", "warning: unused a2", "warning: unused a3"]) == [
        "warning: unused a1 (and 2 more like it)"
    ]


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ("3 passed, 1 failed in 2s", True),
        ("Traceback (most recent call last):\n  File x\nKeyError: 'a'", True),
        ("10 passed in 1.0s", False),
        ("0 errors, 0 warnings", False),
        ("error: could not compile `etl`", True),
        ("Already up to date.", False),
    ],
)
def test_how_a_command_ended_is_read_from_its_output(output, failed):
    assert looks_failed("make", output) is failed


def test_an_error_has_a_name_and_a_form_without_what_differs():
    one = 'Traceback\n  File "a.py", line 3\nMemoryError: Unable to allocate 47.3 GiB at 0x7f3a2b1c9d00'
    other = 'Traceback\n  File "a.py", line 9\nMemoryError: Unable to allocate 12.0 GiB at 0x7f11111111ff'
    assert headline(one).startswith("MemoryError")
    assert signature(headline(one)) == signature(headline(other))


def test_commands_are_the_same_attempt_whatever_their_verbosity():
    assert command_key("cd /x && pytest tests/a.py -v 2>&1 | tail -5", "/x") == command_key("pytest tests/a.py", "/x")


def test_only_the_latest_sessions_keep_their_files(tmp_path, monkeypatch):
    monkeypatch.setattr("rmem.team.sessions._MOST", 40)
    sessions = Sessions(tmp_path)
    for number in range(65):
        sessions.save(SessionState("claude-code", f"s{number}", started=float(number)))
        os.utime(sessions._path("claude-code", f"s{number}"), (number + 1e9, number + 1e9))
    held = [state.session for state in sessions.all()]
    assert 40 <= len(held) <= 50
    assert held[0] == "s64"
    assert "s0" not in held
