"""The agent memory API over HTTP: what is stored comes back by every way of asking, as the library would answer."""

from __future__ import annotations

import inspect

import pytest

from rmem.agents.space import MemorySpace
from rmem.server.routes.agents import RETRIEVALS

A = "/workspaces/default/agents/agent-123"

STATE = {"position": [10, 20], "health": 0.85, "inventory": {"wood": 5, "stone": 2}}
ACTION = {"action_type": "trade", "outcome": "success", "items_given": {"wood": 2}}
INTERACTION = {"interaction_type": "conversation", "content": "Hello, do you have any wood to trade?"}


@pytest.fixture
def stored(admin) -> dict[str, str]:
    """One of each, and a few states more; their ids by kind."""
    ids = {}
    for step, (kind, data) in enumerate((("state", STATE), ("action", ACTION), ("interaction", INTERACTION)), 1234):
        body = {f"{kind}_data": data, "step_number": step, "priority": 0.75}
        answer = admin.post(f"{A}/{kind}s", json=body)
        assert answer.status_code == 201, answer.text
        ids[kind] = answer.json()["memory_id"]
    more = [{"position": [n, n], "health": n / 10} for n in range(4)]
    answer = admin.post(f"{A}/several", json={"memory_type": "state", "items": more, "first_step": 2000})
    assert len(answer.json()["ids"]) == 4
    return ids


