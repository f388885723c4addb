"""MemorySpace: the query types, each alone and combined, what they cost, and who may ask."""

from __future__ import annotations

import asyncio
import inspect
import re
import time
import tracemalloc
from datetime import datetime, timedelta

import pytest

from rmem.agents import (
    AgentMemoryAPI,
    AsyncAgentMemoryAPI,
    MemoryAPIException,
    MemoryConfig,
    MemoryConfigException,
    MemoryRetrievalException,
    MemorySpace,
    MemoryStoreException,
)
from rmem.models import Bookkeeping, Memory


def steps(found):
    return [entry["step_number"] for entry in found]


@pytest.fixture
def forest(api):
    """An agent that walks from the village through the forest to the sea."""
    api.store_agent_state("a", {"position": [0, 0], "place": "village", "seen": "a well and two goats"}, 1, 0.2)
    api.store_agent_state("a", {"position": [10, 0], "place": "forest", "seen": "ripe berries"}, 2, 0.9)
    api.store_agent_state("a", {"position": [12, 3], "place": "forest", "seen": "a wolf"}, 3, 1.0)
    api.store_agent_action("a", {"action_type": "flee", "outcome": "success", "position": [14, 5]}, 4, 0.7)
    api.store_agent_interaction(
        "a", {"interaction_type": "conversation", "content": "the fisherman sells rope", "location": "harbour"}, 5, 0.5
    )
    api.store_agent_state("a", {"position": [40, 40, 2], "place": "sea", "seen": "boats"}, 6, 0.4)
    api.store_agent_state("b", {"position": [10, 0], "place": "forest", "seen": "somebody else's berries"}, 2)
    return api.get_memory_space("a")


# The document's structure


def test_an_entry_has_exactly_the_documented_keys(forest):
    entry = forest.retrieve_recent_states(1)[0]
    assert isinstance(entry, dict)
    assert list(entry) == [
        "memory_id", "agent_id", "step_number", "timestamp", "contents", "metadata", "embeddings",
    ]  # fmt: skip
    assert list(entry["metadata"]) == [
        "creation_time", "last_access_time", "compression_level", "importance_score", "retrieval_count", "memory_type",
    ]  # fmt: skip
    assert list(entry["embeddings"]) == ["full_vector", "compressed_vector", "abstract_vector"]
    assert re.fullmatch(r"a-6-\d{10}", entry["memory_id"])


def test_signatures_are_those_of_the_document():
    documented = {
        "store_agent_state": "(agent_id, state_data, step_number, priority=1.0)",
        "store_agent_interaction": "(agent_id, interaction_data, step_number, priority=1.0)",
        "store_agent_action": "(agent_id, action_data, step_number, priority=1.0)",
        "retrieve_similar_states": "(agent_id, query_state, k=5, memory_type=None)",
        "retrieve_by_time_range": "(agent_id, start_step, end_step, memory_type=None)",
        "retrieve_by_attributes": "(agent_id, attributes, memory_type=None)",
        "get_memory_space": "(agent_id)",
        "force_memory_maintenance": "(agent_id=None)",
        "get_memory_statistics": "(agent_id)",
        "clear_cache": "()",
        "set_cache_ttl": "(ttl)",
    }
    for name, expected in documented.items():
        given = list(inspect.signature(getattr(AgentMemoryAPI, name)).parameters.values())[1:]
        told = [p.name if p.default is p.empty else f"{p.name}={p.default}" for p in given]
        assert f"({', '.join(told)})" == expected, name


# The query types


def test_the_newest_come_first(forest):
    assert steps(forest.retrieve_recent_states(3)) == [6, 5, 4]
    assert steps(forest.retrieve_recent_states(3, memory_type="state")) == [6, 3, 2]


def test_a_step_range_includes_both_ends(forest):
    assert steps(forest.retrieve_by_time_range(2, 5)) == [2, 3, 4, 5]
    assert steps(forest.retrieve_by_time_range(2, 5, memory_type="action")) == [4]
    assert forest.retrieve_by_time_range(7, 9) == []


