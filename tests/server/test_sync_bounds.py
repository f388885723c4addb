"""What a member may push has bounds: what is beyond is refused with the name of its field, and the rest of the page is
taken in."""

from __future__ import annotations

import time

import pytest

from rmem import Brain
from rmem.errors import InputError
from rmem.team import known_repositories
from rmem.team.login import Login
from rmem.team.notes import Note
from rmem.team.sync import sync

REPOSITORY = "github.com/acme/etl"
YEAR_9999 = 253_370_764_800.0
LONG = "x" * 1_000_000
BEYOND = {
    "the id is a path": ({"id": "../../etc/passwd"}, {}, "id"),
    "the id is of another kind": ({"id": "team-1"}, {}, "id"),
    "the id has a megabyte": ({"id": LONG}, {}, "id"),
    "the text has three megabytes": ({"text": "word " * 600_000}, {}, "text"),
    "it is of the year 9999": ({"when": YEAR_9999}, {}, "when"),
    "it is of the day after tomorrow": ({"when": time.time() + 2 * 86_400}, {}, "when"),
    "its time is words": ({"when": "two weeks ago"}, {}, "when"),
    "it is of before 1970": ({"when": -1.0}, {}, "when"),
    "it holds from the year 9999": ({}, {"valid_from": YEAR_9999}, "contents.valid_from"),
    "it holds until a time that nobody can write": ({}, {"valid_until": 1e300}, "contents.valid_until"),
    "it was shared in the year 9999": ({}, {"shared_at": YEAR_9999}, "contents.shared_at"),
    "a source is of the year 9999": ({}, {"sources": [{"when": YEAR_9999}]}, "contents.sources[0].when"),
    "its branch has a megabyte": ({}, {"branch": LONG}, "contents.branch"),
    "its commit has two lines": ({}, {"commit": "a\nb"}, "contents.commit"),
    "its successor has a megabyte": ({}, {"valid_until": 1.0, "superseded_by": LONG}, "contents.superseded_by"),
    "its error has a megabyte": ({}, {"error": LONG}, "contents"),
    "a field of no meaning has a megabyte": ({}, {"whatever": LONG}, "contents"),
    "it has a hundred thousand files": ({}, {"files": [f"src/{n}.py" for n in range(100_000)]}, "contents"),
    "it was learned more often than anybody can": ({}, {"count": 2**53}, "contents.count"),
    "its version leaves none to its author": ({}, {"version": 2**53}, "contents.version"),
    "its rewording leaves none to its author": ({}, {"reworded": 2**53}, "contents.reworded"),
    "it names another repository": ({}, {"repository": "github.com/acme/site"}, "contents.repository"),
    "it names another scope": ({}, {"scope": "organisation"}, "contents.scope"),
}


def sent(text, over=None, contents=None):
    note = Note(text, "codebase", author="ann", repository=REPOSITORY)
    when = time.time()
    return {
        "id": note.id, "text": text, "kind": "codebase", "agent": "codex", "author": "ann", "session": None,
        "when": when, "importance": 0.5, "place": f"repo:{REPOSITORY}", **(over or {}),
        "contents": {**note.contents(when), **(contents or {})},
    }  # fmt: skip


@pytest.fixture
def push(server):
    clients = {name: server.client(server.token_for("default", "default", "WRITE", member=name)) for name in "ab"}

    def post(*memories, gone=(), member="a"):
        named = [{**memory, "author": member} for memory in memories]
        answer = clients[member].post("/workspaces/default/sync", json={"memories": named, "gone": list(gone)})
        return answer.json() if answer.status_code == 200 else (answer.status_code, answer.json()["error"])

    return post


def test_what_is_beyond_the_bounds_is_refused_by_its_field_and_the_rest_is_taken_in(push):
    page = []
    for over, contents, _ in BEYOND.values():
        page += [sent(f"good {len(page)}"), sent(f"bad {len(page)}", over, contents)]
    answer = push(*page)
    assert [refused["field"] for refused in answer["refused"]] == [field for _, _, field in BEYOND.values()]
    assert all(refused["field"] in refused["error"] for refused in answer["refused"])
    assert all(len(str(refused)) < 1000 for refused in answer["refused"])
    assert answer["changed"] == len(BEYOND)


def test_a_clock_that_is_an_hour_ahead_is_within_the_bounds(push):
    soon = time.time() + 3600
    assert push(sent("One", {"when": soon}, {"valid_from": soon}))["refused"] == []


def test_a_removal_has_the_bounds_of_a_version(push):
    memory = sent("One")
    push(memory)
    (refused,) = push(gone=[{"id": memory["id"], "version": 2**53}])["refused"]
    assert refused["field"] == "version"
    assert push(gone=[{"id": memory["id"], "version": 2}])["changed"] == 1


def test_nobody_can_use_up_the_versions_of_anothers_memory(push):
    memory = sent("One")
    push(memory)
    ahead = {**memory, "contents": {**memory["contents"], "version": 900_000}}
    assert push(ahead, member="b")["refused"] == []  # learned again, without a connection, by somebody else
    mine = {**memory, "text": "Two", "contents": {**memory["contents"], "version": 900_001, "reworded": 900_001}}
    assert push(mine)["refused"] == []


def test_a_page_has_a_length(push):
    status, error = push(gone=[{"id": "x"}] * 1001)
    assert status == 400
    assert "gone must hold at most 1000 entries, got 1,001" in error


def test_a_note_that_no_server_would_take_is_refused_where_it_is_made():
    with pytest.raises(InputError, match="text must be at most 65,536 characters"):
        Note("word " * 20_000, "codebase", author="ann", repository=REPOSITORY)


def test_memories_that_are_no_notes_of_the_team_stay_here(server, tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_HOME", str(tmp_path))
    known_repositories.note_repository(REPOSITORY)
    token = server.token_for("default", "default", "WRITE", member="a")
    with Brain(tmp_path / "own.db") as brain:
        memory = brain.remember("One", id="mine", type="decision", place=f"repo:{REPOSITORY}")
        brain.store.record("a", "remember", [memory.memory_id], scope="repository")
        done = sync(brain, Login(server.url, "default"), token)
    assert (done.sent, done.refused) == (0, [])
