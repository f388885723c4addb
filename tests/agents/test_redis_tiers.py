"""Hot tiers in a real Redis: it may be away, die, come back empty or be a cluster; nothing is ever lost."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from redis_cluster import RedisCluster

from rmem.admin import reindex
from rmem.agents import MemoryConfig, MemoryRetrievalException, RedisIMConfig, RedisSTMConfig
from rmem.filters import Filter
from rmem.testing.redis import RedisServer, free_port


@pytest.fixture(scope="module")
def servers():
    with RedisServer() as server:
        yield server


@pytest.fixture
def server(servers):
    servers.start()
    servers.flush()
    return servers


def redis_config(server, **options):
    where = {"host": "127.0.0.1", "port": server.port, "connect_timeout": 0.5, "socket_timeout": 1.0}
    return {
        "stm_config": RedisSTMConfig(**where, memory_limit=options.pop("stm", 5), **options),
        "im_config": RedisIMConfig(**where, memory_limit=5, **options),
        "cleanup_interval": 10**9,
    }


def state(n):
    return {"position": [n, 0], "n": n, "seen": f"berries {n}"}


def fill(api, count, agent="a"):
    for n in range(count):
        api.store_agent_state(agent, state(n), n)


def steps(found):
    return [entry["step_number"] for entry in found]


def everything_is_there(api, count, agent="a"):
    found = api.retrieve_by_time_range(agent, 0, 10**6)
    assert [entry["contents"] for entry in found] == [state(n) for n in range(count)]
    space = api.get_memory_space(agent)
    assert steps(space.retrieve_similar_states({"n": count // 2}, k=1)) == [count // 2]
    assert steps(space.retrieve_by_attributes({"n": 1})) == [1]
    assert steps(space.search_by_embedding(space.embed(state(1)), k=1)) == [1]
    assert steps(space.retrieve_recent_states(2)) == [count - 1, count - 2]
    return found


def test_short_term_and_intermediate_memory_are_in_redis_and_the_rest_is_not(new_api, server):
    api = new_api(**redis_config(server))
    fill(api, 15)
    api.force_memory_maintenance()
    assert api.get_memory_statistics("a")["tier_distribution"] == {"stm": 5, "im": 5, "ltm": 5}
    found = everything_is_there(api, 15)
    assert found.missing_tiers == ()
    assert [entry.tier for entry in found] == ["ltm"] * 5 + ["im"] * 5 + ["stm"] * 5
    held = {tier: len(hot.store) for tier, hot in api._system.tiers.hot.items()}
    assert held == {"stm": 5, "im": 5}
    keys = [key.decode() for key in server.client().scan_iter()]
    assert keys
    assert all(key.startswith("remanence.") for key in keys)


def test_nothing_listens_at_the_start(new_api, caplog):
    away = type("Away", (), {"port": free_port()})
    api = new_api(**redis_config(away))
    with caplog.at_level(logging.WARNING):
        fill(api, 4)
        found = everything_is_there(api, 4)
    assert found.missing_tiers == ("im", "stm")
    assert "stm of a" in caplog.text
    assert api.get_memory_statistics("a")["hot_tiers"]["stm"] in ("open", "half-open")


def test_a_dead_redis_is_not_asked_again_and_again(new_api, server):
    api = new_api(**redis_config(server), cache_ttl=0)
    fill(api, 3)
    breaker = api._system.tiers.hot["stm"].breaker
    server.kill()
    api.retrieve_by_time_range("a", 0, 9)
    assert breaker.state == "open"
    assert breaker.wait > 0
    for _ in range(20):
        assert api.retrieve_by_time_range("a", 0, 9).missing_tiers
    assert breaker.state in ("open", "half-open")


def test_an_outage_is_warned_of_once_and_so_is_the_next(new_api, server, caplog):
    api = new_api(**redis_config(server), cache_ttl=0)
    fill(api, 2)

    def warnings():
        caplog.clear()
        with caplog.at_level(logging.WARNING, "rmem.tiers"):
            for n in range(2, 12):
                api.store_agent_state("a", state(n), n)
                api.retrieve_by_time_range("a", 0, 99)
        return sorted(record.getMessage().split(":")[0] for record in caplog.records)

    told = [
        "im of a is answered by the archive",
        "stm of a is answered by the archive",
        "stm of a is behind the archive",
    ]
    server.kill()
    assert warnings() == told
    assert warnings() == []
    server.start()
    deadline = time.monotonic() + 20
    while api.retrieve_by_time_range("a", 0, 99).missing_tiers:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert warnings() == []
    server.kill()
    assert warnings() == told


def test_redis_dies_in_mid_run_and_comes_back_empty(new_api, server):
    api = new_api(**redis_config(server, stm=100), cache_ttl=0)
    fill(api, 10)
    assert everything_is_there(api, 10).missing_tiers == ()
    server.kill()
    api.store_agent_state("a", state(10), 10)
    api.store_agent_state("a", state(11), 11)
    assert everything_is_there(api, 12).missing_tiers
    server.start()
    deadline = time.monotonic() + 20
    while api.retrieve_by_time_range("a", 0, 99).missing_tiers:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert everything_is_there(api, 12).missing_tiers == ()
    assert len(api._system.tiers.hot["stm"].store) == 12


def test_a_flushed_redis_is_refilled(new_api, server):
    api = new_api(**redis_config(server), cache_ttl=0)
    fill(api, 12)
    api.force_memory_maintenance()
    server.flush()
    assert everything_is_there(api, 12).missing_tiers == ()
    assert {tier: len(hot.store) for tier, hot in api._system.tiers.hot.items()} == {"stm": 5, "im": 5}


def test_a_memory_that_redis_never_got_is_found(new_api, server):
    """A process died between the archive and Redis."""
    api, other = (new_api("shared", **redis_config(server, stm=100), cache_ttl=0) for _ in range(2))
    fill(api, 3)
    everything_is_there(other, 3)
    from rmem.agents.records import record

    api._system.brain.keep([record("a", "state", state(3), 3, 1.0)])
    everything_is_there(other, 4)
    assert len(other._system.tiers.hot["stm"].store) == 4


def test_a_tier_that_lacks_as_many_as_it_has_too_many_is_made_whole(new_api, server):
    """Another process stored some and moved as many away while it could not reach Redis."""
    api = new_api("shared", **redis_config(server), cache_ttl=0)
    fill(api, 5)
    everything_is_there(api, 5)
    other = new_api("shared", **redis_config(type("Away", (), {"port": free_port()})))
    for n in range(5, 10):
        other.store_agent_state("a", state(n), n)
    assert other.force_memory_maintenance("a")["stm_to_im"] == 5
    assert everything_is_there(api, 10).missing_tiers == ()
    assert steps(api.get_memory_space("a").retrieve_by_time_range(0, 99, memory_tiers=["stm"])) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("part", ["rows", "log", "clock", "epoch", "gone", "access"])
def test_a_redis_that_evicts_keys_leaves_no_gap(new_api, server, part):
    api = new_api(**redis_config(server), cache_ttl=0)
    fill(api, 12)
    api.force_memory_maintenance()
    everything_is_there(api, 12)
    for tier in ("stm", "im"):
        server.client().delete(f"remanence.{tier}:{{a}}:{part}")
    everything_is_there(api, 12)
    for tier in ("stm", "im"):
        server.client().delete(f"remanence.{tier}:{{a}}:{part}")
    api.store_agent_state("a", state(12), 12)
    everything_is_there(api, 13)
    deadline = time.monotonic() + 20
    while api.retrieve_by_time_range("a", 0, 99).missing_tiers:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    everything_is_there(new_api(**redis_config(server), cache_ttl=0), 13)


def test_a_full_redis_keeps_nobody_from_storing(new_api, caplog):
    with RedisServer() as server:
        api = new_api(**redis_config(server, stm=100), cache_ttl=0)
        fill(api, 3)
        server.client().config_set("maxmemory", 1)
        with caplog.at_level(logging.WARNING):
            for n in range(3, 6):
                api.store_agent_state("a", state(n), n)
            assert "stm" in everything_is_there(api, 6).missing_tiers
        assert "stm of a" in caplog.text
        server.client().config_set("maxmemory", 0)
        deadline = time.monotonic() + 20
        while api.retrieve_by_time_range("a", 0, 99).missing_tiers:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert len(api._system.tiers.hot["stm"].store) == 6


@pytest.mark.parametrize("count", [1, 2])
def test_memories_that_move_while_they_are_asked_for_are_told_once(new_api, server, count):
    config = redis_config(server) | {"cleanup_interval": 2}
    apis = [new_api("shared", **config, cache_ttl=0) for _ in range(count)]
    writer, reader = apis[0], apis[-1]
    fill(writer, 20)
    stored = [19]

    def write():
        for n in range(20, 100):
            writer.store_agent_state("a", state(n), n)
            stored[0] = n

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive():
        upto = stored[0]
        assert steps(reader.retrieve_by_time_range("a", 0, upto)) == list(range(upto + 1))
    thread.join()


def test_a_memory_that_goes_up_and_down_while_tiers_are_searched_is_told(new_api, server):
    api = new_api("shared", **redis_config(server), cache_ttl=0)
    fill(api, 20)
    api.force_memory_maintenance("a")
    tiers = api._system.tiers
    [lowest] = tiers.archive.select(Filter(agent=("a",), tier=("ltm",)), limit=1, order="oldest")
    wanted = {state(n)["n"] for n in range(20)}
    asked = []

    def search(store, where):
        first = tiers.archive not in asked
        asked.append(store)
        if store is tiers.archive and first:  # the archive is asked while the memory is elsewhere
            tiers.move("a", [lowest.memory_id], "ltm", "stm")
        found = [memory.contents["n"] for memory in store.select(where)]
        if store is tiers.archive and first:
            tiers.move("a", [lowest.memory_id], "stm", "ltm")
        return found

    answer = tiers.search("a", ("stm", "im", "ltm"), search, Filter(agent=("a",)))
    assert len(asked) > 3
    assert {n for part in answer.parts for n in part} == wanted


def test_a_closed_memory_says_so(new_api, server):
    api = new_api(**redis_config(server), cache_ttl=0)
    fill(api, 1)
    api.close()
    with pytest.raises(MemoryRetrievalException, match="closed"):
        api.retrieve_by_time_range("a", 0, 9)


def test_two_processes_share_the_hot_tiers(new_api, server, tmp_path):
    api = new_api("shared", **redis_config(server, stm=100))
    fill(api, 3)
    code = f"""
