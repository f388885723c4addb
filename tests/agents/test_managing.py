"""Managing agents: list and clear them, forget, set importance, and change the configuration of an open memory."""

from __future__ import annotations

import pickle
from random import Random

import pytest

from rmem import Brain
from rmem.agents import (
    AgentMemoryAPI,
    MemoryConfig,
    MemoryConfigException,
    MemoryInputError,
    MemoryMaintenanceException,
    RedisIMConfig,
    RedisSTMConfig,
)
from rmem.crypto.encryption import Encryption
from rmem.filters import Filter
from rmem.testing.redis import RedisServer


@pytest.fixture
def server():
    with RedisServer() as running:
        yield running


def redis_tiers(server):
    where = {"host": "127.0.0.1", "port": server.port, "connect_timeout": 0.5, "socket_timeout": 1.0}
    return {
        "stm_config": RedisSTMConfig(**where, memory_limit=2),
        "im_config": RedisIMConfig(**where, memory_limit=2),
        "cleanup_interval": 10**9,
        "cache_ttl": 0,
    }


def two_agents(api):
    """agent-1 speaks of agent-2, who has memories of its own in all tiers."""
    for step in range(3):
        words = {"other_agent_id": "agent-2", "content": f"agent-2 gave me {step} berries"}
        api.store_agent_interaction("agent-1", words, step)
    for step in range(6):
        api.store_agent_state("agent-2", {"berries": step}, step)
    api.force_memory_maintenance()


def steps(found):
    return [entry["step_number"] for entry in found]


def hot(api):
    """Which agents the hot tiers hold something of."""
    tiers = api._system.tiers.hot.values()
    return {memory.agent_id for tier in tiers for memory in tier.store.select(Filter())}


# Clearing an agent, and forgetting a subject


def test_clearing_an_agent_leaves_what_others_say_of_it(api):
    two_agents(api)
    assert api.list_agents() == ["agent-1", "agent-2"]
    assert api.clear_agent_memory("agent-2") is True
    assert api.list_agents() == ["agent-1"]
    assert api.retrieve_by_time_range("agent-2", 0, 99) == []
    assert steps(api.retrieve_by_time_range("agent-1", 0, 99)) == [0, 1, 2]
    assert api.get_memory_space("agent-1").search_by_content("agent-2 berries")
    assert api.get_memory_space("agent-2").clear() == 0


def test_forgetting_a_subject_removes_what_others_say_of_it(api):
    two_agents(api)
    api.store_agent_state("agent-1", {"health": 1.0}, 9)
    assert len(api.forget(subject="agent-2", dry_run=True)) == 9
    assert api.list_agents() == ["agent-1", "agent-2"]
    assert len(api.forget(subject="agent-2")) == 9
    assert api.list_agents() == ["agent-1"]
    assert steps(api.retrieve_by_time_range("agent-1", 0, 99)) == [9]


def test_clearing_an_agent_spares_names_that_only_look_like_it(api):
    for agent in ("agent-2", "Agent-2", "agent-22", "agent"):
        api.store_agent_state(agent, {"n": 1}, 1)
    api.clear_memory("agent-2")
    assert api.list_agents() == ["Agent-2", "agent", "agent-22"]


def test_clearing_an_agent_also_removes_what_was_set_aside(new_api, tmp_path):
    api = new_api()
    two_agents(api)
    brain = api._system.brain
    brain.prune({"max_count": 0, "min_age_days": 0})
    assert {one.memory.agent_id for one in brain.store.aside()} == {"agent-1", "agent-2"}
    api.clear_agent_memory("agent-2")
    assert {one.memory.agent_id for one in brain.store.aside()} == {"agent-1"}


def test_one_tier_of_an_agent_can_be_cleared(new_api):
    api = new_api(stm_config={"memory_limit": 2}, im_config={"memory_limit": 2}, cleanup_interval=10**9)
    two_agents(api)
    assert api.get_memory_statistics("agent-2")["tier_distribution"] == {"stm": 2, "im": 2, "ltm": 2}
    assert api.clear_agent_memory("agent-2", ["stm", "ltm"])
    assert api.get_memory_statistics("agent-2")["tier_distribution"] == {"stm": 0, "im": 2, "ltm": 0}
    with pytest.raises(MemoryMaintenanceException, match="memory_tiers must be one of"):
        api.clear_agent_memory("agent-2", ["short"])
    with pytest.raises(MemoryMaintenanceException, match="agent_id"):
        api.clear_agent_memory("")