def test_two_memories_of_one_step_are_two_memories(api):
    for n in range(3):
        api.store_agent_state("a", {"n": n}, 1)
    found = api.retrieve_by_time_range("a", 1, 1)
    assert [entry["contents"]["n"] for entry in found] == [0, 1, 2]
    assert len({entry["memory_id"] for entry in found}) == 3


def test_wall_time_and_its_words(api):
    space = api.get_memory_space("a")
    space.store("state", {"seen": "the lighthouse"}, 1)
    old = Memory("", "a", 0, time.time() - 172_800, {"seen": "the mill"}, Bookkeeping(memory_type="state"), text="mill")
    api._system.store(old.agent_id, [old])
    assert steps(space.retrieve_by_time(since="three days ago", until=datetime.now() - timedelta(hours=2))) == [0]
    assert steps(space.retrieve_by_time(since=time.time() - 60)) == [1]
    assert steps(space.recall("what happened two days ago?", k=1)) == [0]  # far from now, also after midnight


def test_places_by_name_radius_box_and_nearest(forest):
    assert steps(forest.retrieve_by_location(place="forest")) == [2, 3]
    assert steps(forest.retrieve_by_location(place="harbour")) == [5]
    assert steps(forest.retrieve_by_location([11, 1], radius=3)) == [2, 3]
    assert steps(forest.retrieve_by_location(box=[[9, -1], [15, 6]])) == [2, 3, 4]
    nearest = forest.retrieve_by_location([13, 4], k=2)
    assert set(steps(nearest)) == {3, 4}
    assert nearest[0].score == pytest.approx(2**0.5)
    assert steps(forest.retrieve_by_location([40, 40, 0], k=1)) == [6]


def test_what_did_i_see_in_the_forest(forest):
    found = forest.recall("what did I see in the forest?", k=2)
    assert set(steps(found)) == {2, 3}


def test_meaning_and_words(forest):
    assert steps(forest.search_by_content("rope", k=1)) == [5]
    assert steps(forest.search_by_content("fruit to eat", k=1)) == [2]
    assert steps(forest.search_by_content({"seen": "boats"}, k=1)) == [6]


def test_attributes_nested_dotted_and_lists(api):
    space = api.get_memory_space("a")
    space.store("state", {"inventory": {"wood": 5}, "armed": True, "route": ["mill", "bridge"]}, 1)
    space.store("state", {"inventory": {"wood": 5}, "armed": 1, "route": ["bridge", "mill"]}, 2)
    assert steps(space.retrieve_by_attributes({"inventory.wood": 5})) == [1, 2]
    assert steps(space.retrieve_by_attributes({"inventory": {"wood": 5}, "armed": True})) == [1]
    assert steps(space.retrieve_by_attributes({"route": "mill"})) == [1, 2]
    assert steps(space.retrieve_by_attributes({"route": ["mill", "bridge"]})) == [1]
    assert space.retrieve_by_attributes({"inventory.wood": "5"}) == []


def test_importance_orders(forest):
    assert steps(forest.retrieve_by_importance(0.6)) == [3, 2, 4]
    assert steps(forest.retrieve_by_importance(k=2)) == [3, 2]
    assert steps(forest.retrieve_by_importance(0.1, 0.45)) == [6, 1]


def test_everything_in_one_call(forest):
    together = forest.query(
        start_step=1, end_step=5, memory_type="state", min_importance=0.5, position=[10, 0], radius=6, since="yesterday"
    )
    assert steps(together) == [2, 3]
    assert steps(forest.query("berries", place="forest", k=1)) == [2]
    assert steps(forest.query(similar_to={"position": [12, 3]}, memory_type="state", k=1)) == [3]
    assert steps(forest.query(attributes={"outcome": "success"}, memory_type="action")) == [4]


