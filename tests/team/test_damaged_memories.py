"""What our own code keeps beside people's words stays as it is, and one damaged memory harms no answer."""

from __future__ import annotations

import json
import random
import subprocess
import time

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from rmem import Brain
from rmem.cli.app import rmem
from rmem.mcp.answers import hit_of, memory_of
from rmem.models import Bookkeeping, Memory
from rmem.privacy import PrivacyPolicy
from rmem.team.briefing import Briefing
from rmem.team.events import Event, EventKind
from rmem.team.identity import repository
from rmem.team.importers.run import import_git
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.team.review import contradictions, out_of_date
from rmem.team.staleness import prints_of
from rmem.team.validation import findings, repair

# Whole numbers of less than 48 bits, as `staleness` makes them, that are card numbers to the letter.
CARDS = [30569309025904, 36227206271667, 6011000990139, 4222222222222]
DAMAGES = [
    {"sources": ["x"]},
    {"sources": "ann"},
    {"sources": [{"author": 5, "when": 1.0}]},
    {"sources": [{"author": "ann@acme.io", "when": "yesterday"}]},
    {"count": "many"},
    {"valid_until": "soon"},
    {"valid_from": []},
    {"files": 5},
    {"files": [5]},
    {"repository": 7},
    {"commit": ["a"]},
    {"scope": "galaxy"},
    {"prints": {"pool.py": ["[card]", 17]}},
    {"prints": "[card]"},
]


@pytest.fixture
def here(tmp_path):
    root = tmp_path / "clone"
    root.mkdir()
    (root / "pool.py").write_text("\n".join(f"line {n}" for n in range(40)))
    named = ["-c", "user.name=n", "-c", "user.email=n@acme.io"]
    for words in (["init", "-q"], ["remote", "add", "origin", "git@github.com:acme/etl.git"], ["add", "-A"],
                  [*named, "commit", "-qm", "first"]):  # fmt: skip
        subprocess.run(["git", *words], cwd=root, check=True)
    return repository(root)


@pytest.fixture
def team(tmp_path):
    with Brain(tmp_path / "memories.db", privacy="default", durability="normal") as brain:
        yield TeamMemory(brain, author="ann@acme.io")


def damaged(team, here, damage):
    """A memory that an older version, or somebody else, left behind, and a sound one beside it."""
    for text in ("The connection pool retries three times", "The pool of connections is drained at night"):
        note = Note(text, "codebase", author="ann@acme.io", files=["pool.py"], commit="0" * 40)
        kept = team.remember(note.at(here))
    bad = team.brain.memories(order="oldest")[0]

    def spoil(memory):
        memory.contents = {**memory.contents, "commit": "f" * 40, **damage}
        return memory

    team.brain.store.change(bad.memory_id, spoil)
    return bad.memory_id, kept.memory_id


def memory_with(**contents):
    return Memory("team-1", "a", 0, 0.0, {"text": "t", **contents}, Bookkeeping(), text="t")


def test_hashes_of_our_own_are_not_masked():
    prints = {"httpx/_client.py": CARDS}
    assert PrivacyPolicy.default().apply(memory_with(prints=prints)).contents["prints"] == prints


def test_names_of_files_beside_them_are():
    kept = PrivacyPolicy.default().apply(memory_with(prints={"letters/anna@example.org": CARDS}))
    assert "anna@example.org" not in json.dumps(kept.contents)
    assert list(kept.contents["prints"].values()) == [CARDS]


def test_what_only_claims_to_be_a_print_is_masked():
    kept = PrivacyPolicy.default().apply(memory_with(prints={"card": [4111111111111111]}, other=[36227206271667]))
    assert kept.contents["prints"] == {"card": ["[card]"]}
    assert kept.contents["other"] == [36227206271667], "a number stays one unless its key says what it is"


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=40))
def test_prints_of_any_file_stay_what_they_are(tmp_path_factory, lines):
    root = tmp_path_factory.mktemp("files")
    (root / "a.py").write_bytes(b"\n".join(lines))
    prints = prints_of(root, ["a.py"])
    assert PrivacyPolicy.default().apply(memory_with(prints=prints)).contents.get("prints", {}) == prints


