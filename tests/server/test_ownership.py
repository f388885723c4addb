"""Whose a memory is holds on every route: authors come from tokens, personal memories exist for their author alone."""

from __future__ import annotations

import json
import re

import pytest

REPOSITORY = "github.com/acme/etl"
AT = "/workspaces/default"
SECRET = "My scratch database listens on port 5433"
SHARED = "The staging database is behind pgbouncer"


@pytest.fixture
def people(server):
    """Clients of two members, a reader and an administrator; ann has a personal memory and a shared one."""
    made = {
        name: server.client(server.token_for("default", "default", role, member=name))
        for name, role in (("ann", "WRITE"), ("bob", "WRITE"), ("ron", "READ"), ("eve", "ADMIN"))
    }
    mine = {"text": SECRET, "type": "codebase", "place": "personal:ann", "id": "team-mine", "agent": "codex"}
    ours = {"text": SHARED, "type": "codebase", "place": f"repo:{REPOSITORY}", "id": "team-ours", "agent": "codex"}
    for memory, scope in ((mine, "personal"), (ours, "repository")):
        given = {**memory, "tags": {"scope": scope}, "metadata": {"scope": scope}}
        assert made["ann"].post(f"{AT}/memories", json=given).status_code == 201
    return made


READING = [
    ("POST", "/recall", {"query": "database port", "k": 5}),
    ("POST", "/recall", {"query": "database port", "k": 1}),
    ("POST", "/recall", {"query": "scratch", "mode": "lexical"}),
    ("GET", "/memories", None),
    ("GET", "/memories?place=personal:ann", None),
    ("GET", "/memories/team-mine", None),
    ("POST", "/agents/codex/retrievals/recent", {"count": 10, "memory_type": "codebase"}),
    ("POST", "/agents/codex/retrievals/content", {"content_query": "scratch database"}),
    ("POST", "/agents/codex/history", {"path": "text", "memory_type": "codebase"}),
    ("GET", "/agents/codex/memories/team-mine", None),
    ("GET", "/sync", None),
    ("GET", "/export", None),
    ("GET", "/pruned", None),
]


@pytest.mark.parametrize(("method", "path", "body"), READING)
def test_nobody_reads_a_colleagues_personal_memory(people, method, path, body):
    for name in ("bob", "ron", "eve"):
        answer = people[name].request(method, AT + path, json=body)
        assert SECRET not in answer.text, name
        assert "team-mine" not in answer.text or answer.status_code == 404, name


def test_a_memory_that_its_tag_calls_personal_is_its_authors(people):
    given = {"text": "My salary is 5 zorkmids", "tags": {"scope": "personal"}}
    assert people["ann"].post(f"{AT}/memories", json=given).status_code == 201
    seen = {name: people[name].get(f"{AT}/memories").text for name in ("ann", "bob", "ron", "eve")}
    assert [name for name, text in seen.items() if "zorkmids" in text] == ["ann"]


PLAIN = "Zanzibar runs on port 5433"
AGENT = f"{AT}/agents/codex"


@pytest.fixture
def plain(people):
    """A state in ann's personal place that nothing else marks as personal, and one of everybody."""
    mine = {
        "text": PLAIN,
        "type": "state",
        "place": "personal:ann",
        "id": "plain",
        "agent": "codex",
        "session": "s-ann",
    }
    ours = {"text": "idle", "type": "state", "id": "ours", "agent": "codex"}
    for memory, step in ((mine, 5), (ours, 1)):
        given = {
            **memory,
            "step": step,
            "session": f"s-{memory['id']}",
            "metadata": {"city": "Zanzibar" if step == 5 else "Oslo"},
        }
        people["ann"].post(f"{AT}/memories", json=given).raise_for_status()
    return people


def test_a_memory_is_personal_by_its_place_alone(plain):
    asked = [
        ("retrievals/recent", {"count": 10}),
        ("retrievals/time-range", {"start_step": 0, "end_step": 10}),
        ("retrievals/content", {"content_query": "Zanzibar"}),
        ("retrievals/importance", {"min_importance": 0}),
        ("retrievals/attributes", {"attributes": {"city": "Zanzibar"}}),
        ("retrievals/similar-states", {"query_state": {"city": "Zanzibar"}}),
        ("retrievals/query", {}),
        ("history", {"path": "city"}),
        ("changes", {"first_step": 1, "second_step": 5}),
    ]
    for path, body in asked:
        assert "Zanzibar" in plain["ann"].post(f"{AGENT}/{path}", json=body).text, path
        for name in ("bob", "ron", "eve"):
            answer = plain[name].post(f"{AGENT}/{path}", json=body)
            assert (answer.status_code, "Zanzibar" in answer.text) == (200, False), (path, name)