from rmem.agents import AgentMemoryAPI, MemoryConfig
api = AgentMemoryAPI(MemoryConfig(
    ltm_config={{"path": {str(tmp_path / "shared.db")!r}}},
    stm_config={{"host": "127.0.0.1", "port": {server.port}, "memory_limit": 100}}))
assert len(api.retrieve_by_time_range("a", 0, 9)) == 3
api.store_agent_state("a", {{"position": [3, 0], "n": 3, "seen": "berries 3"}}, 3)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    everything_is_there(api, 4)


def test_namespaces_never_see_each_other(new_api, server):
    one = new_api("one", **redis_config(server, namespace="blue"))
    two = new_api("two", **redis_config(server, namespace="green"))
    fill(one, 4)
    assert two.retrieve_by_time_range("a", 0, 99) == []
    fill(two, 2)
    everything_is_there(one, 4)
    everything_is_there(two, 2)


def test_another_archive_in_the_same_namespace_is_not_answered_from(new_api, server):
    one, two = (new_api(name, **redis_config(server), cache_ttl=0) for name in ("one", "two"))
    for n in range(8):  # in one second, so that their ids are the same
        one.store_agent_state("a", {"mine": n}, n)
        two.store_agent_state("a", {"yours": n}, n)
    for api, name in ((one, "mine"), (two, "yours"), (one, "mine")):
        assert [entry["contents"] for entry in api.retrieve_by_time_range("a", 0, 99)] == [{name: n} for n in range(8)]


