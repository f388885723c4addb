"""Who may change and remove what is shared, what travels and what does not, and what one bad memory does to others."""

from __future__ import annotations

import json
import time

import pytest
from click.testing import CliRunner

from rmem import Brain
from rmem.cli.app import rmem
from rmem.errors import RemoteError
from rmem.team import known_repositories, paths
from rmem.team.daemon import Daemon
from rmem.team.event_processor import EventProcessor
from rmem.team.exchange import changes, document
from rmem.team.login import Login, keep
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.team.sync import sync

REPOSITORY = "github.com/acme/etl"
MALFORMED = [
    {"sources": ["x"]},
    {"count": "many"},
    {"valid_until": "soon"},
    {"files": 5},
    {"version": 0},
    {"scope": "personal"},
    {"prints": {"a.py": ["[card]"]}},
]


class Member:
    """Somebody with a memory, a home and a token of their own; git knows them by their e-mail address."""

    def __init__(self, name, folder, server, role, monkeypatch):
        self.name, self.author, self.home = name, f"{name}@acme.io", folder / name
        self.token = server.token_for("default", "default", role, member=name)
        self.client = server.client(self.token)
        self.login = Login(server.url, "default")
        self.monkeypatch = monkeypatch
        self.home.mkdir()
        self.brain = Brain(self.home / "memories.db", privacy="default")
        self.team = TeamMemory(self.brain, author=self.author, aliases=[name])

    def learn(self, text, **more):
        note = Note(text, "codebase", author=self.author, agent="codex", **{"repository": REPOSITORY, **more})
        return self.team.remember(note).memory_id

    def at_home(self):
        self.monkeypatch.setenv("RMEM_HOME", str(self.home))

    def sync(self, *repositories):
        self.at_home()
        for name in repositories or (REPOSITORY,):
            known_repositories.note_repository(name)
        return sync(self.brain, self.login, self.token)

    def texts(self):
        return sorted(memory.text for memory in self.brain.memories(limit=None))

    def push(self, *memories, gone=()):
        answer = self.client.post("/workspaces/default/sync", json={"memories": list(memories), "gone": list(gone)})
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def member(server, tmp_path, monkeypatch):
    made = []

    def make(name, role="WRITE"):
        made.append(Member(name, tmp_path, server, role, monkeypatch))
        return made[-1]

    yield make
    for one in made:
        one.brain.close()


def told(text="The cache key holds the tenant", **contents):
    """A memory as somebody might push it."""
    note = Note(text, "codebase", author="ann", repository=REPOSITORY)
    return {
        "id": note.id,
        "text": text,
        "kind": "codebase",
        "agent": "codex",
        "author": "ann",
        "session": None,
        "when": 1_700_000_000.0,
        "importance": 0.5,
        "place": f"repo:{REPOSITORY}",
        "contents": {**note.contents(1_700_000_000.0), **contents},
    }


# Removing, and sharing again


def test_what_is_shared_again_after_it_was_withdrawn_is_there_for_all(member):
    ann, bob = member("ann"), member("bob")
    key = ann.learn("The cache key holds the tenant")
    for one in (ann, bob):
        one.sync()
    ann.team.share(key, "personal")
    for one in (ann, bob, ann, bob):
        one.sync()
    assert (bob.texts(), ann.texts()) == ([], ["The cache key holds the tenant"])
    ann.team.share(key, "repository")
    for one in (ann, bob, ann, bob):
        one.sync()
    assert ann.texts() == bob.texts() == ["The cache key holds the tenant"]


def test_what_is_withdrawn_is_still_found_by_its_author(member):
    ann = member("ann")
    key = ann.learn("The cache key holds the tenant")
    ann.sync()
    ann.team.share(key, "personal")
    ann.sync()
    assert [one.id for one in ann.team.recall("cache key", repository=REPOSITORY)] == [key]


def test_a_memory_that_is_changed_and_forgotten_at_once_does_not_hold_up_others(member):
    ann, bob = member("ann"), member("bob")
    key = ann.learn("The proxy listens on port 8081")
    ann.sync()
    ann.learn("The proxy listens on port 8081", session="again")
    ann.team.forget(key)
    ann.learn("Deploys run from tags only")
    for one in (ann, bob):
        one.sync()
    assert bob.texts() == ["Deploys run from tags only"]


