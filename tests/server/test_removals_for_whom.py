"""A removal reaches those who had the memory; of a repository that a member does not have they hear nothing."""

from __future__ import annotations

import pytest

from rmem import Brain
from rmem.team import known_repositories
from rmem.team.admission import Sender, admit
from rmem.team.exchange import Receiver, changes
from rmem.team.login import Login
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.team.sync import sync

SITE, ETL = "github.com/acme/site", "github.com/acme/etl"
AT = "/workspaces/default"


class Member:
    """Somebody with a memory and a home of their own."""

    def __init__(self, name, repositories, folder, server, monkeypatch):
        self.author, self.home, self._repositories = name, folder / name, repositories
        self.login, self._monkeypatch = Login(server.url, "default"), monkeypatch
        self.token = server.token_for("default", "default", "WRITE", member=name)
        self.client = server.client(self.token)
        self.home.mkdir()
        self.brain = Brain(self.home / "memories.db")
        self.team = TeamMemory(self.brain, author=name)

    def learn(self, text, repository=SITE):
        return self.team.remember(Note(text, "codebase", author=self.author, repository=repository)).memory_id

    def sync(self):
        self._monkeypatch.setenv("RMEM_HOME", str(self.home))
        for name in self._repositories:
            known_repositories.note_repository(name)
        return sync(self.brain, self.login, self.token)

    def pulled(self):
        query = [("repository", name) for name in self._repositories]
        return self.client.get(f"{AT}/sync", params=query)

    def ids(self):
        return {memory.memory_id for memory in self.brain.memories(limit=None)}


@pytest.fixture
def people(server, tmp_path, monkeypatch):
    """ann and bob have the site, cat has the etl job only."""
    having = {"ann": [SITE, ETL], "bob": [SITE], "cat": [ETL]}
    made = {name: Member(name, has, tmp_path, server, monkeypatch) for name, has in having.items()}
    yield made.values()
    for one in made.values():
        one.brain.close()


def meet(*members):
    for one in (*members, *members):
        one.sync()


@pytest.mark.parametrize("removal", ["forget", "unshare", "delete by rest", "forget by rest"])
def test_members_without_the_repository_do_not_hear_of_a_removal(people, removal):
    ann, bob, cat = people
    key = ann.learn("The cache key holds the tenant")
    meet(ann, bob, cat)
    assert key in bob.ids()
    if removal == "forget":
        ann.team.forget(key)
    elif removal == "unshare":
        ann.team.share(key, "personal")
    elif removal == "delete by rest":
        assert ann.client.delete(f"{AT}/memories/{key}").status_code == 200
    else:
        where = {"where": {"place": f"repo:{SITE}"}}
        assert ann.client.post(f"{AT}/forget", json=where).json()["ids"] == [key]
    meet(ann, bob, cat)
    assert key not in bob.ids()
    assert key in bob.pulled().text
    assert key not in cat.pulled().text


def test_a_memory_that_came_by_rest_is_removed_for_those_who_have_its_repository(people):
    ann, bob, cat = people
    given = {"text": "Deploys run from tags", "type": "decision", "place": f"repo:{SITE}", "id": "team-tags"}
    assert ann.client.post(f"{AT}/memories", json=given).status_code == 201
    meet(bob, cat)
    assert "team-tags" in bob.ids()
    assert ann.client.delete(f"{AT}/memories/team-tags").status_code == 200
    meet(bob, cat)
    assert "team-tags" not in bob.ids()
    assert "team-tags" not in cat.pulled().text


def test_what_is_no_longer_the_organisations_leaves_those_without_its_repository(people):
    ann, bob, cat = people
    key = ann.learn("Salaries are paid on the 25th")
    ann.team.share(key, "organisation")
    meet(ann, bob, cat)
    assert key in cat.ids()
    ann.team.share(key, "repository")
    meet(ann, bob, cat)
    assert key in bob.ids()
    assert key not in cat.ids()


def test_the_log_names_no_repository(people, server):
    ann, bob, _ = people
    ann.team.forget(ann.learn("The cache key holds the tenant"))
    ann.learn("Deploys run from tags")
    meet(ann, bob)
    assert not [entry for entry in ann.brain.store.audit() if "acme" in str(entry.detail)]


def test_of_a_log_that_does_not_say_who_had_a_memory_no_ids_go_to_others(tmp_path):
    with Brain(tmp_path / "old.db") as brain:
        kept, gone, own = (brain.remember(text, type="decision", place=f"repo:{SITE}") for text in ("1", "2", "3"))
        for memory in (kept, gone, own):
            brain.store.record("ann", "sync", [memory.memory_id], version=1)
        brain.forget(gone.memory_id)
        brain.update(own.memory_id, place="personal:ann")
        etl = {"organisation", f"repo:{ETL}"}
        found = changes(brain, 0, receiver=Receiver(etl, etl))
    assert (found.gone, found.memories) == ([], [])


def test_a_removal_says_whom_it_concerns_where_the_log_did_not(tmp_path):
    with Brain(tmp_path / "old.db") as brain:
        memory = brain.remember("Old", type="decision", place=f"repo:{SITE}", id="team-old", actor="ann")
        brain.store.record("ann", "sync", [memory.memory_id], version=1)
        assert admit(brain, [], [{"id": memory.memory_id, "version": 2}], Sender("ann")).changed == 1
        heard = {
            name: [one["id"] for one in changes(brain, 0, receiver=Receiver({name}, {name})).gone]
            for name in (f"repo:{SITE}", f"repo:{ETL}")
        }
    assert heard == {f"repo:{SITE}": ["team-old"], f"repo:{ETL}": []}