def test_clearing_an_agent_reaches_its_tiers_in_redis(new_api, server):
    api = new_api(**redis_tiers(server))
    two_agents(api)
    assert hot(api) == {"agent-1", "agent-2"}
    api.clear_agent_memory("agent-2")
    assert hot(api) == {"agent-1"}
    assert steps(api.retrieve_by_time_range("agent-1", 0, 99)) == [0, 1, 2]
    api.forget(subject="agent-2")
    assert hot(api) == set()


def test_a_redis_that_is_away_is_told_of_and_cleared_by_the_next_call(new_api):
    with RedisServer(keep=True) as server:
        api = new_api(**redis_tiers(server))
        two_agents(api)
        server.kill()
        with pytest.raises(MemoryMaintenanceException, match="call again when it can be reached"):
            api.clear_agent_memory("agent-2")
        assert api.retrieve_by_time_range("agent-2", 0, 99) == []
        server.start()
        again = new_api(**redis_tiers(server))  # a process that starts anew: no circuit breaker is open
        assert hot(again) == {"agent-1", "agent-2"}
        assert again.get_memory_space("agent-2").clear() == 0  # nothing was left in the archive
        assert hot(again) == {"agent-1"}


def test_clearing_is_noted_in_the_audit_log(api):
    two_agents(api)
    api.clear_agent_memory("agent-2")
    noted = [entry for entry in api._system.brain.store.audit() if entry.detail.get("reason") == "clear"]
    assert len(noted) == 6


def test_one_memory_can_be_forgotten(api):
    kept, gone = (api.store_agent_state("agent-1", {"n": n}, n) for n in range(2))
    assert api.forget("agent-2", gone) is False
    assert api.forget("agent-1", gone) is True
    assert api.get_memory("agent-1", gone) is None
    assert api.get_memory("agent-1", kept)["contents"] == {"n": 0}
    for wrong in ({}, {"agent_id": "agent-1"}, {"agent_id": "agent-1", "subject": "Anna"}, {"memory_id": kept}):
        with pytest.raises(MemoryMaintenanceException, match="agent_id and memory_id must be given, or subject alone"):
            api.forget(**wrong)


# Importance


def test_the_importance_of_a_memory_can_be_set(api):
    low = api.store_agent_state("a", {"n": 1}, 1, priority=0.1)
    api.store_agent_state("a", {"n": 2}, 2, priority=0.5)
    assert api.set_importance_score("a", low, 0.9) is True
    assert steps(api.get_memory_space("a").retrieve_by_importance(0.8)) == [1]
    assert api.get_memory("a", low)["metadata"]["importance_score"] == 0.9
    assert api.set_importance_score("b", low, 0.2) is False
    assert api.set_importance_score("a", "nothing", 0.2) is False
    with pytest.raises(MemoryMaintenanceException, match="importance_score must be"):
        api.set_importance_score("a", low, 1.5)


def test_a_new_importance_reaches_redis_even_if_it_was_away(new_api):
    with RedisServer(keep=True) as server:
        api = new_api(**redis_tiers(server))
        first, second = (api.store_agent_state("a", {"n": n}, n, priority=0.1) for n in range(2))
        api.set_importance_score("a", first, 0.9)
        assert steps(api.get_memory_space("a").retrieve_by_importance(0.8)) == [0]
        server.kill()
        api.set_importance_score("a", second, 0.95)
        server.start()
        again = new_api(**redis_tiers(server))
        found = again.get_memory_space("a").retrieve_by_importance(0.8)
        assert steps(found) == [1, 0]
        assert found.missing_tiers == ()


# Configuration


def test_an_open_memory_can_be_configured_anew(new_api):
    api = new_api(cleanup_interval=10**9)
    for step in range(20):
        api.store_agent_state("a", {"n": step}, step)
    changes = {"stm_config.memory_limit": 5, "im_config": {"ttl": None}, "cache_ttl": 5, "enable_memory_hooks": False}
    assert api.configure_memory_system(changes) is True
    assert (api.config.stm_config.memory_limit, api.config.im_config.ttl, api.config.cache_ttl) == (5, None, 5)
    assert api.config.enable_memory_hooks is False
    assert api.config.cleanup_interval == 10**9
    api.force_memory_maintenance("a")
    assert api.get_memory_statistics("a")["tier_distribution"] == {"stm": 5, "im": 15, "ltm": 0}
    assert api.get_memory_statistics("a")["cache"]["ttl"] == 5


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cleanup_interval": 0}, "cleanup_interval must be"),
        ({"cleanup_intervall": 5}, "cleanup_interval"),
        ({"stm_config.memory_limitt": 5}, "memory_limit"),
        ({"stm_config.memory_limit": 0}, "stm_config.memory_limit must be"),
        ({"cache_ttl.seconds": 5}, "cache_ttl has no fields of its own"),
        ({"stm_config.host": "example.com"}, "stm_config.* cannot change while a memory is open"),
        ({"ltm_config.path": "other.db"}, "ltm_config.path cannot change while a memory is open"),
        ({"embedder": "none"}, "embedder cannot change while a memory is open"),
        ("cleanup_interval", "config must be a mapping"),
    ],
)
def test_a_configuration_that_cannot_be_changed_is_refused_whole(api, changes, told):
    before = api.config
    more = {"promotion_threshold": 9, **changes} if isinstance(changes, dict) else changes
    with pytest.raises(MemoryConfigException, match=told):
        api.configure_memory_system(more)
    assert api.config == before


