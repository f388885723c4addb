"""What a member is told of others' memories is true: who said it, whose work it was, and what becomes of a change."""

from __future__ import annotations

import subprocess
import time

import pytest
from click.testing import CliRunner

from rmem import Brain
from rmem.cli.app import rmem
from rmem.team import known_repositories
from rmem.team.briefing import Briefing
from rmem.team.capture import Capture
from rmem.team.events import Event, EventKind
from rmem.team.login import Login
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.team.sync import sync

REPOSITORY = "github.com/acme/etl"


class Member:
    """Somebody with a clone, a memory and a home of their own."""

    def __init__(self, name, folder, server, monkeypatch):
        self.name, self.home, self.clone = name, folder / name, folder / f"{name}-etl"
        self.login, self._monkeypatch = Login(server.url, "default", member=name), monkeypatch
        self.token = server.token_for("default", "default", "WRITE", member=name)
        self.home.mkdir()
        self.clone.mkdir()
        address = f"https://{REPOSITORY}.git"
        for words in ("init -q", f"remote add origin {address}", f"config user.email {name}@acme.io"):
            subprocess.run(["git", *words.split()], cwd=self.clone, check=True)
        self.brain = Brain(self.home / "memories.db")
        self.team = TeamMemory(self.brain, author=f"{name}@acme.io")
        self._number = 0

    def at_home(self):
        self._monkeypatch.setenv("RMEM_HOME", str(self.home))
        self._monkeypatch.chdir(self.clone)

    def does(self, kind, **more):
        self.at_home()
        self._number += 1
        when = time.time() - 100 + self._number
        event = Event(f"{self.name}{self._number}", "codex", kind, f"s-{self.name}", str(self.clone), when, **more)
        Capture(self.brain).take(event)

    def runs(self, command, output, failed):
        self.does(EventKind.TOOL, tool="shell", action="shell", command=command, output=output, failed=failed)

    def fixes(self):
        given = {"file_path": "read.py", "old_string": "row['code']", "new_string": "row.get('code')"}
        self.does(EventKind.PROMPT, prompt="Make the import of carriers work")
        self.runs("pytest", "E   KeyError: 'code'\n1 failed", True)
        self.does(EventKind.TOOL, tool="edit", action="edit", files=["read.py"], input=given)
        self.runs("pytest", "1 passed", False)

    def sync(self):
        self.at_home()
        known_repositories.note_repository(REPOSITORY)
        return sync(self.brain, self.login, self.token)

    def briefing(self):
        self.at_home()
        start = Event("b", "codex", EventKind.SESSION_START, "new", str(self.clone), time.time(), source="startup")
        return Briefing(self.brain).context(start)


@pytest.fixture
def people(server, tmp_path, monkeypatch):
    made = [Member(name, tmp_path, server, monkeypatch) for name in ("ann", "bob")]
    yield made
    for one in made:
        one.brain.close()


def test_the_reason_of_a_fix_reaches_the_team_when_the_fix_was_shared_before(people):
    ann, bob = people
    ann.fixes()
    ann.sync()
    ann.does(EventKind.STOP, message="The test failed because carriers of the new kind have no code.")
    for one in (ann, bob, ann):
        one.sync()
    for one in (ann, bob):
        (memory,) = one.brain.memories({"type": "error_fix"})
        assert memory.text.endswith("Why: The test failed because carriers of the new kind have no code.")
        assert memory.contents["reason"] in memory.text


def test_a_commit_is_its_authors_whoever_imported_it(people):
    ann, bob = people
    commit = Note(
        "Switch to parquet", "decision", author="hynek@example.org", agent="git", repository=REPOSITORY,
        commit="c" * 40, key="commit c",
    )  # fmt: skip
    ann.team.remember(commit)
    ann.team.remember(Note("Deploys run from tags only", "decision", author="ann@acme.io", repository=REPOSITORY))
    ann.sync()
    bob.sync()
    lines = [line for line in bob.briefing().splitlines() if "decision" in line]
    assert [("hynek@example.org" in line, "(ann," in line) for line in lines] == [(False, True), (True, False)]
    found = bob.team.who_knows("switch to parquet", repository=REPOSITORY)
    assert found[0]["author"] == "hynek@example.org"
    assert bob.brain.get(commit.id).actor == "ann"  # who may change it


def test_the_last_work_of_somebody_else_is_called_theirs(people):
    ann, bob = people
    ann.fixes()
    ann.does(EventKind.SESSION_END, source="exit")
    assert "Where work stopped last time (" in ann.briefing()
    ann.sync()
    bob.sync()
    assert "Where work of ann stopped last time (" in bob.briefing()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["forget", "--yes"], "unless you are an administrator, it comes back"),
        (["update", "--text", "B"], "unless you are an administrator, the old words come back"),
    ],
)
def test_a_change_of_anothers_memory_says_that_it_may_not_last(people, command, said):
    ann, bob = people
    key = ann.team.remember(Note("A", "decision", author="ann@acme.io", repository=REPOSITORY)).memory_id
    own = bob.team.remember(Note("C", "decision", author="bob@acme.io", repository=REPOSITORY)).memory_id
    for one in (ann, bob, ann, bob):
        one.sync()
    done = CliRunner().invoke(rmem, [command[0], own, *command[1:]])
    assert "administrator" not in done.stderr
    done = CliRunner().invoke(rmem, [command[0], key, *command[1:]])
    assert f"A memory of ann: {said} with the next sync" in done.stderr


def test_words_that_are_changed_on_the_server_reach_the_members(people, server):
    ann, bob = people
    key = ann.team.remember(Note("The key is 1234", "codebase", author="ann@acme.io", repository=REPOSITORY)).memory_id
    for one in (ann, bob):
        one.sync()
    admin = server.client(server.token_for("default", "default", "ADMIN", member="eve"))
    answer = admin.patch(
        f"/workspaces/default/memories/{key}", json={"text": "The key is in the safe"}, params={"keep_earlier": False}
    )
    assert answer.status_code == 200
    assert answer.headers["etag"] == admin.get(f"/workspaces/default/memories/{key}").headers["etag"]
    for one in (ann, bob):
        one.sync()
        assert one.brain.get(key).text == "The key is in the safe"


def test_what_is_made_personal_on_the_server_leaves_the_others(people, server):
    ann, bob = people
    key = ann.team.remember(Note("My draft", "codebase", author="ann@acme.io", repository=REPOSITORY)).memory_id
    for one in (ann, bob):
        one.sync()
    client = server.client(ann.token)
    assert client.patch(f"/workspaces/default/memories/{key}", json={"place": "personal:ann"}).status_code == 200
    bob.sync()
    assert bob.brain.get(key) is None
