"""Random histories of three members on a real server, with clocks that are hours apart: whatever they do and in
whatever order they meet, all replicas end equal, and nobody removes what is not theirs."""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from running_server import Running

from rmem import Brain
from rmem.server.settings import ServerSettings
from rmem.team import known_repositories
from rmem.team.exchange import document
from rmem.team.login import Login
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note, is_shared
from rmem.team.sync import sync

REPOSITORY = "github.com/acme/etl"
TEXTS = ("The proxy listens on port 8081", "Deploys run from tags only")
NAMES = ("ann", "bob", "eve")  # eve is an administrator
SKEWS = (0.0, -3600.0, 7200.0)
_numbers = itertools.count()


@contextmanager
def clock(skew):
    """A member whose clock is wrong by some seconds."""
    real = time.time
    time.time = lambda: real() + skew
    try:
        yield
    finally:
        time.time = real


class Member:
    def __init__(self, name, folder, url, token, workspace, skew, monkeypatch):
        self.name, self.home, self.skew = name, folder / name, skew
        self.login, self.token, self._monkeypatch = Login(url, workspace, "", name), token, monkeypatch
        self.home.mkdir()
        self.brain = Brain(self.home / "memories.db", embedder="none", durability="normal")
        self.team = TeamMemory(self.brain, author=name)

    def do(self, action, number):
        """Do something with one of the memories, if it is there."""
        note = Note(TEXTS[number], "codebase", author=self.name, repository=REPOSITORY, session=str(next(_numbers)))
        known = self.brain.get(note.id)
        with clock(self.skew):
            if action == "learn":
                self.team.remember(note)
            elif known is None:
                return False
            elif action == "share" and known.actor == self.name:
                self.team.share(note.id, "repository")
            elif action == "unshare" and known.actor == self.name:
                self.team.share(note.id, "personal")
            elif action == "publish":
                self.team.share(note.id, "organisation")
            elif action == "reword":
                self.team.reword(note.id, f"{TEXTS[number]} ({self.name} {next(_numbers)})")
            elif action == "forget":
                self.team.forget(note.id)
        return note.id

    def sync(self):
        self._monkeypatch.setenv("RMEM_HOME", str(self.home))
        known_repositories.note_repository(REPOSITORY)
        return sync(self.brain, self.login, self.token)

    def shared(self):
        return {m.memory_id: document(m) for m in self.brain.memories(limit=None) if is_shared(m.place)}

    def personal(self):
        return {m.memory_id for m in self.brain.memories(limit=None) if not is_shared(m.place)}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    server = Running(ServerSettings(data=tmp_path_factory.mktemp("histories"))).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def team_of_three(running, tmp_path_factory):
    monkeypatch = pytest.MonkeyPatch()

    @contextmanager
    def make():
        workspace = f"w{next(_numbers)}"
        folder = tmp_path_factory.mktemp("members")
        members = []
        for name, skew in zip(NAMES, SKEWS, strict=True):
            token = running.token_for("default", workspace, "ADMIN" if name == "eve" else "WRITE", member=name)
            members.append(Member(name, folder, running.url, token, workspace, skew, monkeypatch))
        admin = running.client(members[2].token)

        def there():
            found = admin.get(f"/workspaces/{workspace}/memories").json()["memories"]
            return {one["memory_id"]: one for one in found}

        yield members, there
        for one in members:
            one.brain.close()

    yield make
    monkeypatch.undo()


def told(one):
    """What the server's REST interface says of a memory, as it travels."""
    return {
        "id": one["memory_id"],
        "text": one["text"],
        "kind": one["metadata"]["memory_type"],
        "agent": one["agent_id"],
        "author": one["actor"],
        "session": one["session"],
        "when": one["timestamp"],
        "importance": one["metadata"]["importance_score"],
        "place": one["place"],
        "contents": {name: part for name, part in one["contents"].items() if name != "text"},
    }


def meet(members):
    """Let all meet until nothing is new to anybody."""
    for _ in range(6):
        done = [one.sync() for one in members]
        if not any(one.sent or one.received for one in done):
            return
    raise AssertionError("they do not come to rest")


ACTIONS = ("learn", "learn", "share", "unshare", "publish", "reword", "forget", "sync", "sync", "sync")
STEPS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(ACTIONS), st.integers(0, 1)), max_size=24)


@given(STEPS)
@example([(0, "learn", 0), (0, "sync", 0), (1, "sync", 0), (0, "unshare", 0), (0, "sync", 0), (1, "sync", 0),
          (0, "share", 0), (0, "sync", 0), (1, "sync", 0)])  # fmt: skip
@example([(0, "learn", 0), (0, "sync", 0), (1, "sync", 0), (1, "forget", 0), (1, "sync", 0)])
@example([(1, "learn", 0), (1, "forget", 0), (1, "sync", 0), (2, "learn", 0), (2, "sync", 0), (1, "sync", 0)])
@example([(1, "learn", 0), (1, "sync", 0), (1, "learn", 0), (1, "forget", 0), (0, "sync", 0), (1, "sync", 0)])
def test_all_replicas_end_equal_and_nobody_removes_what_is_not_theirs(team_of_three, steps):
    with team_of_three() as (members, there):
        authors, removers = {}, {}
        for who, action, number in steps:
            member = members[who]
            if action == "sync":
                member.sync()
            else:
                key = member.do(action, number)
                if action in ("forget", "unshare") and key:
                    removers.setdefault(key, set()).add(member.name)
            for key, one in there().items():
                authors.setdefault(key, set()).add(one["actor"])
        meet(members)
        final = there()
        for member in members:
            expected = {key: told(one) for key, one in final.items() if key not in member.personal()}
            assert member.shared() == expected
        for key in authors.keys() - final.keys():
            assert removers.get(key, set()) & {*authors[key], "eve"}, f"{key} was removed by {removers.get(key)}"
