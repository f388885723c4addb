"""The graph of facts over HTTP."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

from rmem.graph import Fact, Graph
from rmem.server import forms, graph_documents

G = "/workspaces/default/graph"
SECRET = "moonbase"


def state(client, subject, relation, object, **more):
    answer = client.post(f"{G}/facts", json={"subject": subject, "relation": relation, "object": object, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def ask(client, path, **params):
    answer = client.get(f"{G}{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def lines(facts):
    return [f"{one['subject']} {one['relation']} {one['object']}" for one in facts]


def path_of(fact):
    return f"/facts/{fact['id'].replace('#', '%23')}"


@pytest.fixture
def known(admin):
    """What is known of a few services."""
    admin.post(f"{G}/relations", json={"relation": "runs on", "single": True}).raise_for_status()
    state(admin, "staging", "runs on", "port 5432", since="2026-01-01")
    state(admin, "staging", "runs on", "port 5433", since="2026-05-01")
    state(admin, "ann", "owns", "staging", since="2026-01-01")
    state(admin, "staging", "depends on", "redis", since="2026-01-01")
    state(admin, "redis", "depends on", "disk", since="2026-01-01")
    return admin


def test_what_is_true_and_what_was_true_can_be_asked(known):
    assert lines(ask(known, "/facts", subject="staging", relation="runs on")["facts"]) == ["staging runs on port 5433"]
    then = ask(known, "/facts", subject="Staging", relation="runs on", at="2026-02-01")["facts"]
    assert lines(then) == ["staging runs on port 5432"]
    assert then[0]["valid_until"].startswith("2026-05-01")
    assert then[0]["trust"] == "stated"
    both = ask(known, "/facts", relation=["runs on", "owns"], history=True)["facts"]
    assert len(both) == 3
    assert ask(known, "/facts", believed="2026-02-01")["facts"] == []  # all of it was learned today
    assert ask(known, path_of(then[0])) == then[0]
    assert ask(known, f"/memories/{then[0]['memory_id']}")["facts"] == then
    assert set(then[0]) == {one.name for one in fields(Fact)} | {"trust"}


def test_every_question_of_the_graph_has_a_route(known):
    near = ask(known, "/neighbours", entity="staging", direction="in")["neighbours"]
    assert [(one["name"], one["outgoing"]) for one in near] == [("ann", False)]
    (way,) = ask(known, "/paths", start="ann", goal="disk")["paths"]
    assert way["names"] == ["ann", "staging", "redis", "disk"]
    assert lines(way["facts"]) == ["ann owns staging", "staging depends on redis", "redis depends on disk"]
    assert ask(known, "/paths", start="ann", goal="disk", max_hops=2)["paths"] == []
    told = ask(known, "/timeline", entity="staging")["changes"]
    assert [one["time"][:10] for one in told if not one["began"]] == ["2026-05-01"]
    changed = ask(known, "/between", start="2026-04-01", end="2026-06-01")["changes"]
    assert [(one["began"], one["fact"]["object"]) for one in changed] == [(False, "port 5432"), (True, "port 5433")]
    matches = ask(known, "/query", pattern="?who owns ?what, ?what depends on redis")["matches"]
    assert matches == [{"who": "ann", "what": "staging"}]
    reached = ask(known, "/closure", entity="staging", relation="depends on")["reached"]
    assert reached == [{"name": "redis", "steps": 1}, {"name": "disk", "steps": 2}]
    assert ask(known, "/entities", like="stag")["entities"] == [{"name": "staging", "facts": 4}]
    assert {"name": "depends on", "facts": 2} in ask(known, "/relations")["relations"]
    ranked = ask(known, "/important", limit=3)["entities"]
    assert len(ranked) == 3
    assert ranked[0]["share"] >= ranked[-1]["share"] > 0
    assert ask(known, "/communities", smallest=2)["communities"]
    assert ask(known, "")["facts"] == 6
    (fact,) = ask(known, "/facts", subject="staging", relation="runs on")["facts"]
    why = ask(known, f"{path_of(fact)}/explain")
    assert (why["sentence"], lines(why["others"])) == ("staging runs on port 5433.", ["staging runs on port 5432"])


def test_contradictions_are_told_with_both_facts(known):
    state(known, "staging", "runs on", "port 6000", since="2026-05-01")
    (pair,) = ask(known, "/contradictions")["contradictions"]
    assert {pair["first"]["object"], pair["second"]["object"]} == {"port 5433", "port 6000"}
    assert ask(known, "/contradictions", entity="staging")["contradictions"] == [pair]
    assert ask(known, "/contradictions", entity="ann")["contradictions"] == []


def test_a_fact_is_ended_and_that_is_taken_back(known):
    (fact,) = ask(known, "/facts", subject="ann")["facts"]
    ended = known.post(f"{G}{path_of(fact)}/end", json={"when": "2026-06-01"})
    assert ended.status_code == 201
    assert ask(known, "/facts", subject="ann")["facts"] == []
    assert lines(ask(known, "/facts", subject="ann", at="2026-05-15")["facts"]) == ["ann owns staging"]
    back = known.delete(f"{G}{path_of(ended.json())}")
    assert back.json() == {"ids": [ended.json()["memory_id"]]}
    assert lines(ask(known, "/facts", subject="ann")["facts"]) == ["ann owns staging"]
    assert known.delete(f"{G}{path_of(ended.json())}").status_code == 404


def test_an_alias_joins_two_names(known):
    known.post(f"{G}/aliases", json={"name": "stg", "other": "staging"}).raise_for_status()
    assert lines(ask(known, "/facts", subject="stg", relation="runs on")["facts"]) == ["staging runs on port 5433"]


def test_a_list_comes_in_pages(admin):
    for number in range(5):
        state(admin, "root", "holds", f"leaf {number}")
    for path, key, asked in (
        ("/facts", "facts", {}),
        ("/facts", "facts", {"subject": "root"}),
        ("/neighbours", "neighbours", {"entity": "root"}),
        ("/between", "changes", {"start": "2020-01-01", "end": "2100-01-01"}),
        ("/query", "matches", {"pattern": "root holds ?leaf"}),
        ("/closure", "reached", {"entity": "root", "relation": "holds"}),
    ):
        found, cursor = [], {}
        for expected in (2, 2, 1):
            page = ask(admin, path, limit=2, **asked, **cursor)
            assert len(page[key]) == expected, path
            found += map(str, page[key])
            cursor = {"cursor": page["next_cursor"]}
        assert cursor == {"cursor": None}
        assert len(set(found)) == 5


def test_a_page_of_all_facts_begins_after_the_last_one_even_if_earlier_ones_are_gone(admin):
    stated = [state(admin, "root", "holds", f"leaf {number}") for number in range(5)]
    page = ask(admin, "/facts", limit=2)
    admin.delete(f"{G}{path_of(stated[0])}").raise_for_status()
    following = ask(admin, "/facts", limit=3, cursor=page["next_cursor"])
    assert [one["id"] for one in (*page["facts"], *following["facts"])] == [one["id"] for one in stated]
    assert following["next_cursor"] is None


def test_a_filter_limits_every_question(known):
    state(known, "etl", "uses", "duckdb", agent="etl-agent", tags={"repository": "etl"})
    where = {"where": '{"agent": "etl-agent"}'}
    assert lines(ask(known, "/facts", **where)["facts"]) == ["etl uses duckdb"]
    assert {one["name"] for one in ask(known, "/entities", **where)["entities"]} == {"etl", "duckdb"}
    assert ask(known, "", **where) == {"facts": 1}


WRONG = [
    ("GET", "/facts?limit=0", None, "limit"),
    ("GET", "/facts?limit=5000", None, "limit"),
    ("GET", "/facts?subjet=x", None, "subjet"),
    ("GET", "/facts?at=whenever", None, "at must be"),
    ("GET", "/facts?believed=whenever", None, "believed must be"),
    ("GET", "/facts?cursor=x", None, "cursor must be"),
    ("GET", "/facts?where=x", None, "where must be"),
    ("GET", "/facts?subject=%20", None, "subject must"),
    ("GET", "/facts/nonesuch", None, "fact must be"),
    ("GET", "/neighbours", None, "entity"),
    ("GET", "/neighbours?entity=x&direction=up", None, "direction"),
    ("GET", "/paths?start=a&goal=b&max_hops=9", None, "max_hops"),
    ("GET", "/query?pattern=x", None, "pattern must"),
    ("GET", "/query?pattern=%3Fa+flies+to+%3Fb", None, "holds no known relation"),
    ("GET", "/between?start=2026-05-01&end=2026-04-01", None, "end must be after start"),
    ("POST", "/facts", {"subject": "a", "relation": "is"}, "object must be given"),
    ("POST", "/facts", {"subject": "", "relation": "is", "object": "b"}, "subject must"),
    ("POST", "/facts", {"subject": "a", "relation": "is", "object": True}, "object must be"),
    ("POST", "/facts", {"subject": "a", "relation": "rmem:ends", "object": "b"}, "relation must not"),
    ("POST", "/facts", {"subject": "a", "relation": "is", "object": "b", "sins": 1}, "did you mean 'since'"),
    (
        "POST",
        "/facts",
        {"subject": "a", "relation": "is", "object": "b", "since": "2026-05-01", "until": "2026-04-01"},
        "until must be after since",
    ),
    ("POST", "/facts", {"subject": "redis", "relation": "part of", "object": "redis"}, "would close a circle"),
    ("POST", "/relations", {"relation": "runs on", "single": "yes"}, "single must be"),
    ("POST", "/aliases", {"name": "a", "other": "A"}, "same name already"),
]


@pytest.mark.parametrize(("method", "path", "body", "words"), WRONG)
def test_what_is_wrong_is_named(lasting, method, path, body, words):
    answer = lasting.request(method, f"{G}{path}", json=body)
    assert answer.status_code == 400, answer.text
    assert words in answer.json()["error"]


def test_what_is_not_there_is_not_found(lasting):
    for method, path in (("GET", "/facts/no%230"), ("DELETE", "/facts/no%230"), ("POST", "/facts/no%230/end")):
        answer = lasting.request(method, f"{G}{path}", json={} if method == "POST" else None)
        assert (answer.status_code, answer.json()["error"].partition("'")[0]) == (404, "no fact with id "), path


def test_a_fact_that_was_read_from_a_memory_goes_with_that_memory(server, admin):
    admin.post("/workspaces/default/memories", json={"text": "Redis is fast", "id": "m"}).raise_for_status()
    answer = admin.delete(f"{G}/facts/m%230")
    assert answer.status_code == 400
    assert "forget that memory" in answer.json()["error"]


# Whose a fact is


@pytest.fixture
def people(server):
    """Clients of two members, a reader and an administrator; ann has stated a personal fact and a shared one."""
    made = {
        name: server.client(server.token_for("default", "default", role, member=name))
        for name, role in (("ann", "WRITE"), ("bob", "WRITE"), ("ron", "READ"), ("eve", "ADMIN"))
    }
    state(made["ann"], "redis", "stands in", "Berlin", place="repo:github.com/acme/etl")
    state(made["ann"], "redis", "is paid by", SECRET, place="personal:ann", tags={"scope": "personal"})
    return made


READING = [
    "", "/facts", f"/facts?object={SECRET}&history=true&likely=true", "/neighbours?entity=redis",
    f"/paths?start=berlin&goal={SECRET}", "/timeline?entity=redis", "/between?start=2020-01-01&end=2100-01-01",
    "/contradictions", "/query?pattern=redis+%3Fhow+%3Fwhat", "/closure?entity=redis&relation=is+paid+by",
    "/entities", f"/entities?like={SECRET}", "/relations", "/important", "/communities?smallest=1",
]  # fmt: skip


def test_nobody_is_told_a_colleagues_personal_fact(people):
    for path in READING:
        mine = people["ann"].get(f"{G}{path}")
        for name in ("bob", "ron", "eve"):
            answer = people[name].get(f"{G}{path}")
            assert mine.status_code == answer.status_code == 200, answer.text
            assert SECRET not in answer.text, (path, name)
            assert "paid" not in answer.text, (path, name)
        assert mine.text != answer.text or path == "/contradictions"


def test_a_colleagues_personal_fact_is_as_one_that_does_not_exist(people):
    (mine,) = ask(people["ann"], "/facts", object=SECRET)["facts"]
    for name in ("bob", "eve"):
        for method, path in (
            ("GET", path_of(mine)),
            ("GET", f"{path_of(mine)}/explain"),
            ("POST", f"{path_of(mine)}/end"),
            ("DELETE", path_of(mine)),
        ):
            body = {} if method == "POST" else None
            theirs = people[name].request(method, f"{G}{path}", json=body)
            other = mine["memory_id"].replace("default-", "default-9")
            nobodys = people[name].request(method, f"{G}{path.replace(mine['memory_id'], other)}", json=body)
            assert theirs.status_code == nobodys.status_code == 404, (method, path)
            assert nobodys.text.replace(other, mine["memory_id"]) == theirs.text
        assert people[name].get(f"{G}/memories/{mine['memory_id']}").json() == {"facts": []}
    ended = people["ann"].post(f"{G}{path_of(mine)}/end", json={}).json()
    assert people["bob"].get(f"{G}{path_of(ended)}").status_code == 404
    listed = people["bob"].get("/workspaces/default/memories").json()
    assert [one["text"] for one in listed["memories"]] == ["redis stands in Berlin."]
    assert listed["total"] == 1


def test_only_its_author_and_administrators_take_a_shared_fact_back(people):
    (fact,) = ask(people["bob"], "/facts", subject="redis")["facts"]
    refused = people["bob"].delete(f"{G}{path_of(fact)}")
    assert (refused.status_code, "'ann'" in refused.text) == (403, True)
    assert people["eve"].delete(f"{G}{path_of(fact)}").status_code == 200


def test_nobody_states_a_fact_in_somebody_elses_name(people):
    body = {"subject": "bob", "relation": "likes", "object": "tabs", "place": "personal:bob"}
    answer = people["ann"].post(f"{G}/facts", json=body)
    assert (answer.status_code, answer.json()["error"].partition(":")[0]) == (403, "place")
    assert people["ann"].post(f"{G}/facts", json={**body, "actor": "bob"}).status_code == 400


def test_whoever_states_and_takes_back_a_fact_is_in_the_log(people):
    fact = state(people["bob"], "etl", "uses", "duckdb")
    people["bob"].delete(f"{G}{path_of(fact)}").raise_for_status()
    log = people["eve"].get("/workspaces/default/audit", params={"memory": fact["memory_id"]}).json()["entries"]
    assert [(one["who"], one["action"]) for one in log] == [("bob", "forget"), ("bob", "remember")]
    assert log[1]["detail"]["origin"] == "rest"


def test_the_document_describes_what_is_taken_and_given():
    parameters = set(inspect.signature(Graph.add).parameters) - {"self"}
    assert set(forms.FactForm.model_fields) == parameters
    assert set(graph_documents.FactAnswer.model_fields) == {one.name for one in fields(Fact)} | {"trust"}


def test_questions_about_the_whole_graph_run_in_a_process_of_their_own(server, admin):
    workers = server.app.state.workers
    ask(admin, "/facts")
    ask(admin, "/neighbours", entity="x")
    assert workers.pids == []
    assert ask(admin, "/important") == {"entities": []}
    assert len(workers.pids) == 1