@pytest.mark.parametrize("dimension", [8, 256])
def test_tiers_are_filled_anew_after_the_archive_was_embedded_anew(new_api, server, tmp_path, dimension):
    def other(texts):
        return np.array([[len(text), *range(1, dimension)] for text in texts], np.float32)

    api = new_api("shared", **redis_config(server), cache_ttl=0)
    for agent in ("a", "b"):
        fill(api, 12, agent)
        api.force_memory_maintenance(agent)
        everything_is_there(api, 12, agent)
    reindex(tmp_path / "shared.db", other)
    new = new_api("shared", **redis_config(server), cache_ttl=0, embedder=other)
    for agent in ("a", "b"):
        new.store_agent_state(agent, state(12), 12)
        new.force_memory_maintenance(agent)
        deadline = time.monotonic() + 20
        while (found := new.retrieve_by_time_range(agent, 0, 99)).missing_tiers:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert steps(found) == list(range(13))
        vectors = [entry["embeddings"]["full_vector"] or entry["embeddings"]["compressed_vector"] for entry in found]
        assert {len(vector) for vector in vectors if vector} == {dimension}
        assert all(vector[-1] > vector[1] for vector in vectors if vector)
        assert steps(api.retrieve_by_time_range(agent, 0, 99)) == list(range(13))