def test_no_route_that_reads_tells_of_it(plain):
    paths = plain["eve"].get("/openapi.json").json()["paths"]
    fill = {
        "memory_id": "plain", "agent": "codex", "entity": "Zanzibar", "since": "0", "start": "2000-01-01",
        "end": "2100-01-01", "goal": "port 5433", "pattern": "?x runs on ?y", "relation": "runs on",
        "repository": REPOSITORY, "workspace": "default",
    }  # fmt: skip
    asked = 0
    for path, methods in paths.items():
        if "{workspace}" not in path or "get" not in methods or path.endswith("/audit"):
            continue  # the log names ids, for administrators
        needed = [one["name"] for one in methods["get"].get("parameters", []) if one.get("required")]
        address = re.sub(r"\{(\w+)\}", lambda found: fill.get(found[1], "x"), path)
        params = {name: fill.get(name, "x") for name in needed if f"{{{name}}}" not in path}
        for name in ("bob", "eve"):
            answer = plain[name].get(address, params=params)
            told = answer.status_code == 200 and [word for word in (PLAIN, '"plain"', "s-plain") if word in answer.text]
            assert not told, (name, address)
            asked += answer.status_code == 200
    assert asked > 40


def test_memories_that_cannot_be_told_are_not_counted(plain):
    assert plain["ann"].get(f"{AT}/memories").json()["total"] == 4
    for name in ("bob", "eve"):
        assert plain[name].get(f"{AT}/memories").json()["total"] == 2
        assert plain[name].get(f"{AT}/histogram").json()["total"] == 2
        assert plain[name].get(f"{AT}/memories", params={"place": "personal:ann"}).json()["total"] == 0


def test_counts_of_the_workspace_and_its_agents_leave_out_colleagues_personal_memories(plain):
    own = {"text": "mine alone", "place": "personal:ann", "agent": "diary", "session": "evening", "type": "note"}
    plain["ann"].post(f"{AT}/memories", json=own).raise_for_status()
    whole = plain["ann"].get(f"{AT}/stats").json()
    assert whole["memories"] == 5
    assert whole["by_agent"]["diary"] == 1
    assert whole["by_type"]["note"] == 1
    for name in ("bob", "eve"):
        told = plain[name].get(f"{AT}/stats").json()
        assert told["memories"] == 2
        assert "diary" not in told["by_agent"]
        assert "note" not in told["by_type"]
        assert told["by_agent"]["codex"] == sum(told["by_tier"].values()) == told["vectors"] == 2
        assert told["sessions"] == whole["sessions"] - 2
        assert plain[name].get(f"{AT}/agents").json()["agents"] == {"codex": 2}


def test_nobody_writes_into_a_colleagues_place_by_an_agent(plain):
    told = {"state_data": {"location": "personal:ann"}, "step_number": 9}
    assert plain["bob"].post(f"{AGENT}/states", json=told).status_code == 403
    several = {"memory_type": "state", "items": [{"place": "personal:ann"}], "first_step": 9}
    assert plain["bob"].post(f"{AGENT}/several", json=several).status_code == 403
    assert plain["ann"].post(f"{AGENT}/states", json=told).status_code == 201


@pytest.mark.parametrize("dry_run", [True, False])
def test_pruning_tells_nobody_of_a_colleagues_personal_memory(people, dry_run):
    body = {"prune": {"max_count": 0, "min_age_days": 0}, "dry_run": dry_run}
    pruned = people["bob"].post(f"{AT}/maintenance", json=body).json()["pruned"]
    assert [one["memory_id"] for one in pruned] == ["team-ours"]


def test_its_author_does(people):
    ann = people["ann"]
    assert ann.get(f"{AT}/memories").json()["total"] == 2
    assert ann.get(f"{AT}/memories/team-mine").json()["text"] == SECRET
    hits = ann.post(f"{AT}/recall", json={"query": "scratch database port"}).json()["hits"]
    assert SECRET in [hit["memory"]["text"] for hit in hits]