def test_a_history_of_many_files_is_imported_unharmed(tmp_path, monkeypatch):
    """One hash in two hundred passes for a card number: with 400 files of 40 lines some do."""
    monkeypatch.setenv("HOME", str(tmp_path))
    root, dice = tmp_path / "clone", random.Random(7)
    root.mkdir()
    named = ["-c", "user.name=n", "-c", "user.email=n@acme.io"]
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    for number in range(40):
        for part in range(5):
            lines = (f"{dice.random()}" for _ in range(40))
            (root / f"module_{number}_{part}.py").write_text("\n".join(lines))
        subprocess.run(["git", "add", "-A"], cwd=root, check=True)
        told = f"Fix the crash of module {number} when the queue is empty\n\nThe worker raised KeyError."
        subprocess.run(["git", *named, "commit", "-qm", told], cwd=root, check=True)
    with Brain(tmp_path / "team.db", privacy="default", durability="normal") as brain:
        import_git(brain, root)
        kept = [memory.contents.get("prints", {}) for memory in brain.memories(limit=None)]
        hashes = [one for prints in kept for of_file in prints.values() for one in of_file]
    assert len(hashes) > 5000
    assert {type(one) for one in hashes} == {int}


@pytest.mark.parametrize("damage", DAMAGES, ids=json.dumps)
def test_a_damaged_memory_fails_no_answer(team, here, damage):
    _, whole = damaged(team, here, damage)
    found = team.recall("connection pool", repository=here)
    assert whole in [one.id for one in found]
    assert whole in [one.id for one in team.recent(repository=here)]
    assert whole in [one.id for one in team.file_history("pool.py", repository=here)]
    assert team.who_knows("connection pool", repository=here)[0]["author"] == "ann@acme.io"
    for one in [*found, *team.recent(repository=here)]:
        assert hit_of(team.check_stale(one, here))["id"] == memory_of(one)["id"] == one.id
    contradictions(team, here)
    out_of_date(team, here)
    start = Event("1", "codex", EventKind.SESSION_START, "s", str(here.root), time.time())
    asking = Event(
        "2", "codex", EventKind.PROMPT, "s", str(here.root), time.time(), prompt="why does the pool retry thrice"
    )
    briefing = Briefing(team.brain, bar=0.0)
    assert "drained at night" in briefing.context(start)
    briefing.context(asking)


def test_a_page_is_full_although_a_damaged_memory_lies_in_it(team, here):
    for number in range(6):
        team.remember(Note(f"Service {number} listens on port {7000 + number}", "codebase", author="a").at(here))
    bad = team.brain.memories(limit=6)[1].memory_id
    team.brain.store.change(bad, lambda memory: _spoilt(memory))
    first, second = team.recent(repository=here, limit=3), team.recent(repository=here, limit=3, offset=3)
    assert len(first) == 3
    assert len({one.id for one in [*first, *second]}) == 5


def _spoilt(memory):
    memory.contents = {**memory.contents, "count": "many"}
    return memory


@pytest.mark.parametrize("damage", DAMAGES, ids=json.dumps)
def test_the_doctor_shows_and_mends_it(team, here, damage):
    bad, _ = damaged(team, here, damage)
    (finding,) = findings(team.brain)
    assert not finding.ok
    assert bad in finding.detail
    assert next(iter(damage)) in finding.detail
    text = team.brain.get(bad).text
    assert repair(team.brain) == 1
    assert repair(team.brain) == 0
    (finding,) = findings(team.brain)
    assert finding.ok
    assert team.get(bad).text == text
    assert team.remember(Note(text, "codebase", author="bob@acme.io", session="2").at(here)).contents["count"] >= 2


def test_what_is_no_note_of_a_team_is_left_alone(team):
    team.brain.remember("My own", type="task", metadata={"files": 5, "valid_until": "soon"})
    assert findings(team.brain) == []
    assert repair(team.brain) == 0


def test_rmem_doctor_tells_and_repairs(tmp_path, monkeypatch, here):
    monkeypatch.setenv("RMEM_HOME", str(tmp_path))
    with Brain(privacy="default") as brain:
        damaged(TeamMemory(brain, author="ann@acme.io"), here, {"prints": {"pool.py": ["[card]", 17]}})
    told = CliRunner().invoke(rmem, ["doctor"])
    assert told.exit_code == 6
    assert "1 of 2 are damaged" in told.output
    told = CliRunner().invoke(rmem, ["doctor", "--repair"])
    assert told.exit_code == 0, told.output
    assert "took out of 1 memories" in told.output