def test_equals_are_told_in_the_same_order_from_redis_as_from_the_file(new_api, server):
    """Memories come into a tier in the order in which another lets go of them."""
    answers = []
    for name, config in (("redis", redis_config(server)), ("file", {})):
        limits = {} if config else {"stm_config": {"memory_limit": 5}, "im_config": {"memory_limit": 5}}
        api = new_api(name, **({"cleanup_interval": 10**9} | config | limits), cache_ttl=0)
        space = api.get_memory_space("a")
        for n in range(24):
            api.store_agent_state("a", state(n), n // 6, priority=(0.9, 0.2, 0.9)[n % 3])
            if n % 4 == 3:
                api.force_memory_maintenance()
        for entry in space.retrieve_by_time_range(0, 9, memory_tiers=["ltm"])[:4]:
            space.decompress(entry["memory_id"])
        asked = [
            *(space.retrieve_recent_states(count, memory_tiers=["im"]) for count in (2, 5, 20)),
            *(space.retrieve_by_importance(k=count, memory_tiers=["im"]) for count in (2, 5, 20)),
            space.retrieve_by_time_range(0, 9, memory_tiers=["im"]),
            space.retrieve_recent_states(20),
            space.retrieve_by_importance(k=9),
        ]
        answers.append([[entry["contents"]["n"] for entry in found] for found in asked])
    assert answers[0] == answers[1]


def test_only_the_tiers_asked_for_are_touched(new_api, server):
    api = new_api(**redis_config(server), cache_ttl=0)
    fill(api, 15)
    api.force_memory_maintenance()
    space = api.get_memory_space("a")
    server.kill()
    assert space.retrieve_by_time_range(0, 99, memory_tiers=["ltm"]).missing_tiers == ()
    assert space.retrieve_by_time_range(0, 99, memory_tiers=["stm", "ltm"]).missing_tiers == ("stm",)


def test_decompress_forget_and_focus_keep_redis_in_step(new_api, server):
    api = new_api(**redis_config(server), cache_ttl=0, promotion_threshold=1)
    fill(api, 15)
    api.force_memory_maintenance()
    space = api.get_memory_space("a")
    first = space.retrieve_by_time_range(0, 0)[0]
    assert space.decompress(first["memory_id"]).tier == "im"
    assert steps(space.retrieve_by_time_range(0, 99, memory_tiers=["im"])) == [0, 5, 6, 7, 8, 9]
    assert space.focus(first["memory_id"]).tier == "stm"
    assert 0 in steps(space.retrieve_by_time_range(0, 99, memory_tiers=["stm"]))
    assert space.forget(first["memory_id"])
    assert steps(space.retrieve_by_time_range(0, 99)) == list(range(1, 15))


def test_a_password_is_needed_and_never_shown(new_api, caplog):
    with RedisServer(password="s3cret-word") as server:
        good = new_api("good", **redis_config(server, password="s3cret-word"))
        fill(good, 2)
        assert everything_is_there(good, 2).missing_tiers == ()
        bad = new_api("bad", **redis_config(server, password="wr0ng-word"))
        with caplog.at_level(logging.DEBUG):
            fill(bad, 2)
            everything_is_there(bad, 2)
        assert "wr0ng-word" not in caplog.text
        assert "s3cret-word" not in repr(good.config) + str(good._system.tiers.hot["stm"].store)


def test_a_cluster_of_three(new_api):
    with RedisCluster() as cluster:
        where = cluster.connection()
        config = {key: where[key] for key in ("host", "port")} | {"cluster": True}
        api = new_api(
            stm_config=RedisSTMConfig(**config, memory_limit=5),
            im_config=RedisIMConfig(**config, memory_limit=5),
            cleanup_interval=10**9,
        )
        for agent in ("a", "b", "c {x}"):
            fill(api, 12, agent)
        api.force_memory_maintenance()
        for agent in ("a", "b", "c {x}"):
            assert everything_is_there(api, 12, agent).missing_tiers == ()


def test_the_documents_configuration_needs_no_redis_to_be_valid():
    config = MemoryConfig(stm_config=RedisSTMConfig(host="localhost", port=6379, memory_limit=10000, ttl=3600))
    assert config.stm_config.ttl == 3600


def test_focus_is_counted_where_the_memory_is_told_from(new_api, server):
    api = new_api(**redis_config(server, stm=50))
    fill(api, 5)
    space = api.get_memory_space("a")
    focused = space.retrieve_by_attributes({"n": 3})[0]
    for _ in range(2):
        space.focus(focused["memory_id"])
    found = {entry["step_number"]: entry["metadata"] for entry in space.retrieve_recent_states(5, memory_tiers=["stm"])}
    assert {step: kept["retrieval_count"] for step, kept in found.items()} == {0: 0, 1: 0, 2: 0, 3: 2, 4: 0}
    assert found[3]["last_access_time"] > found[2]["last_access_time"]
