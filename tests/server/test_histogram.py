"""Memories counted over time, as the timeline draws them."""

from __future__ import annotations

import pytest
from running_server import Running

from rmem import Brain
from rmem.server.own_store import invite_owner, own_settings

W = "/workspaces/default"


def remember(client, *memories):
    client.post(f"{W}/memories", json=list(memories)).raise_for_status()


def counts(told):
    return [one["counts"] for one in told["bins"]]


def test_memories_are_counted_by_spans_of_time_and_by_type(admin):
    remember(
        admin,
        {"text": "one", "type": "note", "when": 1000},
        {"text": "two", "type": "note", "when": 1001},
        {"text": "three", "type": "decision", "when": 1099},
    )
    told = admin.get(f"{W}/histogram", params={"bins": 10}).json()
    assert (told["start"], told["end"], told["total"]) == (1000, 1099, 3)
    assert told["names"] == ["note", "decision"]
    assert counts(told) == [{"note": 2}, {"decision": 1}]


def test_a_filter_and_the_rarest_names_are_heeded(admin):
    remember(admin, *({"text": f"{n}", "agent": f"a{n % 5}", "when": 1000 + n} for n in range(50)))
    remember(admin, {"text": "more of the first", "agent": "a0", "when": 1000})
    told = admin.get(
        f"{W}/histogram", params={"by": "agent", "bins": 1, "names": 2, "since": 1000, "until": 1039}
    ).json()
    assert told["names"] == ["a0", "others"]
    assert counts(told) == [{"a0": 9, "others": 32}]


def test_an_empty_store_has_no_spans(admin):
    told = admin.get(f"{W}/histogram").json()
    assert (told["total"], told["bins"], told["start"]) == (0, [], None)


def test_others_personal_memories_are_not_counted(server, admin):
    ann = server.client(server.token_for("default", "default", "WRITE", member="ann"))
    tags = {"scope": "personal"}
    remember(ann, {"text": "mine alone", "type": "secret", "place": "personal:ann", "tags": tags, "when": 1000})
    remember(admin, {"text": "everybody's", "type": "note", "when": 2000})
    assert admin.get(f"{W}/histogram").json()["names"] == ["note"]
    assert ann.get(f"{W}/histogram").json()["total"] == 2


@pytest.mark.parametrize("by", ["type", "agent", "tier", "importance"])
def test_the_database_counts_the_same_where_rows_are_not_held(admin, monkeypatch, by):
    named = ({"text": f"{n}", "agent": f"a{n % 3}", "type": "xy"[n % 2], "importance": n % 5 / 4} for n in range(40))
    remember(admin, *({**one, "when": 1000 + n} for n, one in enumerate(named)))
    told = admin.get(f"{W}/histogram", params={"by": by, "bins": 7}).json()
    monkeypatch.setattr("rmem.server.routes.histogram.FilteredRows", int)  # as of a large tenant of PostgreSQL
    assert admin.get(f"{W}/histogram", params={"by": by, "bins": 7}).json() == told


@pytest.mark.parametrize("held", [True, False])
def test_sessions_are_listed_with_their_times_and_without_what_others_keep_to_themselves(
    server, admin, monkeypatch, held
):
    ann = server.client(server.token_for("default", "default", "WRITE", member="ann"))
    own = {"place": "personal:ann", "tags": {"scope": "personal"}}
    remember(admin, *({"text": f"{n}", "agent": "a", "session": f"s{n % 2}", "when": 1000 + n} for n in range(6)))
    remember(ann, {"text": "mine", "agent": "a", "session": "s1", "when": 9000, **own})
    remember(ann, {"text": "mine too", "agent": "a", "session": "secret", "when": 9001, **own})
    remember(admin, {"text": "outside any"})
    if not held:
        monkeypatch.setattr("rmem.server.routes.histogram.FilteredRows", int)  # as of a large tenant of PostgreSQL
    told = admin.get(f"{W}/sessions").json()
    assert told == {
        "sessions": [
            {"agent": "a", "session": "s1", "start": 1001, "end": 1005, "memories": 3},
            {"agent": "a", "session": "s0", "start": 1000, "end": 1004, "memories": 3},
        ],
        "total": 2,
    }
    assert [one["session"] for one in ann.get(f"{W}/sessions").json()["sessions"]] == ["secret", "s1", "s0"]
    assert admin.get(f"{W}/sessions", params={"session": "s0", "limit": 1}).json()["total"] == 1


def test_a_hit_tells_how_likely_it_answers(admin):
    remember(admin, {"text": "Staging runs on port 5434"})
    (hit,) = admin.post(f"{W}/recall", json={"query": "which port has staging?"}).json()["hits"]
    assert 0 < hit["relevance"] <= 1


def test_ones_own_store_is_shown_whole_and_never_deleted(tmp_path):
    with Brain(tmp_path / "mine.db") as brain:
        brain.remember("for me alone", place="personal:ann@acme.io", tags={"scope": "personal"})
    server = Running(own_settings(str(tmp_path / "mine.db"), tmp_path / "server")).start()
    try:
        token = server.service.sessions.accept(invite_owner(server.service))
        owner = server.client(token)
        assert owner.get(f"{W}/memories").json()["total"] == 1
        assert owner.get(f"{W}/histogram").json()["total"] == 1
        assert owner.delete(W).status_code == 403
        assert owner.post("/workspaces", json={"name": "other"}).status_code == 403
        assert owner.get("/health", headers={"Host": "evil.example"}).status_code == 403
        assert owner.get("/ui/", headers={"Host": "evil.example"}).status_code == 403
    finally:
        server.stop()
    with Brain(tmp_path / "mine.db") as brain:
        assert len(brain.memories()) == 1
