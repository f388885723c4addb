"""Similar states: numbers are compared as numbers, in every tier."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rmem.agents import MemoryRetrievalException


def contents(found):
    return [entry["contents"] for entry in found]


def test_a_position_nearby_is_more_alike_than_one_far_away(api):
    api.store_agent_state("a", {"position": [90, 5], "health": 0.8}, 1)
    api.store_agent_state("a", {"position": [10, 20], "health": 0.85}, 2)
    found = api.retrieve_similar_states("a", {"position": [12, 22], "health": 0.8})
    assert contents(found)[0]["position"] == [10, 20]
    assert found[0].score > found[1].score


def random_states(rng: random.Random, count: int) -> list[dict]:
    return [
        {
            "position": [rng.uniform(0, 100), rng.uniform(0, 100)],
            "health": rng.random(),
            "gold": rng.uniform(0, 1e6),
            "toxin": rng.uniform(0, 1e-3),
            "inventory": {"wood": rng.randrange(50)},
        }
        for _ in range(count)
    ]


def flat(state: dict) -> list[float]:
    return [*state["position"], state["health"], state["gold"], state["toxin"], state["inventory"]["wood"]]


def test_the_best_of_5000_states_is_that_of_an_exact_normalised_distance(new_api):
    api = new_api(cleanup_interval=10**9, cache_ttl=0)
    rng = random.Random(7)
    states = random_states(rng, 5000)
    api.get_memory_space("a").store_many("state", states, first_step=0)
    matrix = np.array([flat(state) for state in states])
    spread = np.ptp(matrix, axis=0)
    agreed = 0
    for query in random_states(rng, 100):
        exact = int(np.argmin((((matrix - flat(query)) / spread) ** 2).sum(axis=1)))
        agreed += api.retrieve_similar_states("a", query, k=1)[0]["step_number"] == exact
    assert agreed >= 95


def test_the_order_is_the_same_whichever_tier_the_states_are_in(new_api):
    api = new_api(stm_config={"memory_limit": 40}, im_config={"memory_limit": 80}, cleanup_interval=10**9, cache_ttl=0)
    space = api.get_memory_space("a")
    rng = random.Random(3)
    space.store_many("state", random_states(rng, 300), first_step=0)
    queries = random_states(rng, 10)
    before = [[e["step_number"] for e in api.retrieve_similar_states("a", q, k=7)] for q in queries]
    moved = api.force_memory_maintenance("a")
    assert moved["stm_to_im"] == 260
    assert moved["im_to_ltm"] == 180
    after = [api.retrieve_similar_states("a", q, k=7) for q in queries]
    assert [[e["step_number"] for e in found] for found in after] == before
    assert {e.tier for found in after for e in found} == {"stm", "im", "ltm"}


@pytest.mark.parametrize("magnitude", [1e-3, 1.0, 1e3, 1e6])
def test_magnitudes_do_not_matter(api, magnitude):
    for step, value in enumerate((1.0, 2.0, 5.0, 9.0)):
        api.store_agent_state("a", {"gold": value * magnitude, "health": 0.5}, step)
    found = api.retrieve_similar_states("a", {"gold": 4.4 * magnitude, "health": 0.5}, k=4)
    assert [entry["step_number"] for entry in found] == [2, 1, 0, 3]


def test_texts_booleans_lists_and_nested_objects_count(api):
    base = {"mood": "calm", "armed": False, "bag": {"items": ["rope", "lamp"], "weight": 3}, "path": [1, 2, 3]}
    api.store_agent_state("a", base, 0)
    api.store_agent_state("a", {**base, "mood": "angry"}, 1)
    api.store_agent_state("a", {**base, "mood": "angry", "armed": True}, 2)
    api.store_agent_state("a", {**base, "mood": "angry", "armed": True, "bag": {"items": ["sword"], "weight": 3}}, 3)
    found = api.retrieve_similar_states("a", base, k=4)
    assert [entry["step_number"] for entry in found] == [0, 1, 2, 3]
    assert found[0].score == 1.0


def test_a_missing_key_counts_against_a_memory_and_an_extra_one_does_not(api):
    api.store_agent_state("a", {"health": 0.5}, 0)
    api.store_agent_state("a", {"health": 0.5, "hunger": 0.9}, 1)
    api.store_agent_state("a", {"health": 0.5, "hunger": 0.2, "extra": {"deep": [1, 2]}}, 2)
    found = api.retrieve_similar_states("a", {"health": 0.5, "hunger": 0.25}, k=3)
    assert [entry["step_number"] for entry in found] == [2, 1, 0]


def test_true_is_not_one(api):
    api.store_agent_state("a", {"flag": 1}, 0)
    api.store_agent_state("a", {"flag": True}, 1)
    assert [e["step_number"] for e in api.retrieve_similar_states("a", {"flag": True})] == [1]
    assert [e["step_number"] for e in api.retrieve_similar_states("a", {"flag": 1})] == [0]


def test_memories_that_share_nothing_are_not_similar(api):
    api.store_agent_action("a", {"action_type": "trade"}, 0)
    assert api.retrieve_similar_states("a", {"health": 0.5}) == []


def test_of_equal_states_the_newest_comes_first(api):
    for step in range(5):
        api.store_agent_state("a", {"health": 0.5}, step)
    assert [e["step_number"] for e in api.retrieve_similar_states("a", {"health": 0.5}, k=3)] == [4, 3, 2]


@pytest.mark.parametrize("state", [{}, {"deep": {}}, "health", None, {"x": float("nan")}, {1: 2}])
def test_what_is_no_state_is_refused_by_name(api, state):
    with pytest.raises(MemoryRetrievalException, match="query_state"):
        api.retrieve_similar_states("a", state)


def test_huge_numbers_do_not_overflow(api):
    for step, value in enumerate((1e300, -1e300, 1e-300, 10**200)):
        api.store_agent_state("a", {"x": value, "y": step}, step)
    assert api.retrieve_similar_states("a", {"x": 9e299}, k=1)[0]["step_number"] == 0
    assert len(api.retrieve_similar_states("a", {"x": 10**199, "y": 1}, k=9)) == 4


def test_vectors_of_states_understand_numbers_too(api):
    for step, x in enumerate((10, 11, 40, 90)):
        api.store_agent_state("a", {"position": [x, x]}, step)
    space = api.get_memory_space("a")
    found = space.search_by_embedding(space.embed({"position": [10.5, 10.5]}), k=4)
    assert {entry["step_number"] for entry in found[:2]} == {0, 1}
    assert found[-1]["step_number"] == 3