def test_results_are_bounded_only_by_what_is_asked_for(api):
    space = api.get_memory_space("a")
    space.store_many("state", [{"n": n, "kind": "x"} for n in range(2500)], first_step=0)
    assert len(space.retrieve_by_time_range(0, 10_000)) == 2500
    assert len(space.retrieve_by_attributes({"kind": "x"})) == 2500
    assert len(space.retrieve_recent_states(2200)) == 2200
    assert len(space.retrieve_similar_states({"n": 5}, k=2400)) == 2400


def test_tiers_can_be_chosen(new_api):
    api = new_api(stm_config={"memory_limit": 3}, im_config={"memory_limit": 3}, cleanup_interval=10**9)
    space = api.get_memory_space("a")
    space.store_many("state", [{"n": n} for n in range(9)], first_step=0)
    api.force_memory_maintenance()
    assert steps(space.retrieve_by_time_range(0, 9, memory_tiers=["stm", "im"])) == [3, 4, 5, 6, 7, 8]
    assert steps(space.retrieve_by_time_range(0, 9, memory_tiers=["ltm"])) == [0, 1, 2]
    vector = space.embed({"n": 1})
    assert {entry.tier for entry in space.search_by_embedding(vector, k=9, memory_tiers=["im"])} == {"im"}
    assert space.search_by_embedding(vector, k=9)[0]["step_number"] == 1


def test_memories_of_one_step_come_in_the_order_in_which_they_were_stored_whatever_their_tiers(new_api):
    api = new_api(stm_config={"memory_limit": 2}, im_config={"memory_limit": 2}, cleanup_interval=10**9)
    for n, priority in enumerate([0.9, 0.1, 0.5, 0.2, 0.8, 0.6]):
        api.store_agent_state("a", {"n": n, "kind": "x"}, 7, priority)
    api.force_memory_maintenance()
    space = api.get_memory_space("a")
    assert {entry.tier for entry in space.retrieve_by_time_range(7, 7)} == {"stm", "im", "ltm"}
    assert [entry["contents"]["n"] for entry in space.retrieve_by_time_range(7, 7)] == list(range(6))
    assert [entry["contents"]["n"] for entry in space.retrieve_by_attributes({"kind": "x"})] == list(range(6))
    assert [entry["contents"]["n"] for entry in space.retrieve_recent_states(4)] == [5, 4, 3, 2]


# What it costs


QUERIES = {
    "time range": lambda space: space.retrieve_by_time_range(10, 20),
    "recent": lambda space: space.retrieve_recent_states(5),
    "attributes": lambda space: space.retrieve_by_attributes({"kind": "odd", "n": 7}),
    "similar": lambda space: space.retrieve_similar_states({"position": [3, 4], "n": 5}),
    "place": lambda space: space.retrieve_by_location(place="forest", k=5),
    "radius": lambda space: space.retrieve_by_location([3, 4], radius=2),
    "importance": lambda space: space.retrieve_by_importance(0.9, k=5),
    "words": lambda space: space.search_by_content("berries in the forest"),
}


def test_the_cost_does_not_grow_with_other_agents_memories(new_api):
    """Measured as the most memory that a query needs at a time, which follows the rows that it looks at."""
    api = new_api(cache_ttl=0, cleanup_interval=10**9)
    space = api.get_memory_space("a")

    def data(n):
        return {
            "position": [n % 10, n % 7], "n": n % 50, "kind": "odd" if n % 2 else "even",
            "place": "forest", "seen": "berries",
        }  # fmt: skip

    def costs():
        peaks = {}
        for name, query in QUERIES.items():
            query(space)  # takes in what was written
            tracemalloc.start()
            query(space)
            _, peaks[name] = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        return peaks

    space.store_many("state", [data(n) for n in range(200)], first_step=0)
    alone = costs()
    for other in range(3):
        api.get_memory_space(f"other-{other}").store_many("state", [data(n) for n in range(4000)], first_step=0)
    for name, peak in costs().items():
        # Up to 16,384 entries of other rows are looked up together, which is faster than one by one; beyond, none.
        assert peak < 2 * alone[name] + (1_000_000 if name == "words" else 100_000), name


