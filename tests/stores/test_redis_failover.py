"""A Redis Cluster of six processes, three masters with a replica each: a master is killed and slots move under load."""

from __future__ import annotations

import threading
import time

import pytest
from redis_cluster import RedisCluster

from rmem.agents import AgentMemoryAPI, MemoryConfig
from rmem.errors import StoreError, StoreUnreachableError
from rmem.kv import RedisStore
from rmem.testing.redis import wait_until


@pytest.fixture
def cluster():
    with RedisCluster(replicas=True) as started:
        yield started


@pytest.fixture
def store(cluster):
    with RedisStore(**cluster.connection(socket_timeout=2.0), namespace="session", copies=1) as opened:
        yield opened


class Writers:
    """Threads that write values, again until each was acknowledged, and note which were."""

    def __init__(self, store, count=2):
        self.kept, self._stop, self._store = [], threading.Event(), store
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]

    def _write(self, number):
        turn = 0
        while not self._stop.is_set():
            key = f"w{number}-{turn}"
            try:
                self._store.add(key, {"text": key})
            except StoreError:
                time.sleep(0.05)
                continue
            self.kept.append(key)
            turn += 1

    def wait_for(self, more, seconds=40.0):
        wanted, until = len(self.kept) + more, time.monotonic() + seconds
        while len(self.kept) < wanted:
            assert time.monotonic() < until, "writes did not go on"
            time.sleep(0.02)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.wait_for(20)
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def test_what_replicas_confirmed_is_there_after_the_master_was_killed_under_load(cluster):
    first = cluster.nodes[0]  # the one node that the address names
    name = next(name for name in map(str, range(100)) if cluster.master_of(f"values:{{{name}}}:order") is first)
    with RedisStore(**cluster.connection(socket_timeout=2.0), namespace=name, copies=1) as store:
        with Writers(store) as writers:
            first.kill()
            wait_until(
                lambda: cluster.master_of(f"values:{{{name}}}:order") is cluster.nodes[3], "its replica took over"
            )
            first.start()  # as the replica of the new master, which has none otherwise
            writers.wait_for(20)
        assert [key for key in writers.kept if store.get(key) is None] == []


@pytest.mark.slow  # the test above goes on without that node too
def test_a_cluster_is_found_by_its_other_nodes_when_the_one_of_the_address_is_gone(cluster):
    with RedisStore(**cluster.connection(socket_timeout=1.0), namespace="n") as store:
        store.add("before", 1)
        cluster.nodes[0].kill()
        wait_until(
            lambda: all(cluster.master_of(str(key)) is not cluster.nodes[0] for key in range(20)), "it is replaced"
        )

        def again() -> bool:
            try:
                store.add("after", 2)
            except StoreError:
                return False
            return True

        wait_until(again, "the store writes again")
        assert (store.get("before"), store.get("after")) == (1, 2)


def test_a_write_that_no_replica_has_is_not_acknowledged(cluster, store):
    store.add("first", 1)
    master = cluster.master_of("values:{session}:order")
    cluster.nodes[cluster.nodes.index(master) + 3].kill()
    with pytest.raises(StoreUnreachableError, match="0 of 1 replicas had the write"):
        store.add("second", 2)
    assert store.get("first") == 1


def test_nothing_is_lost_while_a_slot_is_moved_under_load(cluster, store):
    key = "values:{session}:order"
    with Writers(store) as writers:
        for _ in range(2):
            source = cluster.master_of(key)
            target = next(node for node in cluster.nodes[:3] if node is not source)
            cluster.move_slot(key, target)
            writers.wait_for(20)
            assert cluster.master_of(key) is target
    assert [name for name in writers.kept if store.get(name) is None] == []


def test_agents_lose_nothing_when_the_master_of_their_hot_tier_is_killed(cluster, tmp_path):
    redis = {**cluster.connection(), "socket_timeout": 1.0}
    redis.pop("password")
    config = MemoryConfig(stm_config=redis, ltm_config={"path": str(tmp_path / "a.db")})
    with AgentMemoryAPI(config) as api:
        kept = [api.store_agent_state("agent", {"step": step, "note": f"n{step}"}, step) for step in range(20)]
        cluster.nodes[0].kill()
        kept += [api.store_agent_state("agent", {"step": step, "note": f"n{step}"}, step) for step in range(20, 40)]
        assert len(set(kept)) == 40
        found = api.retrieve_by_time_range("agent", 0, 100)
        assert sorted(one["step_number"] for one in found) == list(range(40))
