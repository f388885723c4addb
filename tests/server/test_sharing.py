"""A team shares by a server: offline it goes on, later both sides meet; a kill or a cut loses and doubles nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from cutting_proxy import DOWN, UP, CuttingProxy
from hypothesis import given
from hypothesis import strategies as st

from rmem import Brain
from rmem.cli.app import rmem
from rmem.errors import RemanenceError, RemoteError
from rmem.team import known_repositories, paths
from rmem.team.capture import Capture
from rmem.team.event_processor import EventProcessor
from rmem.team.events import Event, EventKind
from rmem.team.exchange import document, merge
from rmem.team.login import Login, keep
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.team.sync import _Position, sync

REPOSITORY = "github.com/acme/etl"


class Member:
    """Somebody with a memory and a home of their own."""

    def __init__(self, name, folder, url, token, monkeypatch):
        self.author, self.home = f"{name}@acme.io", folder / name
        self.login, self.token = Login(url, "default"), token
        self._monkeypatch = monkeypatch
        self.home.mkdir()
        self.brain = Brain(self.home / "memories.db")
        self.team = TeamMemory(self.brain, author=self.author)

    def learn(self, text, **more):
        note = Note(text, "codebase", author=self.author, agent="codex", repository=REPOSITORY, **more)
        return self.team.remember(note).memory_id

    def sync(self):
        self._monkeypatch.setenv("RMEM_HOME", str(self.home))
        known_repositories.note_repository(REPOSITORY)
        return sync(self.brain, self.login, self.token)

    def documents(self):
        return sorted((document(memory) for memory in self.brain.memories(limit=None)), key=lambda told: told["id"])

    def texts(self):
        return sorted(memory.text for memory in self.brain.memories(limit=None))


@pytest.fixture
def member(server, tmp_path, monkeypatch):
    made = []

    def make(name, role="WRITE"):
        token = server.token_for("default", "default", role, member=f"{name}@acme.io")
        made.append(Member(name, tmp_path, server.url, token, monkeypatch))
        return made[-1]

    yield make
    for one in made:
        one.brain.close()


def test_what_one_learns_the_other_knows(member):
    ann, bob = member("ann"), member("bob")
    ann.learn("The staging database is behind pgbouncer")
    bob.learn("Deploys run from tags only")
    for one in (ann, bob, ann):
        one.sync()
    assert ann.texts() == bob.texts() == ["Deploys run from tags only", "The staging database is behind pgbouncer"]
    (found,) = bob.team.recall("staging database", repository=REPOSITORY, k=1)
    assert found.author == "ann@acme.io"


def test_a_second_meeting_changes_nothing(member):
    ann, bob = member("ann"), member("bob")
    ann.learn("The staging database is behind pgbouncer")
    for one in (ann, bob, ann, bob):
        one.sync()
    for one in (ann, bob):
        done = one.sync()
        assert (done.sent, done.received, done.changed) == (0, 0, 0)


def test_what_both_learned_apart_is_one_memory_with_both_sources(member):
    ann, bob = member("ann"), member("bob")
    ann.learn("Use pyarrow.dataset for large files", session="a")
    bob.learn("Use pyarrow.dataset for large files", session="b")
    for one in (ann, bob, ann):
        one.sync()
    for one in (ann, bob):
        (memory,) = one.brain.memories()
        assert memory.contents["count"] == 2
        assert {told["author"] for told in memory.contents["sources"]} == {"ann@acme.io", "bob@acme.io"}


def test_what_one_forgets_is_gone_for_all(member):
    ann, bob = member("ann"), member("bob")
    key = ann.learn("The old proxy listens on port 8081")
    for one in (ann, bob):
        one.sync()
    assert bob.texts()
    ann.team.forget(key)
    for one in (ann, bob):
        one.sync()
    assert ann.texts() == bob.texts() == []


def test_what_was_learned_again_after_it_was_forgotten_stays(member):
    ann, bob = member("ann"), member("bob")
    key = ann.learn("The proxy listens on port 8081")
    for one in (ann, bob):
        one.sync()
    ann.team.forget(key)
    bob.learn("The proxy listens on port 8081", session="later")
    for one in (ann, bob, ann):
        one.sync()
    assert ann.texts() == bob.texts() == ["The proxy listens on port 8081"]


def test_what_was_superseded_is_superseded_everywhere(member):
    ann, bob = member("ann"), member("bob")
    old = ann.learn("We deploy with Jenkins")
    for one in (ann, bob):
        one.sync()
    bob.learn("We deploy with GitHub Actions", supersedes=old)
    for one in (bob, ann):
        one.sync()
    assert [one.text for one in ann.team.recall("how do we deploy", repository=REPOSITORY)] == [
        "We deploy with GitHub Actions"
    ]


def test_personal_memories_stay_and_what_is_unshared_leaves_the_others(member):
    ann, bob = member("ann"), member("bob")
    ann.learn("My scratch database is on port 5433", scope="personal")
    key = ann.learn("The cache key holds the tenant")
    for one in (ann, bob):
        one.sync()
    assert bob.texts() == ["The cache key holds the tenant"]
    ann.team.share(key, "personal")
    for one in (ann, bob):
        one.sync()
    assert bob.texts() == []
    assert len(ann.texts()) == 2


def test_who_may_only_read_learns_but_cannot_teach(member):
    ann, bob = member("ann"), member("bob", role="READ")
    ann.learn("The cache key holds the tenant")
    ann.sync()
    assert bob.sync().received == 1
    bob.learn("Nonsense")
    with pytest.raises(RemanenceError):
        bob.sync()
    ann.sync()
    assert ann.texts() == ["The cache key holds the tenant"]


def test_without_a_connection_nothing_is_lost(member, server):
    ann = member("ann")
    ann.learn("The cache key holds the tenant")
    away = Login("http://127.0.0.1:9", "default")
    online, ann.login = ann.login, away
    with pytest.raises(RemoteError):
        ann.sync()
    ann.login = online
    assert ann.sync().sent == 1


def test_a_member_that_is_killed_in_the_middle_loses_and_doubles_nothing(member, tmp_path):
    ann, bob = member("ann"), member("bob")
    for number in range(400):
        ann.learn(f"Service {number} listens on port {7000 + number}")
    ann.brain.close()
    script = (
        "import sys\nfrom rmem import Brain\n"
        "from rmem.team.login import Login\nfrom rmem.team.sync import sync\n"
        "with Brain(sys.argv[1]) as brain: sync(brain, Login(sys.argv[2], 'default'), sys.argv[3])\n"
    )
    arguments = [sys.executable, "-c", script, str(ann.home / "memories.db"), ann.login.url, ann.token]
    environment = {**os.environ, "RMEM_HOME": str(ann.home)}
    for patience in (0.6, 0.9):
        process = subprocess.Popen(arguments, env=environment, stderr=subprocess.DEVNULL)
        time.sleep(patience)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(arguments, env=environment, check=True, timeout=60)
    bob.sync()
    found = bob.brain.memories(limit=None)
    assert len(found) == 400
    assert {memory.contents["count"] for memory in found} == {1}


# A network that is cut in the middle


@pytest.fixture
def cut_off(member, server, monkeypatch):
    """Ann, who knows something, behind a network that can be cut; bob told the server something else."""
    monkeypatch.setattr("rmem.team.sync._PAGE", 10)  # several pages each way
    monkeypatch.setattr("rmem.http_link._FIRST_PAUSE", 0.001)
    ann, bob = member("ann"), member("bob")
    for number in range(25):
        ann.learn(f"Service {number} listens on port {7000 + number}")
        bob.learn(f"Queue {number} is drained by worker {number + 100}")
    bob.sync()
    proxy = CuttingProxy(server.url)
    ann.login = Login(proxy.url, "default")
    yield ann, bob, proxy
    proxy.close()


@pytest.mark.parametrize(
    ("direction", "after"),
    [
        *((UP, 0), (UP, 9_000), (DOWN, 100), (DOWN, 22_000)),
        *(
            pytest.param(*cut, marks=pytest.mark.slow)
            for cut in [(UP, 3_000), (UP, 15_000), (DOWN, 700), (DOWN, 9_000)]
        ),
    ],
)
def test_a_network_that_is_cut_in_the_middle_loses_and_doubles_nothing(cut_off, member, direction, after):
    ann, bob, proxy = cut_off
    before = {one["id"]: one for one in [*ann.documents(), *bob.documents()]}
    proxy.cut(direction, after)
    with pytest.raises(RemoteError, match=f"{proxy.url} cannot be reached: "):
        ann.sync()
    assert all(one == before[one["id"]] for one in ann.documents())
    proxy.heal()
    ann.sync()
    bob.sync()
    carl = member("carl")
    carl.sync()
    for one in (ann, bob, carl):
        assert {told["id"]: told for told in one.documents()} == before
        done = one.sync()
        assert (done.sent, done.received, done.changed) == (0, 0, 0)


@pytest.mark.parametrize(("direction", "after"), [(UP, 9_000), (DOWN, 100)])
def test_a_short_break_is_not_even_noticed(cut_off, direction, after):
    ann, bob, proxy = cut_off
    proxy.cut(direction, after, once=True)
    ann.sync()
    bob.sync()
    assert proxy.cuts == 1
    assert ann.documents() == bob.documents()
    assert len(ann.documents()) == 50
    assert {one["contents"]["count"] for one in ann.documents()} == {1}


def test_login_keeps_the_token_from_others_and_sync_uses_it(member, tmp_path, monkeypatch):
    ann = member("ann")
    home = tmp_path / "cli"
    monkeypatch.setenv("RMEM_HOME", str(home))
    done = CliRunner().invoke(rmem, ["login", ann.login.url], input=ann.token + "\n")
    assert done.exit_code == 0, done.output
    assert ann.token not in (home / "team" / "login.json").read_text()
    assert (home / "team" / "token").stat().st_mode & 0o077 == 0
    ann.learn("The cache key holds the tenant")
    ann.sync()
    monkeypatch.setenv("RMEM_HOME", str(home))
    known_repositories.note_repository(REPOSITORY)
    done = CliRunner().invoke(rmem, ["sync", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["received"] == 1
    assert CliRunner().invoke(rmem, ["logout"]).exit_code == 0
    assert not (home / "team" / "token").exists()
    assert CliRunner().invoke(rmem, ["sync"]).exit_code != 0


def test_a_sync_in_a_clone_brings_what_the_team_knows_of_it_and_says_what_was_refused(member, tmp_path, monkeypatch):
    ann, bob = member("ann"), member("bob")
    ann.learn("The cache key holds the tenant")
    ann.sync()
    clone = tmp_path / "clone"
    clone.mkdir()
    for words in ("init -q", f"remote add origin https://{REPOSITORY}.git"):
        subprocess.run(["git", *words.split()], cwd=clone, check=True)
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "cli"))
    login = ["login", bob.login.url, "--token", bob.token]
    assert CliRunner().invoke(rmem, login).exit_code == 0
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(rmem, ["sync"])
    assert "run this in a clone" in done.output
    monkeypatch.chdir(clone)
    done = CliRunner().invoke(rmem, ["sync"])
    assert "received 1, of which 1 changed" in done.output
    assert "run this in a clone" not in done.output
    with Brain() as brain:
        future = Note("From the future", "codebase", author="bob", repository=REPOSITORY)
        TeamMemory(brain, author="bob").remember(future)
        brain.update(future.id, when=time.time() + 10 * 86_400)
    done = CliRunner().invoke(rmem, ["sync", "--json"])
    (refused,) = json.loads(done.stdout)["refused"]
    assert refused["id"] == future.id
    assert "when must not be more than a day in the future" in refused["error"]
    assert "clock" in refused["error"]


def test_a_wrong_token_is_refused_and_not_kept(server, tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_HOME", str(tmp_path))
    done = CliRunner().invoke(rmem, ["login", server.url, "--token", "wrong"])
    assert done.exit_code != 0
    assert not (tmp_path / "team" / "login.json").exists()


# How two versions agree

SOURCES = st.fixed_dictionaries({"author": st.sampled_from("ab"), "when": st.integers(1, 9).map(float)})


@st.composite
def versions(draw):
    contents = {
        "valid_from": float(draw(st.integers(1, 5))),
        "sources": draw(st.lists(SOURCES, max_size=3)),
        "count": draw(st.integers(1, 3)),
        "files": draw(st.lists(st.sampled_from(["a.py", "b.py"]), max_size=2, unique=True)),
        "scope": "repository",
    }
    if draw(st.booleans()):
        contents |= {"valid_until": float(draw(st.integers(5, 9))), "superseded_by": draw(st.sampled_from("xy"))}
    place = draw(st.sampled_from(["repo:x", "organisation"]))
    if draw(st.booleans()):
        contents |= {"shared_at": float(draw(st.integers(1, 9))), "shared": draw(st.integers(1, 3))}
    if draw(st.booleans()):
        contents["reworded"] = draw(st.integers(1, 3))
    contents["version"] = draw(st.integers(1, 9))
    told = {"id": "t", "text": draw(st.sampled_from(["one", "two"])), "kind": "codebase", "agent": "codex"}
    return {
        **told,
        "author": "a",
        "session": None,
        "when": 1.0,
        "importance": 0.5,
        "place": place,
        "contents": contents,
    }


@given(versions(), versions())
def test_the_order_of_arrival_does_not_matter(one, other):
    assert merge(one, other) == merge(other, one)


@given(versions(), versions())
def test_what_arrives_twice_changes_nothing(one, other):
    both = merge(one, other)
    assert merge(both, other) == both
    assert merge(both, one) == both


def test_a_memory_travels_without_its_vector(member):
    ann = member("ann")
    memory = ann.brain.get(ann.learn("The cache key holds the tenant"))
    assert "vector" not in json.dumps(document(memory))


def test_hooks_share_by_themselves(member, tmp_path, monkeypatch):
    ann, bob = member("ann"), member("bob")
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "hooked"))
    monkeypatch.setenv("RMEM_KEEPER_IDLE", "3")
    monkeypatch.setenv("HOME", str(tmp_path))
    ann.learn("The cache key holds the tenant")
    ann.sync()
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "hooked"))
    assert CliRunner().invoke(rmem, ["login", bob.login.url, "--token", bob.token]).exit_code == 0
    clone = tmp_path / "clone"
    clone.mkdir()
    for words in ("init -q", f"remote add origin https://{REPOSITORY}.git"):
        subprocess.run(["git", *words.split()], cwd=clone, check=True)
    told = json.dumps({"session_id": "s1", "cwd": str(clone), "stop_hook_active": False})
    command = [sys.executable, "-m", "rmem", "hook", "claude-code", "Stop"]
    subprocess.run(command, input=told, text=True, check=True, timeout=60)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with Brain(tmp_path / "hooked" / "memories.db") as brain:
            if brain.memories():
                return
        time.sleep(0.2)
    raise AssertionError("the daemon did not share")


def test_a_daemon_shares_again_after_an_error_of_the_system(member, monkeypatch):
    """How far the two sides got cannot be written down, as on a full disk; later it can."""
    ann, bob = member("ann"), member("bob")
    ann.learn("The cache key holds the tenant")
    monkeypatch.setenv("RMEM_HOME", str(ann.home))
    keep(ann.login, ann.token)
    work = EventProcessor(ann.brain)
    place = _Position(ann.login)._path
    place.mkdir()
    work.share()
    assert "not shared: IsADirectoryError" in paths.log().read_text()
    place.rmdir()
    work.share()
    assert place.is_file()
    bob.sync()
    assert bob.texts() == ["The cache key holds the tenant"]


def test_a_repository_can_route_to_a_workspace(member, server, tmp_path, monkeypatch):
    ann = member("ann")
    data = server.client_for("default", None, "ADMIN")
    assert data.post("/workspaces", json={"name": "data"}).status_code < 300
    ann.token = data.headers["Authorization"].removeprefix("Bearer ")
    monkeypatch.setenv("RMEM_HOME", str(ann.home))
    clone = tmp_path / "clone"
    clone.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=clone, check=True)
    (clone / ".rmem.toml").write_text('workspace = "data"\n')
    said = "Always write Parquet with zstd in this repository"
    Capture(ann.brain).take(Event("1", "codex", EventKind.PROMPT, "s", str(clone), time.time(), prompt=said))
    ann.learn("The cache key holds the tenant")
    ann.sync()

    def there(workspace):
        found = data.get(f"/workspaces/{workspace}/memories").json()["memories"]
        return [memory["text"] for memory in found]

    assert there("data") == [said]
    assert there("default") == ["The cache key holds the tenant"]