# Who may ask, and what


def test_a_space_accepts_its_own_agent_and_refuses_others(forest):
    assert steps(forest.retrieve_by_time_range(agent_id="a", start_step=2, end_step=3)) == [2, 3]
    for call in (
        lambda: forest.retrieve_by_time_range(agent_id="b", start_step=2, end_step=3),
        lambda: forest.retrieve_similar_states(agent_id="b", query_state={"x": 1}, k=5),
        lambda: forest.retrieve_by_attributes(agent_id="b", attributes={"x": 1}),
    ):
        with pytest.raises(MemoryRetrievalException, match="agent_id must be 'a'"):
            call()


def test_one_agent_never_sees_anothers_memories(forest):
    assert "somebody else's berries" not in str(forest.retrieve_by_time_range(0, 100))
    assert "somebody else's berries" not in str(forest.search_by_content("berries", k=50))
    assert "somebody else's berries" not in str(forest.retrieve_by_location(place="forest"))


BAD_STORES = {
    "agent_id": lambda api: api.store_agent_state("", {"x": 1}, 1),
    "state_data": lambda api: api.store_agent_state("a", "x", 1),
    "step_number": lambda api: api.store_agent_state("a", {"x": 1}, -1),
    "step_number ": lambda api: api.store_agent_state("a", {"x": 1}, True),
    "priority": lambda api: api.store_agent_state("a", {"x": 1}, 1, priority=1.5),
    "priority ": lambda api: api.store_agent_action("a", {"x": 1}, 1, priority=float("nan")),
    "interaction_data": lambda api: api.store_agent_interaction("a", {"x": object()}, 1),
    "action_data": lambda api: api.store_agent_action("a", {"x": float("inf")}, 1),
    "action_data ": lambda api: api.store_agent_action("a", {1: 2}, 1),
    "items": lambda api: api.get_memory_space("a").store_many("state", {"x": 1}, first_step=0),
    "state_data ": lambda api: api.get_memory_space("a").store_many("state", [{"x": 1}, None], first_step=0),
}
BAD_QUERIES = {
    "agent_id": lambda api: api.retrieve_by_time_range(None, 0, 1),
    "start_step": lambda api: api.retrieve_by_time_range("a", 5, 1),
    "start_step ": lambda api: api.retrieve_by_time_range("a", "0", 1),
    "k": lambda api: api.retrieve_similar_states("a", {"x": 1}, k=0),
    "memory_type": lambda api: api.retrieve_by_time_range("a", 0, 1, memory_type=3),
    "attributes": lambda api: api.retrieve_by_attributes("a", {}),
    "memory_tiers": lambda api: api.get_memory_space("a").search_by_embedding([0.1] * 256, memory_tiers=["disk"]),
    "query_embedding": lambda api: api.get_memory_space("a").search_by_embedding([0.1] * 255 + [float("nan")]),
    "count": lambda api: api.get_memory_space("a").retrieve_recent_states(0),
    "radius": lambda api: api.get_memory_space("a").query(radius=3),
    "position": lambda api: api.get_memory_space("a").retrieve_by_location(),
    "similar_to": lambda api: api.get_memory_space("a").query("x", similar_to={"x": 1}),
    "ttl": lambda api: api.set_cache_ttl(-1),
}


@pytest.mark.parametrize("field", BAD_STORES)
def test_what_cannot_be_stored_is_refused_by_name_and_nothing_is_written(api, field):
    with pytest.raises(MemoryStoreException, match=re.escape(field.strip())) as caught:
        BAD_STORES[field](api)
    assert isinstance(caught.value, ValueError)
    assert caught.value.recoverable
    assert api._system.agents() == []


@pytest.mark.parametrize("field", BAD_QUERIES)
def test_a_bad_question_is_refused_by_name(api, field):
    api.store_agent_state("a", {"x": 1}, 1)
    with pytest.raises(MemoryAPIException, match=re.escape(field.strip())) as caught:
        BAD_QUERIES[field](api)
    assert isinstance(caught.value, MemoryRetrievalException)
    assert caught.value.recoverable


