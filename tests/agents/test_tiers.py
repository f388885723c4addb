"""Tiers: memories move by capacity, age and steps, nothing is dropped, and everything comes back as it was."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import numpy as np
import pytest

from rmem.agents import AgentMemoryAPI, MemoryConfig, MemoryMaintenanceException, MemoryRetrievalException
from rmem.doctor import examine
from rmem.stores import zstd
from rmem.stores.packing import dequantize_vector, quantize_vector
from rmem.stores.sql.sqlite import SqliteRecordStore


def state(n: int) -> dict:
    return {"position": [n, n * 2], "health": n / 1000, "note": f"step {n} ünïcödé 😀", "bag": {"wood": n % 5}}


def tiers_of(api, agent="a"):
    return api.get_memory_statistics(agent)["tier_distribution"]


def test_what_exceeds_a_tier_moves_on_and_nothing_is_dropped(new_api):
    api = new_api(stm_config={"memory_limit": 20}, im_config={"memory_limit": 30}, cleanup_interval=10)
    for n in range(130):
        api.store_agent_state("a", state(n), n)
    counts = tiers_of(api)
    assert sum(counts.values()) == 130
    assert counts["stm"] <= 30
    assert counts["im"] <= 40
    assert counts["ltm"] >= 60
    found = api.retrieve_by_time_range("a", 0, 1000)
    assert [entry["step_number"] for entry in found] == list(range(130))
    assert [entry["contents"] for entry in found] == [state(n) for n in range(130)]


def test_contents_come_back_byte_for_byte_from_every_tier(new_api):
    api = new_api(stm_config={"memory_limit": 1}, im_config={"memory_limit": 1}, cleanup_interval=10**9)
    odd = [{"t": "  spaces\t", "n": None, "f": 0.1 + 0.2, "big": 2**70, "list": [[], {}, [1, [2.0]]]}, {"k": "\u2028é"}]
    odd += [{"text": None, "x": 1}, {"x": 2}, {"text": "own words", "x": 3}, {"text": ""}, {"text": {"text": None}}]
    given = [*odd, state(1), state(2)]
    for step, data in enumerate(given):
        api.store_agent_state("a", data, step)
    before = [json.dumps(e["contents"]) for e in api.retrieve_by_time_range("a", 0, 9)]
    assert [json.loads(contents) for contents in before] == given
    api.force_memory_maintenance()
    found = api.retrieve_by_time_range("a", 0, 9)
    assert [json.dumps(e["contents"]) for e in found] == before
    assert [e["metadata"]["compression_level"] for e in found] == [2, 2, 2, 2, 2, 2, 2, 1, 0]


@pytest.mark.parametrize("body", ["", "[1", '["",{}]]', "nonsense"])
def test_a_damaged_body_is_passed_over_and_told_and_not_guessed(new_api, body, caplog):
    api = new_api(stm_config={"memory_limit": 1}, cleanup_interval=10**9)
    for n in range(2):
        api.store_agent_state("a", state(n), n)
    api.force_memory_maintenance()
    packed = zstd.compress(zstd.ZstdCompressor(), body.encode())
    store = api._system.brain.store
    store.write(lambda connection: connection.execute("UPDATE memories SET packed = ? WHERE step = 0", (packed,)))
    assert [entry["step_number"] for entry in api.retrieve_by_time_range("a", 0, 9)] == [1]
    assert "cannot be read" in caplog.text
    if isinstance(store, SqliteRecordStore):
        (rows,) = [finding for finding in examine(store.path) if finding.name == "rows"]
        assert not rows.ok
        assert "cannot be read" in rows.detail


def test_vectors_get_shorter_from_tier_to_tier(new_api):
    api = new_api(stm_config={"memory_limit": 1}, im_config={"memory_limit": 1}, cleanup_interval=10**9)
    for n in range(3):
        api.store_agent_state("a", state(n), n)
    api.force_memory_maintenance()
    ltm, im, stm = (entry["embeddings"] for entry in api.retrieve_by_time_range("a", 0, 9))
    assert len(stm["full_vector"]) == 256
    assert stm["compressed_vector"] is stm["abstract_vector"] is None
    assert len(im["compressed_vector"]) == 256
    assert im["full_vector"] is None
    assert len(ltm["abstract_vector"]) == 64
    assert ltm["compressed_vector"] is None


def test_shortened_vectors_keep_their_direction():
    rng = random.Random(5)
    for _ in range(20):
        vector = np.array([rng.gauss(0, 1) for _ in range(250)], np.float32)
        vector /= np.linalg.norm(vector)
        assert dequantize_vector(quantize_vector(vector, 1), 1, 250) @ vector > 0.9999
        assert dequantize_vector(quantize_vector(vector, 2), 2, 250) @ vector > 0.92


def test_repeated_states_take_a_fraction_of_their_size(new_api):
    api = new_api(stm_config={"memory_limit": 100}, cleanup_interval=1000)
    api.get_memory_space("a").store_many("state", [state(n) for n in range(2000)], first_step=0)
    api.force_memory_maintenance("a")
    told = api.get_memory_statistics("a")["compression"]
    assert told["ratio"] > 2
    assert told["bytes_after"] < told["bytes_before"]


def test_the_most_important_and_the_newest_are_not_the_first_to_go(new_api):
    api = new_api(stm_config={"memory_limit": 10}, cleanup_interval=10**9)
    for n in range(40):
        api.store_agent_state("a", state(n), n, priority=1.0 if n in (3, 7) else 0.4)
    api.force_memory_maintenance("a")
    kept = {e["step_number"] for e in api.get_memory_space("a").retrieve_recent_states(50, memory_tiers=["stm"])}
    assert kept == {3, 7, *range(32, 40)}


def test_what_is_new_stays_for_a_while_also_without_priority(new_api):
    api = new_api(stm_config={"memory_limit": 20}, cleanup_interval=10**9)
    for n in range(30):
        api.store_agent_state("a", state(n), n, priority=1.0 if n < 20 else 0.1)
    api.force_memory_maintenance("a")
    kept = {e["step_number"] for e in api.get_memory_space("a").retrieve_recent_states(50, memory_tiers=["stm"])}
    assert kept == {*range(2, 20), 28, 29}


def test_priority_fades_as_configured(new_api):
    """With a strong decay even an important memory has to go at last."""
    api = new_api(stm_config={"memory_limit": 5}, memory_priority_decay=0.01, cleanup_interval=10**9)
    api.store_agent_state("a", state(0), 0, priority=1.0)
    for n in range(500, 510):
        api.store_agent_state("a", state(n), n, priority=0.3)
    api.force_memory_maintenance("a")
    assert api.retrieve_by_time_range("a", 0, 0)[0].tier == "im"


def test_old_memories_move_when_their_time_is_up(new_api):
    api = new_api(stm_config={"ttl": 0.05}, im_config={"ttl": 0.3}, cleanup_interval=10**9)
    api.store_agent_state("a", state(1), 1)
    assert api.force_memory_maintenance("a")["stm_to_im"] == 0
    time.sleep(0.1)
    assert api.force_memory_maintenance("a") == {
        "stm_to_im": 1,
        "im_to_ltm": 0,
        "agents": {"a": {"stm_to_im": 1, "im_to_ltm": 0}},
    }
    time.sleep(0.3)
    assert api.force_memory_maintenance("a")["im_to_ltm"] == 1
    assert api.retrieve_by_time_range("a", 1, 1)[0]["contents"] == state(1)


def test_memories_move_by_steps(new_api):
    api = new_api(stm_config={"max_steps": 10}, im_config={"max_steps": 100}, cleanup_interval=10**9)
    for step in (0, 50, 95, 100, 200):
        api.store_agent_state("a", state(step), step)
    api.force_memory_maintenance("a")
    assert {e["step_number"]: e.tier for e in api.retrieve_by_time_range("a", 0, 200)} == {
        0: "ltm", 50: "ltm", 95: "ltm", 100: "im", 200: "stm",
    }  # fmt: skip


def test_maintenance_of_all_agents_says_what_moved_for_each(new_api):
    api = new_api(stm_config={"memory_limit": 2}, cleanup_interval=10**9)
    for agent, number in (("a", 5), ("b", 3), ("c", 1)):
        for n in range(number):
            api.store_agent_state(agent, state(n), n)
    moved = api.force_memory_maintenance()
    assert moved["stm_to_im"] == 4
    assert {agent: told["stm_to_im"] for agent, told in moved["agents"].items()} == {"a": 3, "b": 1, "c": 0}


def test_two_processes_tend_one_agent_and_no_vector_is_lost(tmp_path):
    code = f"""