def test_a_forget_with_a_slow_clock_counts(member, monkeypatch):
    ann, bob = member("ann"), member("bob")
    key = ann.learn("The proxy listens on port 8081")
    for one in (ann, bob):
        one.sync()
    real = time.time
    with monkeypatch.context() as slow:
        slow.setattr(time, "time", lambda: real() - 3600)
        ann.team.forget(key)
    for one in (ann, bob):
        one.sync()
    assert bob.texts() == []


def test_what_somebody_else_removed_comes_back_to_them(member):
    ann, bob, carl = member("ann"), member("bob"), member("carl")
    key = ann.learn("The cache key holds the tenant")
    for one in (ann, bob, carl):
        one.sync()
    bob.team.forget(key)
    done = bob.sync()
    (refused,) = done.refused
    assert refused["id"] == key
    assert "memory of 'ann'" in refused["error"]
    for one in (ann, bob, carl):
        one.sync()
        assert one.texts() == ["The cache key holds the tenant"]


def test_an_administrator_may_remove_what_others_learned(member):
    ann, eve = member("ann"), member("eve", role="ADMIN")
    key = ann.learn("The cache key holds the tenant")
    for one in (ann, eve):
        one.sync()
    eve.team.forget(key)
    for one in (eve, ann):
        one.sync()
    assert ann.texts() == []


def test_another_members_words_and_scope_are_not_changed_but_learning_it_too_counts(member):
    ann, bob = member("ann"), member("bob")
    key = ann.learn("The cache key holds the tenant")
    for one in (ann, bob):
        one.sync()
    bob.team.reword(key, "The cache key holds nothing")
    bob.team.share(key, "organisation")
    bob.learn("The cache key holds the tenant", session="mine")
    for one in (bob, ann):
        one.sync()
    for one in (ann, bob):
        (memory,) = one.brain.memories()
        assert (memory.text, memory.place) == ("The cache key holds the tenant", f"repo:{REPOSITORY}")
        assert memory.actor == "ann"
        assert [source["author"] for source in memory.contents["sources"]] == ["ann", "bob"]


def test_new_words_of_its_author_reach_the_others(member):
    ann, bob = member("ann"), member("bob")
    key = ann.learn("The cache key holds the tenant")
    for one in (ann, bob):
        one.sync()
    ann.brain.close()
    ann.at_home()
    done = CliRunner().invoke(rmem, ["update", key, "--text", "The cache key holds tenant and region"])
    assert done.exit_code == 0, done.output
    ann.brain = Brain(ann.home / "memories.db")
    for one in (ann, bob):
        one.sync()
    assert ann.texts() == bob.texts() == ["The cache key holds tenant and region"]


# Whose memory


def test_the_author_is_the_member_of_the_token(member):
    ann, bob = member("ann"), member("bob")
    ann.learn("The cache key holds the tenant")
    for one in (ann, bob):
        one.sync()
    (memory,) = bob.brain.memories()
    assert memory.actor == "ann"
    (source,) = memory.contents["sources"]
    assert (source["author"], source["for"]) == ("ann", "ann@acme.io")


def test_a_memory_in_somebody_elses_name_is_refused(member):
    eve = member("eve", role="ADMIN")
    (refused,) = eve.push(told())["refused"]
    assert refused["field"] == "author"
    assert "'ann'" in refused["error"]
    assert eve.client.get("/workspaces/default/memories").json()["total"] == 0


def test_sources_in_somebody_elses_name_are_the_bringers(member):
    ann = member("ann")
    ann.push(told(sources=[{"author": "carl", "agent": "codex", "when": 5.0}]))
    (memory,) = ann.client.get("/workspaces/default/memories").json()["memories"]
    assert memory["contents"]["sources"] == [{"author": "ann", "for": "carl", "agent": "codex", "when": 5.0}]