def test_a_vector_of_another_size_says_which_is_expected(api):
    api.store_agent_state("a", {"x": 1}, 1)
    with pytest.raises(MemoryRetrievalException, match="256"):
        api.get_memory_space("a").search_by_embedding([0.1, 0.2, 0.3])


def test_numpy_values_are_plain_values(api):
    import numpy as np

    api.store_agent_state("a", {"position": np.array([1.5, 2.0]), "hp": np.float32(0.5), "n": np.int64(3)}, 1)
    assert api.retrieve_by_time_range("a", 1, 1)[0]["contents"] == {"position": [1.5, 2.0], "hp": 0.5, "n": 3}


def test_a_closed_api_says_so(new_api):
    api = new_api()
    api.close()
    api.close()
    with pytest.raises(MemoryStoreException, match="closed") as caught:
        api.store_agent_state("a", {"x": 1}, 1)
    assert (caught.value.agent_id, caught.value.recoverable) == ("a", False)
    with pytest.raises(MemoryRetrievalException, match="closed"):
        api.retrieve_by_time_range("a", 0, 1)


def test_an_address_that_leads_nowhere_is_a_configuration_error():
    with pytest.raises(MemoryConfigException, match="cassandra://"):
        AgentMemoryAPI(MemoryConfig(ltm_config={"path": "cassandra://nowhere"}))


def test_instances_with_different_configurations_are_independent(new_api):
    one, two = new_api("one", stm_config={"memory_limit": 2}), new_api("two")
    for n in range(5):
        one.store_agent_state("a", {"n": n}, n)
    one.force_memory_maintenance()
    assert two._system.agents() == []
    two.set_cache_ttl(0)
    assert one._system.cache.ttl == 60
    assert one.get_memory_statistics("a")["tier_distribution"] == {"stm": 2, "im": 3, "ltm": 0}


# State change tracking


def test_the_history_of_an_attribute(api):
    space = api.get_memory_space("a")
    for step, wood in enumerate((5, 5, 3, 4)):
        space.store("state", {"inventory": {"wood": wood}, "position": [step, 0]}, step)
    space.store("state", {"position": [9, 0]}, 4)
    told = space.attribute_history("inventory.wood")
    assert [(one["step_number"], one["value"], one["changed"]) for one in told] == [
        (0, 5, True), (1, 5, False), (2, 3, True), (3, 4, True),
    ]  # fmt: skip
    assert [one["value"] for one in space.attribute_history("position[0]", 2, 4)] == [2, 3, 9]
    assert space.attribute_history("nothing.here") == []


def test_the_changes_between_two_steps(api):
    space = api.get_memory_space("a")
    space.store("state", {"health": 0.9, "bag": {"wood": 1, "rope": 1}, "mood": "calm"}, 1)
    space.store("state", {"health": 0.4, "bag": {"wood": 1, "gold": 7}, "mood": "calm"}, 5)
    assert space.changes_between(1, 5) == {
        "health": {"before": 0.9, "after": 0.4},
        "bag.rope": {"before": 1},
        "bag.gold": {"after": 7},
    }
    assert space.changes_between(2, 4) == {}
    with pytest.raises(MemoryRetrievalException, match="first_step"):
        space.changes_between(0, 5)


# Caching


def test_a_repeated_question_is_answered_from_the_cache_until_the_agent_writes(api):
    space = api.get_memory_space("a")
    space.store("state", {"x": 1}, 1)
    first = space.retrieve_similar_states({"x": 1})
    first[0]["contents"]["x"] = "changed by the caller"
    assert space.retrieve_similar_states({"x": 1})[0]["contents"] == {"x": 1}
    assert api.get_memory_statistics("a")["cache"]["hits"] == 1
    api.store_agent_state("b", {"x": 1}, 1)
    space.retrieve_similar_states({"x": 1})
    assert api.get_memory_statistics("a")["cache"]["hits"] == 2
    space.store("state", {"x": 1}, 2)
    assert steps(space.retrieve_similar_states({"x": 1})) == [2, 1]