import sys
from rmem.agents import AgentMemoryAPI
with AgentMemoryAPI({{
    "ltm_config": {{"path": {str(tmp_path / "shared.db")!r}, "durability": "normal"}}, "cleanup_interval": 3,
    "stm_config": {{"memory_limit": 10}}, "im_config": {{"memory_limit": 5}},
}}) as api:
    for n in range(int(sys.argv[1]), 300, 2):
        api.store_agent_state("a", {{"n": n, "note": f"berries {{n}}"}}, n)
"""
    both = [subprocess.Popen([sys.executable, "-c", code, str(first)]) for first in (0, 1)]
    assert [one.wait(60) for one in both] == [0, 0]
    with AgentMemoryAPI(MemoryConfig(ltm_config={"path": tmp_path / "shared.db"})) as api:
        found = api.retrieve_by_time_range("a", 0, 300)
        assert [e["contents"]["n"] for e in found] == list(range(300))
        assert all(any(vector is not None for vector in e["embeddings"].values()) for e in found)


@pytest.mark.parametrize("anew", [False, True], ids=["counting on", "from step 0"])
def test_short_lives_are_tended_as_one_long_one_is(new_api, anew):
    for start in range(0, 60, 6):
        with new_api("shared", stm_config={"memory_limit": 10}, cleanup_interval=20) as api:
            for n in range(start, start + 6):
                api.store_agent_state("a", state(n), n - start if anew else n)
    assert tiers_of(new_api("shared")) == {"stm": 10, "im": 50, "ltm": 0}


def test_decompressing_restores_a_memory_to_intermediate_memory(new_api):
    api = new_api(stm_config={"memory_limit": 1}, im_config={"memory_limit": 1}, cleanup_interval=10**9)
    ids = [api.store_agent_state("a", state(n), n) for n in range(4)]
    vectors = [e["embeddings"]["full_vector"] for e in api.retrieve_by_time_range("a", 0, 9)]
    api.force_memory_maintenance()
    space = api.get_memory_space("a")
    assert space.get(ids[0]).tier == "ltm"
    back = space.decompress(ids[0])
    assert (back.tier, back["contents"]) == ("im", state(0))
    assert back["embeddings"]["compressed_vector"] is not None
    assert space.get(ids[0]).tier == "im"
    for _ in range(3):
        risen = space.focus(ids[0])
    assert risen.tier == "stm"
    assert risen["embeddings"]["full_vector"] == pytest.approx(vectors[0], abs=1e-6)


def test_focus_counts_and_promotes_and_reading_does_not(new_api):
    api = new_api(stm_config={"memory_limit": 1}, cleanup_interval=10**9, promotion_threshold=2)
    ids = [api.store_agent_state("a", state(n), n) for n in range(3)]
    api.force_memory_maintenance()
    space = api.get_memory_space("a")
    for _ in range(5):
        api.retrieve_by_time_range("a", 0, 9)
        space.search_by_content("step 0")
    assert space.get(ids[0])["metadata"]["retrieval_count"] == 0
    assert space.focus(ids[0]).tier == "im"
    focused = space.focus(ids[0])
    assert focused.tier == "stm"
    assert focused["metadata"]["retrieval_count"] == 2
    assert focused["metadata"]["importance_score"] == 1.0


def test_a_focused_memory_is_kept_longer(new_api):
    api = new_api(stm_config={"memory_limit": 5}, cleanup_interval=10**9)
    ids = [api.store_agent_state("a", state(n), n, priority=0.5) for n in range(20)]
    for _ in range(3):
        api.get_memory_space("a").focus(ids[10])
    api.force_memory_maintenance("a")
    kept = {e["step_number"] for e in api.get_memory_space("a").retrieve_recent_states(9, memory_tiers=["stm"])}
    assert kept == {10, 16, 17, 18, 19}


def test_another_process_finds_memories_in_their_tiers(new_api):
    api = new_api("shared", stm_config={"memory_limit": 5}, cleanup_interval=10**9)
    other = new_api("shared")
    for n in range(12):
        api.store_agent_state("a", state(n), n)
    assert tiers_of(other) == {"stm": 12, "im": 0, "ltm": 0}
    api.force_memory_maintenance()
    assert tiers_of(other) == {"stm": 5, "im": 7, "ltm": 0}
    assert len(other.get_memory_space("a").retrieve_recent_states(20, memory_tiers=["im"])) == 7
    third = new_api("shared")
    assert tiers_of(third) == {"stm": 5, "im": 7, "ltm": 0}
    assert [e["contents"] for e in third.retrieve_by_time_range("a", 0, 20)] == [state(n) for n in range(12)]


def test_one_agents_tiers_do_not_touch_another(new_api):
    api = new_api(stm_config={"memory_limit": 3}, cleanup_interval=10**9)
    for n in range(10):
        api.store_agent_state("a", state(n), n)
    api.store_agent_state("b", state(0), 0)
    api.force_memory_maintenance("a")
    assert tiers_of(api, "b") == {"stm": 1, "im": 0, "ltm": 0}


@pytest.mark.parametrize("call", ["decompress", "focus"])
def test_a_memory_of_somebody_else_cannot_be_reached(api, call):
    memory = api.store_agent_state("b", state(1), 1)
    with pytest.raises((MemoryRetrievalException, MemoryMaintenanceException), match="no memory"):
        getattr(api.get_memory_space("a"), call)(memory)
    assert api.get_memory_space("a").get(memory) is None
    assert api.get_memory_space("a").forget(memory) is False
    assert api.get_memory_space("b").forget(memory) is True


def test_a_broken_file_is_a_maintenance_error_with_context(tmp_path):
    api = AgentMemoryAPI(MemoryConfig(ltm_config={"path": tmp_path / "x.db"}))
    api.close()
    with pytest.raises(MemoryMaintenanceException) as caught:
        api.force_memory_maintenance("a")
    assert caught.value.agent_id == "a"
    assert not caught.value.recoverable


@pytest.mark.slow
def test_a_hundred_thousand_steps_are_all_there(new_api):
    api = new_api(cache_ttl=0)
    space = api.get_memory_space("a")
    for start in range(0, 100_000, 10_000):
        space.store_many("state", [state(n) for n in range(start, start + 10_000)], first_step=start)
    counts = tiers_of(api)
    assert sum(counts.values()) == 100_000
    assert counts["stm"] <= 1000 + 100
    rng = random.Random(1)
    for _ in range(40):
        low = rng.randrange(100_000)
        high = min(99_999, low + rng.randrange(3000))
        found = api.retrieve_by_time_range("a", low, high)
        assert [e["contents"] for e in found] == [state(n) for n in range(low, high + 1)]
