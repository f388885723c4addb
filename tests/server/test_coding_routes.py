"""What coding agents are told and learn, over HTTP: on a server, and on one's own store with clones and sessions."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
from running_server import Running

from rmem import Brain
from rmem.server.own_store import invite_owner, own_settings
from rmem.team.identity import repository
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.team.sessions import Sessions, SessionState

W = "/workspaces/default"
ID = "github.com/acme/etl"


def git(folder, *words):
    subprocess.run(["git", *words], cwd=folder, check=True)


@pytest.fixture
def clone(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "config", "user.email", "ann@acme.io")
    git(folder, "remote", "add", "origin", "git@github.com:acme/etl.git")
    (folder / "load.py").write_text("\n".join(f"line_{n} = {n}" for n in range(40)))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def owner(tmp_path, clone):
    """The owner of a store with a memory about a file that is gone, and a session's file."""
    with Brain(tmp_path / "mine.db") as brain:
        team = TeamMemory(brain, author="ann@acme.io")
        note = Note("The importer is in load.py", "codebase", author="ann@acme.io", files=["load.py"], session="s1")
        team.remember(note.at(repository(clone)))
    (clone / "load.py").unlink()
    git(clone, "-c", "user.name=ann", "commit", "-q", "--allow-empty", "-m", "Remove the importer")
    state = SessionState("codex", "s1", str(clone), ID, task="Move the importer", prompts=["Move it"])
    state.note_edit({"file": "load.py", "time": time.time(), "change": "- line_1 = 1"})
    state.note_output({"command": "pytest -q", "output": "1 failed", "time": time.time(), "failed": True})
    Sessions().save(state)
    server = Running(own_settings(str(tmp_path / "mine.db"), tmp_path / "server")).start()
    yield server.client(server.service.sessions.accept(invite_owner(server.service)))
    server.stop()


def test_ones_own_store_knows_what_is_out_of_date_and_what_a_session_did(owner):
    told = owner.get(f"{W}/coding/repositories").json()
    assert (told["here"], [one["id"] for one in told["repositories"]]) == (ID, [ID])
    (old,) = owner.get(f"{W}/coding/review", params={"repository": ID}).json()["out_of_date"]
    assert old["why"] == "load.py is gone"
    done = {"action": "dismiss", "memory_id": old["memory"]["memory_id"], "why": old["why"]}
    assert owner.post(f"{W}/coding/review", json=done).status_code == 200
    assert owner.get(f"{W}/coding/review", params={"repository": ID}).json()["out_of_date"] == []
    replayed = owner.get(f"{W}/coding/replay", params={"session": "s1"}).json()
    assert (replayed["task"], replayed["prompts"]) == ("Move the importer", ["Move it"])
    assert sorted(one["kind"] for one in replayed["events"]) == ["codebase", "command", "edit"]
    told = owner.get(f"{W}/coding/briefing", params={"repository": ID}).json()
    assert "Task: Move the importer" in told["text"]
    assert told["tokens"] > 0


def test_ones_own_store_tells_whether_hooks_and_the_disk_are_well(owner):
    found = {one["name"]: one for one in owner.get(f"{W}/examination").json()["findings"]}
    assert {"store", "rows", "daemon", "disk"} <= set(found)
    assert found["rows"]["ok"]


def test_a_server_reads_no_files_of_the_machine_that_it_runs_on(clone, admin):
    Sessions().save(SessionState("codex", "s1", str(clone), ID, task="A secret of the operator"))
    assert admin.get(f"{W}/coding/repositories").json() == {"repositories": [], "here": None}
    assert admin.get(f"{W}/coding/replay", params={"session": "s1"}).json()["task"] == ""
    assert admin.get(f"{W}/coding/briefing", params={"repository": ID}).json()["text"] == ""


def test_a_decision_is_refused_where_it_cannot_be_taken(server, admin):
    writer = server.client(server.token_for("default", "default", "WRITE", member="ben"))
    shared = {"type": "decision", "place": f"repo:{ID}", "tags": {"state": "current", "scope": "repository"}}
    admin.post(f"{W}/memories", json=[{"id": "a", "text": "A", **shared}, {"id": "b", "text": "B", **shared}])

    def decide(client, **form):
        return client.post(f"{W}/coding/review", json=form)

    assert decide(writer, action="supersede", memory_id="a", other="b").status_code == 403, "not the author's"
    assert decide(admin, action="supersede", memory_id="a").json()["error"].startswith("other must name")
    assert decide(admin, action="supersede", memory_id="a", other="a").status_code == 400
    assert decide(admin, action="supersede", memory_id="a", other="none").status_code == 404
    assert decide(admin, action="accept", memory_id="a").status_code == 404, "it does not wait"
    assert decide(admin, action="explode", memory_id="a").status_code == 400
    assert decide(admin, action="supersede", memory_id="a", other="b").status_code == 200
    assert admin.get(f"{W}/memories/a").json()["tags"]["state"] == "superseded"
    assert "prompt must be given" in admin.post(f"{W}/coding/injection", json={}).json()["error"]


def test_an_examination_tells_how_far_it_is(owner):
    lines = owner.get(f"{W}/examination", headers={"Accept": "application/x-ndjson"}).text.splitlines()
    *progress, answer = map(json.loads, lines)
    assert [(one["done"], one["total"]) for one in progress] == [(at, len(progress)) for at in range(len(progress))]
    assert "rows" in [one["check"] for one in progress]
    asked_at_once = owner.get(f"{W}/examination").json()["findings"]
    assert [one["name"] for one in answer["findings"]] == [one["name"] for one in asked_at_once]


def test_rules_that_came_by_rest_are_reviewed_and_told_like_all_others(admin):
    for text, place, scope in (
        ("Always deploy releases on Fridays", f"repo:{ID}", "repository"),
        ("Never deploy releases on Fridays", f"repo:{ID}", "repository"),
        ("Everybody signs their commits", "organisation", "organisation"),
    ):
        sent = {"text": text, "type": "preference", "place": place, "tags": {"by": "script"}}
        kept = admin.post(f"{W}/memories", json=sent).json()["ids"][0]
        tags = admin.get(f"{W}/memories/{kept}").json()["tags"]
        assert tags == {"by": "script", "state": "current", "scope": scope}
    (pair,) = admin.get(f"{W}/coding/review", params={"repository": ID}).json()["contradictions"]
    assert {pair["older"]["text"][:5], pair["newer"]["text"][:5]} == {"Alway", "Never"}
    told = json.dumps(admin.get(f"{W}/coding/briefing", params={"repository": ID}).json())
    assert "Always deploy" in told
    assert "Everybody signs" in told
