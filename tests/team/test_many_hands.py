"""Several writers at once: every count, source and scope that somebody wrote is there afterwards."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from rmem import Brain
from rmem.privacy import PrivacyPolicy
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note

SCRIPT = """
import sys
from rmem import Brain
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
with Brain(sys.argv[1], durability="normal") as brain:
    team = TeamMemory(brain, author=sys.argv[2])
    for number in range(12):
        where = {"repository": "x", "session": str(number)}
        team.remember(Note("Use ruff for formatting", "decision", author=sys.argv[2], **where))
"""


def note(**more):
    return Note("Use ruff for formatting", "decision", author="ann@acme.io", repository="x", **more)


def test_two_processes_that_learn_the_same_count_every_time(tmp_path):
    path = tmp_path / "team.db"
    with Brain(path) as brain:
        TeamMemory(brain, author="ann@acme.io").remember(note())
    writers = [
        subprocess.Popen([sys.executable, "-c", SCRIPT, str(path), who]) for who in ("bob@acme.io", "eve@acme.io")
    ]
    assert [one.wait(60) for one in writers] == [0, 0]
    with Brain(path) as brain:
        (memory,) = brain.memories()
        assert memory.contents["count"] == 25
        assert len(memory.contents["sources"]) == 25
        assert memory.contents["version"] == 25


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_threads_that_learn_and_share_at_once_lose_nothing(tmp_path, request, kind):
    address = tmp_path / "team.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    with Brain(address) as brain:
        team = TeamMemory(brain, author="ann@acme.io")
        key = note().id

        def learn(number):
            team.remember(note(session=str(number)))
            if number % 4 == 0:
                team.share(key, "organisation")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(learn, range(24)))
        (memory,) = brain.memories()
    assert memory.contents["count"] == 24
    assert memory.place == "organisation"


def test_the_log_tells_of_each_change_that_was_made_and_of_no_other(tmp_path):
    with Brain(tmp_path / "team.db") as brain:
        team = TeamMemory(brain, author="ann@acme.io")
        told = {"session": "1", "when": 1_700_000_000.0}
        team.remember(note(**told))
        team.remember(note(**told))  # the same again, after a crash perhaps
        team.remember(note(session="2"))
        entries = [(entry.action, entry.detail["version"]) for entry in reversed(brain.store.audit())]
    assert entries == [("remember", 1), ("learn again", 2)]


def test_a_team_memory_leaves_the_policy_of_its_brain_alone(tmp_path):
    policy = PrivacyPolicy.default()
    with Brain(tmp_path / "team.db", privacy=policy) as brain:
        team = TeamMemory(brain, author="ann@acme.io")
        kept = team.remember(note())
        assert brain.privacy is policy
        assert kept.actor == "ann@acme.io"
        assert kept.contents["sources"][0]["author"] == "ann@acme.io"
        other = brain.remember("Ask ann@acme.io about it")
        assert "ann@acme.io" not in other.text
