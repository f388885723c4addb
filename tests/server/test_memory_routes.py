"""Memories over HTTP, on a real server: what is remembered is recalled, listed, changed and forgotten."""

from __future__ import annotations

import json
import threading
from dataclasses import fields

import pytest

from rmem import Filter
from rmem.crypto.encryption import new_master_key
from rmem.memory_builder import WRITABLE
from rmem.server import forms
from rmem.server.recalls import NAMES
from rmem.tiers.forgetting import ForgettingPolicy

W = "/workspaces/default"


def remember(client, *texts: str, **fields: object) -> list[str]:
    answer = client.post(f"{W}/memories", json=[{"text": text, **fields} for text in texts])
    assert answer.status_code == 201, answer.text
    return answer.json()["ids"]


# Remembering


def test_one_memory_is_remembered_and_read_back_whole(admin):
    sent = {
        "text": "Fixed the OOM: switched to pyarrow.dataset",
        "agent": "swe-01",
        "type": "error_fix",
        "session": "s1",
        "actor": "Ada",
        "tags": {"repo": "etl", "tries": 3},
        "importance": 0.9,
        "when": "2026-05-01T12:00:00+00:00",
        "metadata": {"ticket": 4711},
        "step": 7,
        "position": [1, 2],
        "place": "lab",
        "id": "m/1 ü",
        "tier": "im",
    }
    answer = admin.post(f"{W}/memories", json=sent)
    assert (answer.status_code, answer.json()) == (201, {"ids": ["m/1 ü"]})
    memory = admin.get(f"{W}/memories/m%2F1%20%C3%BC").json()
    assert memory["contents"] == {"text": sent["text"], "ticket": 4711}
    assert memory["tags"] == {"repo": "etl", "tries": "3"}
    assert memory["metadata"]["importance_score"] == 0.9
    assert memory["metadata"]["memory_type"] == "error_fix"
    assert memory["timestamp"] == 1777636800.0
    assert [memory[key] for key in ("agent_id", "step_number", "session", "actor", "position", "place", "tier")] == [
        "swe-01", 7, "s1", "Ada", [1.0, 2.0], "lab", "im",
    ]  # fmt: skip
    assert "embeddings" not in memory
    vectors = admin.get(f"{W}/memories/m%2F1%20%C3%BC", params={"vectors": True}).json()["embeddings"]
    assert len(vectors["full_vector"] or vectors["compressed_vector"]) > 8


def test_a_list_is_remembered_whole_or_not_at_all(admin):
    assert len(remember(admin, "one", "two", "three")) == 3
    answer = admin.post(f"{W}/memories", json=[{"text": "four"}, {"text": "five", "importance": 2}])
    assert answer.status_code == 400
    assert answer.json() == {"error": "item 1: importance must be a number from 0 to 1, got 2"}
    assert admin.get(f"{W}/stats").json()["memories"] == 3


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"text": "x", "importnce": 1}, "a memory to remember has no field 'importnce'; did you mean 'importance'?"),
        ({"text": ""}, "text must not be empty or only white space, got ''"),
        ({"text": 7}, "text must be a text, got 7"),
        ({}, "text must be given"),
        ({"text": "x", "step": -1}, "step must be a whole number ≥ 0, got -1"),
        ({"text": "x", "step": True}, "step must be a whole number ≥ 0, got True"),
        ({"text": "x", "tier": "hot"}, "tier must be one of 'stm', 'im', 'ltm', got 'hot'"),
        ({"text": "x", "vector": [1, 2]}, "vector must have 8 to 4096 numbers, got 2"),
        ({"text": "\ud800"}, "text must be valid Unicode, got a lone surrogate at character 0"),
        ([], "a list must hold 1 to 1000 memories, got 0"),
        ("text", "the body must be a JSON object, got 'text'"),
        ([1], "item 0 must be a mapping of remember's arguments, got 1"),
    ],
)
def test_what_cannot_be_remembered_is_refused_by_name(admin, body, told):
    answer = admin.post(f"{W}/memories", content=json.dumps(body))
    assert (answer.status_code, answer.json()) == (400, {"error": told})
    assert admin.get(f"{W}/stats").json()["memories"] == 0


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b'{"text": NaN}', b"[" * 100_000, b'{"text": ' + b"9" * 5000 + b"}"]
)
def test_a_body_that_is_no_json_is_refused(admin, body):
    for path in ("memories", "recall", "forget"):
        answer = admin.post(f"{W}/{path}", content=body)
        assert answer.status_code == 400, (path, answer.text)
        assert "the body must" in answer.json()["error"]