def test_the_log_names_the_person_and_the_token_on_both_sides(member, server):
    ann, bob = member("ann"), member("bob")
    key = ann.learn("The cache key holds the tenant")
    for one in (ann, bob):
        one.sync()
    ann.team.forget(key)
    for one in (ann, bob):
        one.sync()
    eve = member("eve", role="ADMIN")
    there = eve.client.get("/workspaces/default/audit").json()["entries"]
    assert [(entry["who"], entry["action"]) for entry in there] == [("ann", "forget"), ("ann", "sync")]
    assert all(entry["detail"]["token"] for entry in there)
    here = [(entry.who, entry.action) for entry in bob.brain.store.audit()]
    assert here == [("ann", "sync"), ("ann", "sync")]


def test_the_privacy_policy_of_a_reader_leaves_authors_their_names(member):
    ann, bob = member("ann@acme.io"), member("bob")
    ann.learn("Ask it of carl@acme.io")
    for one in (ann, bob):
        one.sync()
    (memory,) = bob.brain.memories()
    assert memory.actor == "ann@acme.io"
    assert "carl@acme.io" not in memory.text


# What is refused, and what goes on


@pytest.mark.parametrize("bad", MALFORMED, ids=json.dumps)
def test_a_malformed_memory_is_refused_and_the_others_go_on(member, bad):
    ann, bob = member("ann"), member("bob")
    answer = ann.push(told(**bad), told("Deploys run from tags only"), {"id": "x"}, 7)
    assert answer["changed"] == 1
    first, *others = answer["refused"]
    assert first["id"] == told()["id"]
    assert first["field"].startswith(f"contents.{next(iter(bad))}")
    assert len(others) == 2
    bob.sync()
    assert bob.texts() == ["Deploys run from tags only"]


def test_a_damaged_memory_of_a_server_holds_nobody_up(member, server):
    ann, bob = member("ann"), member("bob")
    for text in ("The cache key holds the tenant", "Deploys run from tags only"):
        ann.learn(text)
    ann.sync()
    space = server.service.spaces.use(*_workspace(server))
    space.brain.store.change(told()["id"], _spoilt)
    server.service.spaces.leave(space)
    bob.sync()
    assert bob.texts() == ["Deploys run from tags only"]


def _workspace(server):
    control = server.service.control
    org = control.organization("default")
    return org.id, control.workspace(org.id, "default").id, "default"


def _spoilt(memory):
    memory.contents = {**memory.contents, "count": "many"}
    return memory


def test_a_daemon_goes_on_sharing_after_any_error_and_says_so(member, monkeypatch, tmp_path):
    ann = member("ann")
    ann.at_home()
    ann.learn("The cache key holds the tenant")
    keep(ann.login, "no token")
    daemon = Daemon(idle=5)
    daemon._processor = EventProcessor(ann.brain)
    daemon._processor.share()
    shown = CliRunner().invoke(rmem, ["status"]).output
    assert "last sync     never" in shown
    assert "not shared at" in shown
    assert "rmem login" in shown
    monkeypatch.setattr("rmem.team.daemon._SYNC_PAUSE", 0.05)
    monkeypatch.setattr(daemon._processor, "share", _Failing(daemon))
    daemon._share()
    assert daemon._processor.share.calls == 3
    keep(ann.login, ann.token)
    EventProcessor(ann.brain).share()
    shown = CliRunner().invoke(rmem, ["status"]).output
    assert "last sync     2" in shown
    assert "not shared at" not in shown


def test_a_daemon_without_a_connection_complains_once(member, caplog):
    ann = member("ann")
    ann.at_home()
    ann.learn("The cache key holds the tenant")
    keep(Login("http://127.0.0.1:9", "default", member="ann"), ann.token)
    processor = EventProcessor(ann.brain)
    with caplog.at_level("WARNING", "rmem"):
        for _ in range(3):
            processor.share()
    assert caplog.messages == []  # attempts of one sync: a daemon would log them every minute
    assert paths.log().read_text().count("not shared") == 1


class _Failing:
    def __init__(self, daemon):
        self.calls, self._daemon = 0, daemon

    def __call__(self):
        self.calls += 1
        if self.calls == 3:
            self._daemon._over.set()
        raise RecursionError