def retrieved(client, name: str, body: dict, **params: object) -> dict:
    answer = client.post(f"{A}/retrievals/{name}", json=body, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_memory_has_the_documented_structure(admin, stored):
    entry = admin.get(f"{A}/memories/{stored['state']}").json()
    assert entry["contents"] == STATE
    assert entry["step_number"] == 1234
    assert entry["metadata"]["importance_score"] == 0.75
    assert entry["metadata"]["memory_type"] == "state"
    assert (entry["tier"], entry["score"]) == ("stm", None)
    whole = admin.get(f"{A}/memories/{stored['state']}", params={"vectors": True}).json()
    assert len(whole["embeddings"]["full_vector"]) > 8


@pytest.mark.parametrize(
    ("name", "body", "steps"),
    [
        ("recent", {"count": 2}, [2003, 2002]),
        ("recent", {"count": 1, "memory_type": "action"}, [1235]),
        ("similar-states", {"query_state": {"position": [12, 22], "health": 0.8}, "k": 1}, [1234]),
        ("time-range", {"start_step": 1235, "end_step": 2000}, [1235, 1236, 2000]),
        ("time-range", {"start_step": 0, "end_step": 5000, "memory_type": "interaction"}, [1236]),
        ("times", {"since": "yesterday", "memory_type": "action"}, [1235]),
        ("times", {"until": "yesterday"}, []),
        ("attributes", {"attributes": {"action_type": "trade", "outcome": "success"}}, [1235]),
        ("attributes", {"attributes": {"inventory.wood": 5}, "memory_tiers": ["stm"]}, [1234]),
        ("attributes", {"attributes": {"inventory.wood": 5}, "memory_tiers": ["ltm"]}, []),
        ("locations", {"position": [10, 20], "radius": 1}, [1234]),
        ("locations", {"box": [[0, 0], [1, 1]]}, [2000, 2001]),
        ("importance", {"max_importance": 0.8, "k": 2, "memory_type": "state"}, [1234]),
        ("content", {"content_query": "hello, any wood?", "k": 1}, [1236]),
        ("query", {"attributes": {"outcome": "success"}, "start_step": 1000, "end_step": 1300}, [1235]),
    ],
)
def test_every_way_of_asking_finds_what_it_should(admin, stored, name, body, steps):
    assert [entry["step_number"] for entry in retrieved(admin, name, body)["memories"]] == steps


def test_a_vector_finds_what_it_was_made_from(admin, stored):
    vector = admin.post(f"{A}/embed", json={"state_or_text": "trade wood"}).json()["vector"]
    found = retrieved(admin, "embedding", {"query_embedding": vector, "k": 3})
    assert len(found["memories"]) == 3
    assert found["memories"][0]["score"] >= found["memories"][1]["score"]


def test_long_answers_come_in_parts(admin, stored):
    body = {"start_step": 0, "end_step": 5000}
    parts = [retrieved(admin, "time-range", body, limit=3, offset=offset) for offset in (0, 3, 6)]
    assert [part["total"] for part in parts] == [7, 7, 7]
    steps = [entry["step_number"] for part in parts for entry in part["memories"]]
    assert steps == [1234, 1235, 1236, 2000, 2001, 2002, 2003]


def test_changes_are_told(admin, stored):
    history = admin.post(f"{A}/history", json={"path": "health"}).json()["history"]
    assert [(one["step_number"], one["value"]) for one in history] == [
        (1234, 0.85), (2000, 0.0), (2001, 0.1), (2002, 0.2), (2003, 0.3),
    ]  # fmt: skip
    changes = admin.post(f"{A}/changes", json={"first_step": 2000, "second_step": 2001}).json()["changes"]
    assert changes["health"] == {"before": 0.0, "after": 0.1}


def test_attention_importance_and_forgetting_of_one_memory(admin, stored):
    path = f"{A}/memories/{stored['state']}"
    assert admin.post(f"{path}/focus").json()["metadata"]["retrieval_count"] == 1
    assert admin.patch(path, json={"importance": 0.1}).json()["metadata"]["importance_score"] == 0.1
    assert retrieved(admin, "importance", {"max_importance": 0.2})["total"] == 1
    admin.patch(f"/workspaces/default/memories/{stored['state']}", json={"tier": "ltm"}).raise_for_status()
    assert admin.post(f"{path}/decompress").json()["tier"] == "im"
    assert admin.delete(path).json() == {"ids": [stored["state"]]}
    for answer in (
        admin.get(path),
        admin.delete(path),
        admin.post(f"{path}/focus"),
        admin.patch(path, json={"importance": 1}),
    ):
        assert answer.status_code == 404, answer.text
    assert retrieved(admin, "attributes", {"attributes": {"inventory.wood": 5}})["total"] == 0


def test_one_agent_does_not_reach_the_memories_of_another(admin, stored):
    other = "/workspaces/default/agents/someone"
    for answer in (
        admin.get(f"{other}/memories/{stored['state']}"),
        admin.delete(f"{other}/memories/{stored['state']}"),
        admin.patch(f"{other}/memories/{stored['state']}", json={"importance": 1}),
        admin.post(f"{other}/memories/{stored['state']}/focus"),
    ):
        assert answer.status_code == 404
    assert admin.get(f"{A}/memories/{stored['state']}").status_code == 200


def test_agents_are_looked_after(admin, stored):
    assert admin.get("/workspaces/default/agents").json() == {"agents": {"agent-123": 7}}
    told = admin.get(f"{A}/statistics").json()
    assert told["total_memories"] == 7
    assert told["memory_type_distribution"] == {"state": 5, "action": 1, "interaction": 1}
    assert admin.post("/workspaces/default/maintenance", json={"agent": "agent-123"}).json()["agents"] == {
        "agent-123": {"stm_to_im": 0, "im_to_ltm": 0}
    }
    assert admin.post(f"{A}/cache/clear").status_code == 204
    assert admin.put("/workspaces/default/agents/cache", json={"ttl": 0}).status_code == 204
    assert admin.put("/workspaces/default/agents/cache", json={"ttl": 1e9}).status_code == 400


def test_numbers_of_any_magnitude_are_kept(admin):
    state = {"huge": 1.7e308, "tiny": -5e-324, "none": -0.0}
    admin.post(f"{A}/states", json={"state_data": state, "step_number": 1}).raise_for_status()
    found = retrieved(admin, "similar-states", {"query_state": state, "k": 1})["memories"]
    assert [entry["contents"] for entry in found] == [state]


def test_names_with_slashes_are_names(admin):
    path = "/workspaces/default/agents/team%2Fone"
    admin.post(f"{path}/states", json={"state_data": {"x": 1}, "step_number": 1}).raise_for_status()
    assert admin.get(f"{path}/statistics").json()["agent_id"] == "team/one"


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("states", {"state_data": {"x": 1}}, "step_number must be given"),
        ("states", {"state_data": [1], "step_number": 1}, "state_data must be"),
        ("states", {"state_data": {"x": 1}, "step_number": -1}, "step_number must be a whole number ≥ 0, got -1"),
        ("states", {"state_data": {"x": 1}, "step_number": 1, "priority": 2}, "priority must be"),
        ("actions", {"state_data": {"x": 1}, "step_number": 1}, "an action has no field 'state_data'"),
        (
            "several",
            {"memory_type": "state", "items": [], "first_step": 0},
            "items must be a list of 1 to 1000 objects",
        ),
        ("several", {"memory_type": "dream", "items": [{"x": 1}], "first_step": 0}, "memory_type must be one of"),
        ("retrievals/recent", {"count": 0}, "count must be"),
        ("retrievals/recent", {"k": 1}, "the retrieval 'recent' has no field 'k'"),
        ("retrievals/time-range", {"start_step": 5, "end_step": 1}, "start_step must not be after end_step"),
        ("retrievals/similar-states", {"query_state": {}}, "query_state must be"),
        ("retrievals/attributes", {"attributes": {}}, "attributes must be"),
        ("retrievals/embedding", {"query_embedding": [1, 2]}, "query_embedding must have"),
        ("retrievals/locations", {}, "one of position, box and place must be given"),
        ("retrievals/recent", {"memory_tiers": ["hot"]}, "memory_tiers must be one of"),
        ("changes", {"first_step": 1, "second_step": 2}, "first_step must be a step with a state"),
    ],
)
def test_bad_input_is_refused_by_name(admin, path, body, told):
    answer = admin.post(f"{A}/{path}", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].startswith(told)


def test_every_retrieval_of_a_memory_space_has_a_route():
    methods = {
        name
        for name, method in inspect.getmembers(MemorySpace, inspect.isfunction)
        if name.startswith(("retrieve_", "search_")) or name == "query"
    }
    assert {one.method for one in RETRIEVALS.values()} == methods
    for name, one in RETRIEVALS.items():
        known = set(inspect.signature(getattr(MemorySpace, one.method)).parameters) - {"self", "agent_id"}
        assert set(one.form.model_fields) == known, name
