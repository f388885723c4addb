"""What reaches the members of a team has the same bounds by REST, imports and MCP as by `/sync`."""

from __future__ import annotations

import json
import re

import pytest

from rmem.checks import MAX_TEXT
from tests.server.test_sync_bounds import BEYOND, REPOSITORY, YEAR_9999

NEXT_CENTURY = 4_102_444_800.0
AT = "/workspaces/default"
ELSEWHERE = ("../x", "a/../b", "..", ".", "./x", "/etc/passwd", "..\\x", "a/..")


def given(**over):
    memory = {"text": "The load job is an upsert", "type": "decision", "place": f"repo:{REPOSITORY}"}
    return {**memory, "metadata": {"repository": REPOSITORY}, **over}


def rest_form(over, contents):
    """Return the form of REST for what `/sync` refuses."""
    return given(**over, metadata={"repository": REPOSITORY, **contents})


CASES = {
    name: (rest_form(over, contents), field.replace("contents", "metadata"))
    for name, (over, contents, field) in BEYOND.items()
    if name not in ("the id is of another kind", "its time is words")
}


@pytest.fixture
def ann(server):
    return server.client(server.token_for("default", "default", "WRITE", member="ann"))


@pytest.fixture
def eve(server):
    return server.client(server.token_for("default", "default", "ADMIN", member="eve"))


@pytest.mark.parametrize("name", CASES)
def test_a_shared_memory_beyond_the_bounds_is_refused_by_its_field(ann, name):
    memory, field = CASES[name]
    for body in (memory, [given(text="Another one"), memory]):
        answer = ann.post(f"{AT}/memories", json=body)
        assert answer.status_code == 400, answer.text[:300]
        assert field in answer.json()["error"]
        assert len(answer.text) < 1000
    assert ann.get(f"{AT}/memories").json()["total"] == 0


PLAIN = {**{f"id {path}": {"id": path} for path in ELSEWHERE}}
PLAIN |= {"agent": {"agent": "../../etc"}, "when: the year 9999": {"when": YEAR_9999}}
PLAIN |= {"when: the year 1": {"when": "0001-06-01"}, "text": {"text": "x" * (MAX_TEXT + 1)}}
PLAIN |= {"session": {"session": "a\x85"}, "actor": {"actor": "a\x7f"}, "place": {"place": "a\u2028b"}}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_memories_are_refused_by_their_field_too(ann, name):
    for body in ({"text": "Plain", **PLAIN[name]}, [{"text": "Another"}, {"text": "Plain", **PLAIN[name]}]):
        answer = ann.post(f"{AT}/memories", json=body)
        assert answer.status_code == 400
        assert f"{re.split('[ :]', name)[0]} must " in answer.json()["error"]
    assert ann.get(f"{AT}/memories").json()["total"] == 0


def test_ids_with_slashes_and_dots_that_lead_nowhere_else_are_taken(ann):
    for id in ("docs/a.md", "v1..2", "a/.hidden", "...", "x.."):
        assert ann.post(f"{AT}/memories", json={"text": "A plain memory", "id": id}).status_code == 201


def test_plain_memories_may_be_longer_and_of_the_future(ann):
    plain = {"text": "x" * 1_000_000, "when": NEXT_CENTURY}
    assert ann.post(f"{AT}/memories", json=plain).status_code == 201
    kitchen = {**plain, "type": "decision", "place": "kitchen"}
    assert ann.post(f"{AT}/memories", json=kitchen).status_code == 201


CHANGES = [
    ({"when": YEAR_9999}, "when"),
    ({"text": "x" * 100_000}, "text"),
    ({"metadata": {"count": "many"}}, "metadata.count"),
    ({"metadata": {"sources": ["x"]}}, "metadata.sources[0]"),
]


@pytest.mark.parametrize(("change", "field"), CHANGES)
def test_a_change_does_not_go_beyond_the_bounds(ann, change, field):
    ann.post(f"{AT}/memories", json=given(id="team-ours"))
    before = ann.get(f"{AT}/memories/team-ours").json()
    answer = ann.patch(f"{AT}/memories/team-ours", json=change)
    assert answer.status_code == 400
    assert field in answer.json()["error"]
    assert ann.get(f"{AT}/memories/team-ours").json() == before


def test_a_plain_memory_beyond_the_bounds_does_not_become_shared(ann):
    ann.post(f"{AT}/memories", json={"text": "Long ahead", "type": "decision", "when": NEXT_CENTURY, "id": "plain"})
    answer = ann.patch(f"{AT}/memories/plain", json={"place": f"repo:{REPOSITORY}"})
    assert answer.status_code == 400
    assert "when must not be more than a day in the future" in answer.json()["error"]
    assert ann.patch(f"{AT}/memories/plain", json={"importance": 0.9}).status_code == 200


@pytest.mark.parametrize("who", ["ann", "eve"])
def test_an_import_names_the_lines_that_are_beyond_the_bounds(ann, eve, who):
    eve.post(f"{AT}/memories", json={"text": "A plain memory", "id": "plain", "type": "decision"})
    exported = eve.get(f"{AT}/export?vectors=false").text.splitlines()
    record = json.loads(exported[-1])
    late = {**record, "memory_id": "team-late", "place": f"repo:{REPOSITORY}", "timestamp": NEXT_CENTURY}
    path = {**record, "memory_id": "../x"}
    sent = "\n".join([*exported, json.dumps(late), json.dumps(path)])
    answer = {"ann": ann, "eve": eve}[who].post(f"{AT}/import", content=sent.encode())
    assert answer.status_code == 400
    assert "line 3: when must not be more than a day in the future" in answer.json()["error"]
    assert "line 4: memory_id must be a name" in answer.json()["error"]
    assert eve.get(f"{AT}/memories").json()["total"] == 1


def test_only_shared_places_travel(ann):
    ann.post(f"{AT}/memories", json=given(id="team-ours"))
    ann.post(f"{AT}/memories", json=given(id="team-kitchen", place="kitchen", metadata={}))
    pulled = ann.get(f"{AT}/sync", params={"repository": REPOSITORY}).json()
    assert [memory["id"] for memory in pulled["memories"]] == ["team-ours"]