def test_a_reader_learns_although_it_may_not_teach(member):
    ann, bob = member("ann"), member("bob", role="READ")
    bob.learn("Nonsense")
    ann.learn("The cache key holds the tenant")
    ann.sync()
    with pytest.raises(RemoteError, match="WRITE"):
        bob.sync()
    assert "The cache key holds the tenant" in bob.texts()


# What does not leave the machine


def test_ids_of_forgotten_personal_memories_stay_here(member):
    ann = member("ann")
    secret = ann.learn("My scratch database is on port 5433", scope="personal")
    shown = ann.learn("Deploys run from tags only")
    for key in (secret, shown):
        ann.team.forget(key)
    assert [one["id"] for one in changes(ann.brain, 0).gone] == [shown]


def test_what_is_pruned_here_is_not_removed_from_others(member):
    ann, bob = member("ann"), member("bob")
    ann.learn("The cache key holds the tenant")
    for one in (ann, bob):
        one.sync()
    ann.brain.prune({"max_count": 0, "min_age_days": 0, "grace_days": 0})
    for one in (ann, bob):
        one.sync()
    assert bob.texts() == ["The cache key holds the tenant"]


# Which repositories


def test_a_member_receives_the_repositories_that_they_have(member):
    ann, bob = member("ann"), member("bob")
    ann.learn("The cache key holds the tenant")
    ann.learn("The site is built by Hugo", repository="github.com/acme/site")
    ann.sync()
    bob.sync()
    assert bob.texts() == ["The cache key holds the tenant"]
    bob.sync("github.com/acme/site")  # cloned later; what was said before comes too
    assert bob.texts() == ["The cache key holds the tenant", "The site is built by Hugo"]


def test_a_workspace_shares_the_repositories_of_its_list_and_status_shows_it(member):
    ann, bob, eve = member("ann"), member("bob"), member("eve", role="ADMIN")
    body = {"shared": ["https://github.com/acme/site.git"], "given": {"bob": ["github.com/acme/site"]}}
    assert ann.client.put("/workspaces/default/repositories", json=body).status_code == 403
    assert eve.client.put("/workspaces/default/repositories", json=body).status_code == 200
    told = ann.client.get("/workspaces/default/repositories").json()
    assert told == {"shared": ["github.com/acme/site"], "given": {}}
    ann.learn("The cache key holds the tenant")
    ann.learn("The site is built by Hugo", repository="github.com/acme/site")
    (refused,) = ann.sync(REPOSITORY, "github.com/acme/site").refused
    assert "does not share the repository 'github.com/acme/etl'" in refused["error"]
    bob.sync()  # who does not have the site, but was given it
    assert bob.texts() == ["The site is built by Hugo"]
    ann.at_home()
    keep(ann.login, ann.token)
    ann.sync(REPOSITORY, "github.com/acme/site")  # as a daemon does a minute later
    shown = CliRunner().invoke(rmem, ["status"]).output
    assert "default shares github.com/acme/site; received here: github.com/acme/site" in shown
    assert "1 memory was refused" in shown
    eve.client.put("/workspaces/default/repositories", json={"shared": None}).raise_for_status()
    ann.team.reword(refused["id"], "The cache key holds the tenant and the region")
    ann.sync(REPOSITORY, "github.com/acme/site")
    assert "refused" not in CliRunner().invoke(rmem, ["status"]).output


def test_what_an_administrator_gives_later_comes_with_its_past(member):
    ann, bob, eve = member("ann"), member("bob"), member("eve", role="ADMIN")
    ann.learn("The site is built by Hugo", repository="github.com/acme/site")
    ann.sync()
    bob.sync()
    assert bob.texts() == []
    body = {"shared": None, "given": {"bob": ["github.com/acme/site"]}}
    assert eve.client.put("/workspaces/default/repositories", json=body).status_code == 200
    bob.sync()
    assert bob.texts() == ["The site is built by Hugo"]


def test_the_documents_of_both_sides_are_equal(member):
    ann, bob = member("ann"), member("bob")
    ann.learn("The cache key holds the tenant")
    for one in (ann, bob, ann):
        one.sync()
    assert [document(m) for m in ann.brain.memories()] == [document(m) for m in bob.brain.memories()]