def test_more_than_a_thousand_at_once_are_refused(admin):
    answer = admin.post(f"{W}/memories", json=[{"text": "x"}] * 1001)
    assert answer.json() == {"error": "a list must hold 1 to 1000 memories, got 1,001"}


def test_a_write_that_is_sent_twice_is_done_once(admin):
    key = {"Idempotency-Key": "once"}
    first = admin.post(f"{W}/memories", json={"text": "once"}, headers=key)
    again = admin.post(f"{W}/memories", json={"text": "once"}, headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    assert admin.get(f"{W}/stats").json()["memories"] == 1


# Recalling


def test_a_recall_gives_hits_with_scores_and_reasons(admin):
    wanted, *_ = remember(admin, "The ETL job was killed by OOM", "Lunch was good", "The build is green")
    answer = admin.post(f"{W}/recall", json={"query": "out of memory in ETL", "k": 2, "explain": True}).json()
    assert answer["score_kind"] == "fused"
    assert [hit["rank"] for hit in answer["hits"]] == [1, 2]
    best = answer["hits"][0]
    assert best["memory"]["memory_id"] == wanted
    assert sum(best["explanation"]["components"].values()) == pytest.approx(best["score"])
    assert "explanation" not in admin.post(f"{W}/recall", json={"query": "ETL"}).json()["hits"][0]


@pytest.mark.parametrize(("mode", "kind"), [("hybrid", "fused"), ("lexical", "bm25"), ("vector", "cosine")])
def test_each_mode_says_what_its_scores_are(admin, mode, kind):
    remember(admin, "green apples", "red cars")
    answer = admin.post(f"{W}/recall", json={"query": "apples", "mode": mode}).json()
    assert answer["score_kind"] == kind
    assert answer["hits"][0]["memory"]["text"] == "green apples"


def test_a_recall_keeps_to_its_filter_its_time_and_its_budget(admin):
    remember(admin, "apples in May", agent="a", when="2026-05-10")
    remember(admin, "apples in June " + "and so on " * 50, agent="b", when="2026-06-10")

    def found(**more: object) -> list[str]:
        answer = admin.post(f"{W}/recall", json={"query": "apples", **more})
        assert answer.status_code == 200, answer.text
        return [hit["memory"]["agent_id"] for hit in answer.json()["hits"]]

    assert found(where={"agent": "b"}) == ["b"]
    assert found(since="2026-06-01") == ["b"]
    assert found(until="2026-06-01") == ["a"]
    assert found(token_budget=20) == ["a"]
    words = {"settings": {"time_words": "filter"}, "query": "apples of yesterday"}
    assert found(**words, as_of="2026-05-11T12:00:00") == ["a"]
    assert found(**words, as_of="2026-06-11T12:00:00") == ["b"]


def test_what_was_recalled_counts_as_accessed_unless_said_otherwise(admin):
    (key,) = remember(admin, "apples")
    count = lambda: admin.get(f"{W}/memories/{key}").json()["metadata"]["retrieval_count"]  # noqa: E731
    admin.post(f"{W}/recall", json={"query": "apples", "touch": False})
    assert count() == 0
    admin.post(f"{W}/recall", json={"query": "apples"})
    assert count() == 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"k": 3}, "query must be given"),
        ({"query": "  "}, "query must not be empty or only white space, got '  '"),
        ({"query": "x", "k": 0}, "k must be a whole number ≥ 1, got 0"),
        ({"query": "x", "k": 1001}, "k must be a whole number from 1 to 1000, got 1001"),
        ({"query": "x", "mode": "magic"}, "mode must be one of 'hybrid', 'lexical', 'vector', got 'magic'"),
        ({"query": "x", "where": {"agnt": "a"}}, "a filter has no field 'agnt'; did you mean 'agent'?"),
        ({"query": "x", "where": {"agent": None}}, "agent must be left out or given a value, got None"),
        ({"query": "x", "explain": 1}, "explain must be True or False, got 1"),
        ({"query": "x", "limit": 1}, "a recall has no field 'limit'"),
    ],
)
def test_a_bad_question_is_refused_by_name(admin, body, told):
    answer = admin.post(f"{W}/recall", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(told)


# Listing


def test_pages_tell_every_memory_once_while_others_write(admin):
    ids = {key for day in range(1, 8) for key in remember(admin, "x", "y", "z", when=f"2026-05-0{day}")}
    for order in ("newest", "oldest", "step", "last step"):
        seen, cursor = [], None
        while True:
            params = {"limit": 4, "order": order, "until": "2026-05-31"} | ({"cursor": cursor} if cursor else {})
            page = admin.get(f"{W}/memories", params=params).json()
            assert page["total"] == 21
            seen += [memory["memory_id"] for memory in page["memories"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
            remember(admin, "written meanwhile", when="2026-06-05")
        assert len(seen) == 21, order
        assert set(seen) == ids, order


def test_a_list_keeps_to_its_filter(admin):
    remember(admin, "a", agent="a", type="fix", tags={"repo": "x"}, metadata={"n": {"m": 1}}, importance=0.9)
    remember(admin, "b", agent="b", type="note", when="2020-01-01", place="lab", session="s", tier="ltm")

    def texts(**params: object) -> list[str]:
        answer = admin.get(f"{W}/memories", params=params)
        assert answer.status_code == 200, answer.text
        return sorted(memory["text"] for memory in answer.json()["memories"])

    assert texts(agent="a") == ["a"]
    assert texts(agent=["a", "b"], type="note") == ["b"]
    assert texts(tag="repo=x") == ["a"]
    assert texts(where='{"attributes": {"n.m": 1}}') == ["a"]
    assert texts(min_importance=0.8) == ["a"]
    assert texts(until="2021-01-01") == texts(until=1609459200) == texts(place="lab") == texts(tier="ltm") == ["b"]
    assert texts(since="2021-01-01") == ["a"]


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"agnt": "a"}, "agnt"),
        ({"limit": 0}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"order": "best"}, "order"),
        ({"tag": "x"}, "tag must be KEY=VALUE"),
        ({"where": "{"}, "where must be a JSON object"),
        ({"where": "[]"}, "where must be"),
        ({"where": '{"agnt": 1}'}, "a filter has no field 'agnt'"),
        ({"agent": "a", "where": '{"agent": "b"}'}, "agent is given twice"),
        ({"cursor": "nonsense"}, "cursor must be the next_cursor of an answer"),
        ({"since": "whenever that was"}, "since must be"),
    ],
)
def test_a_bad_list_is_refused_by_name(admin, params, told):
    answer = admin.get(f"{W}/memories", params=params)
    assert answer.status_code == 400
    assert told in answer.json()["error"]