def test_the_password_of_redis_is_kept_when_a_bound_changes():
    config = MemoryConfig(stm_config=RedisSTMConfig(host="h", password="secret"))
    changed = config.updated({"stm_config.memory_limit": 7})
    assert changed.stm_config == RedisSTMConfig(host="h", password="secret", memory_limit=7)
    assert changed.stm_config.password == "secret"


# Judging hits


def test_answers_to_questions_can_be_judged(api):
    for step, seen in enumerate(["ripe berries near the river", "a bear near the river", "a stone"]):
        api.store_agent_state("a", {"seen": seen, "health": step}, step)
    space, store = api.get_memory_space("a"), api._system.brain.store
    best, second = space.search_by_content("river berries", k=2)
    best.useful()
    second.useful(False)
    likest = [api.retrieve_similar_states("a", {"health": 1}, k=1)[0] for _ in range(2)][1]  # the second is cached
    likest.useful()
    told = {(one.question, one.memory_id, one.rank, one.useful, one.agent, one.type) for one in store.feedback()}
    assert told == {
        ("river berries", best["memory_id"], 1, True, "a", "state"),
        ("river berries", second["memory_id"], 2, False, "a", "state"),
        ("health: 1", likest["memory_id"], 1, True, "a", "state"),
    }


def test_what_answers_no_question_cannot_be_judged(api):
    api.store_agent_state("a", {"seen": "berries"}, 1)
    found = pickle.loads(pickle.dumps(api.get_memory_space("a").search_by_content("berries")[0]))
    for entry in (api.retrieve_by_time_range("a", 0, 9)[0], found):
        with pytest.raises(MemoryInputError, match="only a memory that was found by words or by similarity"):
            entry.useful()
    with pytest.raises(MemoryInputError, match="useful must be"):
        api.get_memory_space("a").search_by_content("berries")[0].useful("yes")


# Forgetting what has faded


def test_what_agents_have_not_met_for_many_steps_is_pruned_in_every_tier(new_api, server):
    api = new_api(**redis_tiers(server))
    for step in range(0, 600, 100):
        api.store_agent_state("a", {"n": step}, step, priority=0.0)
    api.store_agent_state("b", {"n": 1}, 0, priority=0.0)
    policy = {"below": 0.5, "steps_per_day": 100, "stability": 2, "grace_days": 0}
    assert [retained < 0.5 for _, retained in api.prune(policy, dry_run=True)] == [True] * 4
    assert len(api.retrieve_by_time_range("a", 0, 999)) == 6
    api.prune(policy)
    assert {memory.step_number for tier in api._system.tiers.hot.values() for memory in tier.store.select()} == {
        0,
        400,
        500,
    }
    assert steps(api.retrieve_by_time_range("a", 0, 999)) == [400, 500]
    assert steps(api.retrieve_by_time_range("b", 0, 999)) == [0]
    with pytest.raises(MemoryMaintenanceException, match="steps_per_day"):
        api.prune({"steps_per_days": 5})


def test_an_agent_whose_memories_cannot_be_read_is_not_half_cleared(tmp_path, monkeypatch):
    path = tmp_path / "sealed.db"
    with AgentMemoryAPI({"ltm_config": {"path": path}}) as api:
        api.store_agent_state("agent-2", {"health": 1}, 5)
    with Brain(path, encryption=Encryption(master=Random(3).randbytes(32))) as brain:
        brain.remember("the key is under the mat", agent="agent-2")
    with AgentMemoryAPI({"ltm_config": {"path": path}}) as api:
        with pytest.raises(MemoryMaintenanceException, match="1 encrypted memories cannot be searched"):
            api.clear_agent_memory("agent-2")
        assert steps(api.retrieve_by_time_range("agent-2", 5, 5)) == [5]