def test_another_process_writing_to_an_agent_is_noticed(new_api):
    one, two = new_api("shared"), new_api("shared")
    one.store_agent_state("a", {"x": 1}, 1)
    assert steps(one.retrieve_by_time_range("a", 0, 9)) == [1]
    two.store_agent_state("a", {"x": 1}, 2)
    assert steps(one.retrieve_by_time_range("a", 0, 9)) == [1, 2]


def test_another_process_moving_a_memory_of_an_agent_to_another_tier_is_noticed(new_api):
    one, two = new_api("shared"), new_api("shared", cleanup_interval=1, stm_config={"memory_limit": 1})
    for step in (1, 2):
        one.store_agent_state("a", {"x": 1}, step)

    def found():
        space = one.get_memory_space("a")
        return [len(space.retrieve_similar_states({"x": 1}, memory_tiers=[tier])) for tier in ("stm", "im")]

    assert found() == [2, 0]
    two.force_memory_maintenance("a")
    assert found() == [1, 1]


def test_the_cache_can_be_turned_off_and_cleared(api):
    space = api.get_memory_space("a")
    space.store("state", {"x": 1}, 1)
    space.set_cache_ttl(0)
    for _ in range(3):
        space.retrieve_by_time_range(0, 9)
    assert api.get_memory_statistics("a")["cache"]["hits"] == 0
    api.set_cache_ttl(300)
    space.retrieve_by_time_range(0, 9)
    api.clear_cache()
    space.retrieve_by_time_range(0, 9)
    assert api.get_memory_statistics("a")["cache"]["hits"] == 0


# Statistics and the async face


def test_statistics_tell_everything(new_api):
    api = new_api(stm_config={"memory_limit": 2}, cleanup_interval=10**9)
    for n in range(4):
        api.store_agent_state("a", {"n": n}, n, priority=0.25)
    api.store_agent_action("a", {"action_type": "rest"}, 4, priority=1.0)
    api.force_memory_maintenance()
    told = api.get_memory_statistics("a")
    assert told["total_memories"] == 5
    assert told["memory_type_distribution"] == {"state": 4, "action": 1}
    assert told["tier_distribution"] == {"stm": 2, "im": 3, "ltm": 0}
    assert told["importance_histogram"]["0.2-0.3"] == 4
    assert told["importance_histogram"]["0.9-1.0"] == 1
    assert told["average_importance"] == pytest.approx(0.4)
    assert (told["first_step"], told["last_step"]) == (0, 4)
    assert told["oldest"] <= told["newest"] <= time.time()
    assert set(told["cache"]) >= {"hits", "misses", "hit_ratio"}
    assert api.get_memory_statistics("nobody")["total_memories"] == 0


def test_the_same_api_awaited(tmp_path):
    async def main():
        config = MemoryConfig(ltm_config={"path": tmp_path / "async.db"})
        async with AsyncAgentMemoryAPI(config) as api:
            await asyncio.gather(*(api.store_agent_state("a", {"n": n}, n) for n in range(20)))
            found = await api.retrieve_by_time_range("a", 0, 100)
            stats = await api.get_memory_statistics("a")
            return steps(found), stats["total_memories"]

    assert asyncio.run(main()) == (list(range(20)), 20)


def test_many_threads_store_and_ask_at_once(api):
    from concurrent.futures import ThreadPoolExecutor

    def work(agent):
        for n in range(25):
            api.store_agent_state(f"agent-{agent}", {"n": n}, n)
            assert steps(api.retrieve_by_time_range(f"agent-{agent}", 0, 100)) == list(range(n + 1))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_spaces_are_shared_objects(api):
    assert api.get_memory_space("a") is api.get_memory_space("a")
    assert isinstance(api.get_memory_space("a"), MemorySpace)
