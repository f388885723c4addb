"""What is told at the start of a session and after it: whole lines, people before commits, nothing twice, and noted as
told is what was told."""

from __future__ import annotations

import itertools
import subprocess
import time

import pytest

from rmem import Brain
from rmem.team.briefing import BUDGET, PROMPT_BUDGET, Briefing
from rmem.team.events import Event, EventKind
from rmem.team.identity import repository
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.team.sessions import Sessions

NUMBERS = itertools.count()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "clone"
    folder.mkdir()
    for words in ("init -q", "remote add origin git@github.com:acme/etl.git", "config user.email bob@acme.io"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return repository(folder)


@pytest.fixture
def team(tmp_path):
    with Brain(tmp_path / "team.db") as brain:
        yield TeamMemory(brain, author="ann@acme.io")


def keep(team, here, text, kind="decision", agent="claude-code", **more):
    note = Note(text, kind, author="ann@acme.io", agent=agent, session=f"s-{next(NUMBERS)}", **more)
    return team.remember(note.at(here)).memory_id


def event(here, kind, session="new", **more):
    return Event(str(next(NUMBERS)), "codex", kind, session, str(here.root), time.time(), **more)


def started(here, **more):
    return event(here, EventKind.SESSION_START, source="startup", **more)


def test_only_whole_lines_are_told_and_no_more_than_the_budget(team, here):
    rules = [f"Always keep rule number {n}: {'word ' * 40}end{n}." for n in range(30)]
    for rule in rules:
        keep(team, here, rule, "preference")
    for n in range(30):
        keep(team, here, f"We chose option {n}: {'because ' * 30}end{n}.")
    told = Briefing(team.brain).context(started(here))
    assert 0.8 * BUDGET < len(told) <= BUDGET
    for line in told.splitlines():
        if line.startswith("- Always"):
            assert line[2:] in rules
        elif line.startswith("- [decision]"):
            assert line.endswith(")")


def test_exactly_what_was_told_is_noted_as_told(team, here):
    ids = {keep(team, here, f"We chose option {n}: {'because ' * 33}end{n}."): n for n in range(8)}
    rules = [keep(team, here, f"Always follow rule {n}: {'word ' * 50}end{n}.", "preference") for n in range(8)]
    sessions = Sessions()
    told = Briefing(team.brain, sessions).context(started(here))
    injected = sessions.load("codex", "new").injected
    shown = [key for key, n in ids.items() if f"option {n}:" in told]
    shown += [key for n, key in enumerate(rules) if f"rule {n}:" in told]
    assert len(shown) < 16, "everything fits: the test shows nothing"
    assert set(injected) == set(shown)
    assert {entry.memory for entry in team.brain.store.audit() if entry.action == "inject"} == set(shown)


def test_what_did_not_fit_at_the_start_can_be_told_for_a_prompt(team, here):
    for n in range(14):
        keep(team, here, f"We chose option {n}: {'word ' * 40}end{n}.", importance=0.9)
    keep(team, here, "The carrier import retries UPS timeouts three times with jitter.", importance=0.5)
    briefing = Briefing(team.brain, Sessions())
    assert "UPS timeouts" not in briefing.context(started(here))
    asked = event(here, EventKind.PROMPT, prompt="the carrier import fails on UPS timeouts, add retries")
    assert "UPS timeouts" in briefing.context(asked)


def test_what_people_decided_goes_before_imported_commits(team, here):
    for n in range(60):
        keep(team, here, f"Use library{n} instead of tool{n}", agent="git", importance=0.45, when=time.time() + n)
    keep(team, here, "We decided to keep invoices in EUR cents.", importance=0.3, when=time.time() - 90 * 86_400)
    told = Briefing(team.brain).context(started(here))
    decisions = told[told.index("Decisions and conventions here") :].splitlines()
    assert "EUR cents" in decisions[1]


def test_a_prompt_does_not_repeat_what_the_briefing_said(team, here):
    keep(team, here, "We decided to keep invoices in EUR cents, never in floats.")
    briefing = Briefing(team.brain, Sessions())
    assert "EUR cents" in briefing.context(started(here))
    asked = event(here, EventKind.PROMPT, prompt="should invoices be kept in EUR cents or in floats?")
    assert briefing.context(asked) == ""
    assert "EUR cents" in briefing.context(asked._replace(session="another"))


def test_a_long_experience_is_told_by_its_first_whole_lines(team, here):
    lines = [f"Line {n} of the carrier outage report: {'detail ' * 20}" for n in range(60)]
    keep(team, here, "\n".join(lines), "error_fix")
    asked = event(here, EventKind.PROMPT, prompt="another carrier outage: where is the report and its detail lines?")
    told = Briefing(team.brain, bar=0.0).context(asked)
    assert len(told) <= PROMPT_BUDGET
    body = [line for line in told.splitlines() if "carrier outage report" in line]
    assert len(body) > 3
    assert all(line.rstrip() in {*map(str.rstrip, lines)} for line in body[1:-1])


def test_a_failing_command_is_told_the_fix(team, here):
    error = "KeyError: 'carrier_code'\nSeen when running `pytest`."
    keep(team, here, f"{error}\nFix: use row.get in etl/load.py", "error_fix")
    keep(team, here, "We decided to keep invoices in EUR cents.")
    output = "tests/test_load.py F\nE   KeyError: 'carrier_code'\n1 failed in 2.1s"
    ran = {"tool": "Bash", "action": "shell", "command": "pytest -q -k 'load and not slow'", "output": output}
    told = Briefing(team.brain, Sessions()).context(event(here, EventKind.TOOL, **ran, failed=True))
    assert "use row.get" in told
    assert "EUR cents" not in told


@pytest.mark.parametrize("ran", [
    {"action": "shell", "command": "cat log.txt", "failed": False},
    {"action": "read", "command": "", "failed": None},
    {"action": "edit", "command": "", "failed": True},
])  # fmt: skip
def test_what_is_no_failing_command_is_told_nothing(team, here, ran):
    keep(team, here, "KeyError: 'carrier_code'\nFix: use row.get in etl/load.py", "error_fix")
    failing = event(here, EventKind.TOOL, tool="x", output="KeyError: 'carrier_code'", **ran)
    assert Briefing(team.brain, Sessions()).context(failing) == ""


def test_a_note_that_is_learned_again_after_it_was_superseded_holds_again(team, here):
    first = keep(team, here, "We deploy with Jenkins")
    keep(team, here, "We deploy with Ansible", supersedes=first)
    assert keep(team, here, "We deploy with Jenkins") == first
    known = team.get(first).memory
    assert known.tags["state"] == "current"
    assert not {"valid_until", "superseded_by"} & set(known.contents)