def test_an_answer_that_the_caller_has_is_not_sent_again(admin):
    (key,) = remember(admin, "apples")
    for path in (f"{W}/memories", f"{W}/memories/{key}"):
        first = admin.get(path)
        again = admin.get(path, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
    tag = admin.get(f"{W}/memories/{key}").headers["ETag"]
    admin.post(f"{W}/recall", json={"query": "apples"})
    assert admin.get(f"{W}/memories/{key}").headers["ETag"] == tag, "being recalled does not change a memory"
    admin.patch(f"{W}/memories/{key}", json={"text": "pears"})
    changed = admin.get(f"{W}/memories/{key}", headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["text"]) == (200, "pears")


# Changing


def test_a_memory_is_changed_only_if_it_is_still_the_one(admin):
    (key,) = remember(admin, "apples", session="s")
    tag = admin.get(f"{W}/memories/{key}").headers["ETag"]
    first = admin.patch(f"{W}/memories/{key}", json={"importance": 1.0, "session": None}, headers={"If-Match": tag})
    assert (first.status_code, first.json()["session"]) == (200, None)
    second = admin.patch(f"{W}/memories/{key}", json={"importance": 0.1}, headers={"If-Match": tag})
    assert (second.status_code, second.json()) == (412, {"error": "the memory has been changed since; get it again"})
    third = admin.patch(f"{W}/memories/{key}", json={"importance": 0.2}, headers={"If-Match": first.headers["ETag"]})
    assert third.json()["metadata"]["importance_score"] == 0.2
    assert admin.patch(f"{W}/memories/{key}", json={"text": "pears"}, headers={"If-Match": "*"}).status_code == 200


def test_of_many_who_change_the_same_memory_one_wins(server, admin):
    (key,) = remember(admin, "apples")
    tag = admin.get(f"{W}/memories/{key}").headers["ETag"]
    statuses = []

    def change(number: int) -> None:
        client = server.client(server.first_token)
        answer = client.patch(f"{W}/memories/{key}", json={"importance": number / 100}, headers={"If-Match": tag})
        statuses.append(answer.status_code)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [412] * 7


def test_a_bad_change_is_refused_by_name(admin):
    (key,) = remember(admin, "apples")
    for body, told in (
        ({}, "an update must change at least one field"),
        ({"agent": "b"}, "an update has no field 'agent'"),
        ({"text": None}, "text must be given a value, got None"),
        ({"importance": 2}, "importance must be a number from 0 to 1, got 2"),
    ):
        answer = admin.patch(f"{W}/memories/{key}", json=body)
        assert answer.status_code == 400
        assert told in answer.json()["error"]
    assert admin.get(f"{W}/memories/{key}").json()["text"] == "apples"


def test_what_there_is_not_is_not_found(admin):
    for answer in (
        admin.get(f"{W}/memories/nobody"),
        admin.patch(f"{W}/memories/nobody", json={"text": "x"}),
        admin.delete(f"{W}/memories/nobody"),
        admin.post(f"{W}/memories/nobody/pin"),
        admin.post(f"{W}/memories/nobody/unpin"),
    ):
        assert (answer.status_code, answer.json()) == (404, {"error": "no memory with id 'nobody'"})


# Forgetting


def test_a_memory_is_forgotten_for_good(admin):
    (key,) = remember(admin, "apples")
    assert admin.delete(f"{W}/memories/{key}").json() == {"ids": [key]}
    assert admin.get(f"{W}/memories/{key}").status_code == 404
    assert admin.post(f"{W}/recall", json={"query": "apples"}).json()["hits"] == []


def test_a_filter_forgets_only_what_is_inside_it(admin):
    gone = remember(admin, "a", "b", agent="old")
    (kept,) = remember(admin, "c", agent="new")
    asked = {"where": {"agent": "old"}}
    assert sorted(admin.post(f"{W}/forget", json={**asked, "dry_run": True}).json()["ids"]) == sorted(gone)
    assert admin.get(f"{W}/stats").json()["memories"] == 3
    assert sorted(admin.post(f"{W}/forget", json=asked).json()["ids"]) == sorted(gone)
    assert [m["memory_id"] for m in admin.get(f"{W}/memories").json()["memories"]] == [kept]
    assert admin.post(f"{W}/forget", json=asked).json() == {"ids": [], "dry_run": False}


def test_forgetting_everything_must_be_meant(admin):
    remember(admin, "a")
    for body in ({}, {"where": {}}, {"where": {"agent": "a"}, "subject": "a"}, {"where": None}, {"all": True}):
        assert admin.post(f"{W}/forget", json=body).status_code == 400, body
    assert admin.get(f"{W}/stats").json()["memories"] == 1


def test_a_subject_is_forgotten_by_an_admin(admin, client_for):
    remember(admin, "Ann Smith likes tea", "Tea is nice")
    writer = client_for("default", "default", "WRITE")
    assert writer.post(f"{W}/forget", json={"subject": "Ann Smith"}).status_code == 403
    assert len(admin.post(f"{W}/forget", json={"subject": "Ann Smith"}).json()["ids"]) == 1
    assert [m["text"] for m in admin.get(f"{W}/memories").json()["memories"]] == ["Tea is nice"]


def test_what_has_faded_is_pruned_and_restored(admin, client_for, server):
    old = remember(admin, "long ago")
    remember(admin, "pinned")
    admin.post(f"{W}/memories/{remember(admin, 'stays')[0]}/pin").raise_for_status()
    policy = {"prune": {"max_count": 2, "min_age_days": 0}}
    told = admin.post(f"{W}/maintenance", json={**policy, "dry_run": True}).json()
    assert [one["memory_id"] for one in told["pruned"]] == old
    assert admin.get(f"{W}/stats").json()["memories"] == 3
    short = admin.post(f"{W}/maintenance", json={**policy, "dry_run": True, "limit": 0}).json()
    assert (short["pruned"], short["pruned_count"]) == ([], len(told["pruned"]))
    assert admin.post(f"{W}/maintenance", json={**policy, "dry_run": True, "limit": -1}).status_code == 400
    admin.post(f"{W}/maintenance", json=policy).raise_for_status()
    assert [one["memory_id"] for one in admin.get(f"{W}/pruned").json()["memories"]] == old
    back = admin.post(f"{W}/restore", json={"ids": [*old, "nobody"]}).json()
    assert back == {"restored": old, "missing": ["nobody"]}
    writer = client_for("default", "default", "WRITE")
    for_good = {"prune": {"below": 0.1, "grace_days": 0}}
    assert writer.post(f"{W}/maintenance", json=for_good).status_code == 403
    assert writer.post(f"{W}/maintenance", json={}).status_code == 200
    assert admin.post(f"{W}/maintenance", json={"prune": {}}).status_code == 400


# Feedback


def test_a_hit_is_judged_by_its_recall(admin, server):
    (key,) = remember(admin, "apples")
    recall = admin.post(f"{W}/recall", json={"query": "apples"}).json()
    told = admin.post(f"{W}/feedback", json={"recall_id": recall["recall_id"], "memory_id": key})
    assert told.status_code == 201
    assert {k: told.json()[k] for k in ("memory_id", "useful", "rank")} == {"memory_id": key, "useful": True, "rank": 1}
    useless = admin.post(f"{W}/feedback", json={"recall_id": recall["recall_id"], "useful": False})
    assert useless.json()["memory_id"] == ""
    for body, status in (
        ({"recall_id": "nobody", "memory_id": key}, 404),
        ({"recall_id": recall["recall_id"], "memory_id": "other"}, 400),
        ({"recall_id": recall["recall_id"], "useful": "yes"}, 400),
        ({"memory_id": key}, 400),
    ):
        assert admin.post(f"{W}/feedback", json=body).status_code == status, body


def test_a_recall_of_another_organisation_cannot_be_judged(server, admin):
    remember(admin, "apples")
    recall = admin.post(f"{W}/recall", json={"query": "apples"}).json()
    stranger = server.client_for("other", "default", "ADMIN")
    assert stranger.post(f"{W}/feedback", json={"recall_id": recall["recall_id"], "useful": False}).status_code == 404


# The document


def test_forms_describe_what_the_engine_takes():
    assert set(forms.RememberForm.model_fields) == set(WRITABLE)
    assert set(forms.UpdateForm.model_fields) == set(WRITABLE) - {"id", "agent"}
    assert tuple(forms.RecallForm.model_fields) == NAMES
    assert set(forms.FilterForm.model_fields) == {field.name for field in fields(Filter)}
    assert set(forms.PolicyForm.model_fields) == {field.name for field in fields(ForgettingPolicy)}


def test_every_field_of_a_request_is_documented(server):
    paths = server.app.openapi()["paths"]
    body = paths["/workspaces/{workspace}/recall"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["query"]
    assert body["additionalProperties"] is False
    assert set(body["properties"]) == set(forms.RecallForm.model_fields)


def test_connections_tell_what_stands_around_a_memory_in_its_session(admin, client_for):
    """Nine turns of one time, between one that was said before them and one after."""
    turns = [{"id": f"turn-{n}", "text": f"Turn {n}", "session": "talk", "when": 1000.0} for n in range(9)]
    ends = [{"id": "first", "text": "Hello", "session": "talk", "when": 999.0},
            {"id": "last", "text": "Bye", "session": "talk", "when": 1001.0}]  # fmt: skip
    personal = {"id": "own", "text": "Mine", "session": "talk", "when": 1000.5, "place": "personal:admin"}
    other = {"id": "alone", "text": "Said in no session"}
    admin.post("/workspaces/default/memories", json=[*turns, *ends, personal, other]).raise_for_status()

    def around(client, memory_id):
        told = client.get(f"/workspaces/default/connections/{memory_id}").json()["around"]
        return [memory["memory_id"] for memory in told]

    assert around(admin, "turn-4") == [f"turn-{n}" for n in range(9)]
    assert around(admin, "turn-1") == ["first", *(f"turn-{n}" for n in range(6))]
    assert around(admin, "last") == ["turn-6", "turn-7", "turn-8", "own", "last"]
    assert around(client_for("default", "default", "READ"), "last") == ["turn-6", "turn-7", "turn-8", "last"]
    assert around(admin, "alone") == []


def test_a_store_without_its_key_says_so_and_not_to_try_again(server_with, tmp_path, monkeypatch):
    data, text = tmp_path / "data", {"text": "The safe is behind the painting", "id": "safe"}
    monkeypatch.setenv("RMEM_MASTER_KEY", new_master_key())
    first = server_with(data=data)
    assert first.client(first.first_token).post(f"{W}/memories", json=text).status_code == 201
    first.stop()

    for key, words in (("", "no master key"), (new_master_key(), "another master key")):
        monkeypatch.setenv("RMEM_MASTER_KEY", key)
        later = server_with(data=data)
        client = later.client(first.first_token)
        for answer in (client.get(f"{W}/memories/safe"), client.post(f"{W}/memories", json=text)):
            assert answer.status_code == 503
            assert words in answer.json()["error"]
            assert "again" not in answer.json()["error"]
            assert "Retry-After" not in answer.headers
        later.stop()