def test_a_recall_tells_as_many_as_there_are_although_some_cannot_be_told(people):
    for number in range(3):
        given = {"text": f"{SECRET} {number}", "place": "personal:ann", "tags": {"scope": "personal"}}
        people["ann"].post(f"{AT}/memories", json=given)
    answer = people["ron"].post(f"{AT}/recall", json={"query": "scratch database port", "k": 1}).json()
    assert [(hit["rank"], hit["memory"]["text"]) for hit in answer["hits"]] == [(1, SHARED)]
    listed = people["ron"].get(f"{AT}/memories").json()
    assert (listed["total"], len(listed["memories"])) == (1, 1)


CHANGING = [
    ("PATCH", "/memories/{id}", {"text": "Nonsense"}),
    ("PATCH", "/memories/{id}", {"actor": "bob"}),
    ("DELETE", "/memories/{id}", None),
    ("POST", "/memories/{id}/pin", None),
    ("POST", "/forget", {"where": {"agent": "codex"}}),
    ("POST", "/memories", {"text": "Nonsense", "id": "{id}"}),
    ("POST", "/memories", [{"text": "Nonsense", "id": "{id}"}]),
    ("DELETE", "/agents/codex/memories/{id}", None),
    ("PATCH", "/agents/codex/memories/{id}", {"importance": 1.0}),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGING)
@pytest.mark.parametrize("key", ["team-mine", "team-ours"])
def test_nobody_changes_or_removes_anothers_memory_without_the_role_for_it(people, method, path, body, key):
    before = people["ann"].get(f"{AT}/memories").json()
    body = json.loads(json.dumps(body).replace("{id}", key))
    answer = people["bob"].request(method, AT + path.replace("{id}", key), json=body)
    assert answer.status_code in (403, 404)
    assert people["ann"].get(f"{AT}/memories").json() == before


def test_its_author_and_administrators_do(people):
    assert people["eve"].patch(f"{AT}/memories/team-ours", json={"importance": 0.9}).status_code == 200
    assert people["ann"].delete(f"{AT}/memories/team-ours").status_code == 200
    assert people["eve"].delete(f"{AT}/memories/team-mine").status_code == 404


@pytest.mark.parametrize("place", ["organisation", f"repo:{REPOSITORY}", "personal:bob"])
def test_a_memory_in_somebody_elses_name_is_refused(people, place):
    given = {"text": "We all like tabs", "type": "preference", "actor": "bob", "place": place}
    for body in (given, [given]):
        answer = people["ann"].post(f"{AT}/memories", json=body)
        assert answer.status_code == 403
        assert "actor" in answer.text or "place" in answer.text
    line = json.dumps({"memory_id": "x", "text": "t", "actor": "bob", "place": place})
    assert people["ann"].post(f"{AT}/import", content=line).status_code == 403


def test_memories_that_are_no_teams_have_whatever_actor_they_have(people):
    given = {"text": "Caroline went to the museum", "actor": "Caroline", "place": "museum"}
    assert people["ann"].post(f"{AT}/memories", json={**given, "id": "m"}).status_code == 201
    assert people["bob"].get(f"{AT}/memories/m").json()["actor"] == "Caroline"
    assert people["bob"].delete(f"{AT}/memories/m").status_code == 200


def test_every_write_is_in_the_log_with_the_person_and_the_token(people):
    ann = people["ann"]
    ann.patch(f"{AT}/memories/team-ours", json={"importance": 0.9})
    ann.delete(f"{AT}/memories/team-ours")
    ann.post(f"{AT}/memories", json=[{"text": "one"}, {"text": "two"}])
    entries = people["eve"].get(f"{AT}/audit").json()["entries"]
    assert [entry["action"] for entry in reversed(entries)] == [
        "remember", "remember", "change", "forget", "remember", "remember",
    ]  # fmt: skip
    assert {entry["who"] for entry in entries} == {"ann"}
    assert len({entry["detail"]["token"] for entry in entries}) == 1


def test_what_is_remembered_by_rest_reaches_the_members(people):
    told = people["bob"].get(f"{AT}/sync?repository={REPOSITORY}").json()
    assert [memory["text"] for memory in told["memories"]] == [SHARED]
    assert told["by"] == {"team-ours": "ann"}
