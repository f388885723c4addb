"""Every code block of the Agent Memory API document, as written, run against the real thing.

The blocks stand here as text so that nothing reformats them. Where the document has "..." or names something of the
reader's own, the fixture `run` supplies it. A block runs after those it builds upon, in one namespace."""

from __future__ import annotations

import json
import re
import socket
import time

import pytest

import rmem.agents
from rmem.testing.redis import RedisServer

BLOCKS = {
    "installation": """
from memory.api import AgentMemoryAPI
""",
    "initialization": """
from memory.api import AgentMemoryAPI
from memory.config import MemoryConfig

# Initialize with default configuration
memory_api = AgentMemoryAPI()

# Or, initialize with custom configuration
config = MemoryConfig(
    cleanup_interval=100,
    stm_config={"memory_limit": 10000}
)
memory_api = AgentMemoryAPI(config)
""",
    "storing": """
# Store an agent's state
memory_api.store_agent_state(
    agent_id="agent-123",
    state_data={
        "position": [10, 20],
        "health": 0.85,
        "inventory": {"wood": 5, "stone": 2}
    },
    step_number=1234,
    priority=0.75  # Important memory (0.0-1.0)
)

# Store an interaction
memory_api.store_agent_interaction(
    agent_id="agent-123",
    interaction_data={
        "interaction_type": "conversation",
        "other_agent_id": "agent-456",
        "content": "Hello, do you have any wood to trade?",
        "sentiment": 0.6
    },
    step_number=1235
)

# Store an action
memory_api.store_agent_action(
    agent_id="agent-123",
    action_data={
        "action_type": "trade",
        "target_agent": "agent-456",
        "items_given": {"wood": 2},
        "items_received": {"stone": 1},
        "outcome": "success"
    },
    step_number=1236
)
""",
    "models": """
from memory.api import AgentState, ActionResult, ActionData

# Create a structured agent state
agent_state = AgentState(
    agent_id="agent-123",
    step_number=1234,
    health=0.85,
    position_x=10,
    position_y=20,
    extra_data={"inventory": {"wood": 5, "stone": 2}}
)

# Store the state using the model
state_dict = agent_state.as_dict()
memory_api.store_agent_state(
    agent_id=agent_state.agent_id,
    state_data=state_dict,
    step_number=agent_state.step_number
)

# Create an action result
result = ActionResult(
    action_type="trade",
    params={"target": "agent-456", "item": "wood"},
    reward=0.5
)
""",
    "retrieving": """
# Get memory agent instance for more specialized operations
memory_space = memory_api.get_memory_space("agent-123")

# Get recent states
recent_states = memory_space.retrieve_recent_states(
    count=5,
    memory_type="state"  # Optional filter
)

# Find similar states
current_state = {"position": [12, 22], "health": 0.8}
similar_states = memory_api.retrieve_similar_states(
    agent_id="agent-123",
    query_state=current_state,
    k=5
)

# Get memories within a time range
memories = memory_api.retrieve_by_time_range(
    agent_id="agent-123",
    start_step=1000,
    end_step=2000,
    memory_type="action"  # Optional filter
)

# Find memories with specific attributes
trading_memories = memory_api.retrieve_by_attributes(
    agent_id="agent-123",
    attributes={"action_type": "trade", "outcome": "success"},
    memory_type="action"
)
""",
    "management": """
# Force memory maintenance (tier transitions)
memory_api.force_memory_maintenance(agent_id="agent-123")

# Get memory statistics
stats = memory_api.get_memory_statistics(agent_id="agent-123")
print(f"Total memories: {stats['total_memories']}")
print(f"Memory distribution: {stats['memory_type_distribution']}")

# Clear the cache to free up memory and ensure fresh results
memory_api.clear_cache()

# Configure cache TTL for balancing memory usage and performance
memory_api.set_cache_ttl(300)  # 5 minutes
""",
    "hooks": """
from memory.api import install_memory_hooks, BaseAgent, with_memory

# Option 1: Class decorator approach
@install_memory_hooks
class MyAgent(BaseAgent):
    def __init__(self, config=None, agent_id=None):
        super().__init__(config, agent_id)
        # Agent-specific initialization

    def act(self, observation):
        # Memory hooks automatically capture state before and after this method
        # Process the observation and determine action
        result = self.process(observation)
        return result

    def get_state(self):
        # Return the current agent state
        state = super().get_state()
        state.extra_data["custom_field"] = self.some_internal_state
        return state

# Option 2: Instance decorator approach for existing agents
agent = ExistingAgentClass()
memory_enhanced_agent = with_memory(agent, agent_id="agent-456")

# Now use the agent normally - memories are created automatically
result = memory_enhanced_agent.act({"user_input": "What's the weather today?"})
""",
    "raw vector search": """
# Search using the raw embedding
memory_space = memory_api.get_memory_space("agent-123")
similar_memories = memory_space.search_by_embedding(
    query_embedding=embedding,
    k=10,
    memory_tiers=["stm", "im"]  # Optional: specific tiers to search
)
""",
    "content search": """
# Get memory agent instance
memory_space = memory_api.get_memory_space("agent-123")

# Search by content pattern
memories = memory_space.search_by_content(
    content_query="trade wood",
    k=5
)
""",
    "caching": """
from memory.api import cacheable

# Create a cached function with a 60-second TTL
@cacheable(ttl=60)
def expensive_memory_operation(agent_id, query):
    # Complex, expensive operation...
    results = compute(agent_id, query)
    return results

# First call computes the result
result1 = expensive_memory_operation("agent-123", "find wood")

# Second call with same parameters uses cached result
result2 = expensive_memory_operation("agent-123", "find wood")  # Uses cache

# Different parameters will compute new result
result3 = expensive_memory_operation("agent-123", "find stone")  # New computation
""",
    "merge sorting": """
# The merge_sorted parameter is enabled by default for appropriate methods
memories = memory_space.retrieve_by_time_range(
    agent_id="agent-123",
    start_step=1000,
    end_step=2000
)  # Uses efficient merge sort internally
""",
    "result caching": """
# This query will cache results (using lru_cache)
similar_states = memory_space.retrieve_similar_states(
    agent_id="agent-123",
    query_state=current_state,
    k=5
)

# Subsequent identical calls will use the cached result
similar_states_again = memory_space.retrieve_similar_states(
    agent_id="agent-123",
    query_state=current_state,
    k=5
)  # Returns cached result without recomputing
""",
    "cache settings": """
# Configure the default cache TTL
memory_space.set_cache_ttl(300)  # 5 minutes

# Clear the entire cache
memory_space.clear_cache()
""",
    "error handling": """
from memory.api import AgentMemoryAPI, MemoryStoreException, MemoryRetrievalException

memory_api = AgentMemoryAPI()

try:
    # Attempt to store a state
    memory_api.store_agent_state(
        agent_id="agent-123",
        state_data={"position": [10, 20], "health": 0.8},
        step_number=42
    )
except MemoryStoreException as e:
    # Handle storage failure (e.g., retry or log)
    print(f"Storage failed: {e}")
    # Implement recovery strategy...

try:
    # Attempt to retrieve similar states
    similar_states = memory_api.retrieve_similar_states(
        agent_id="agent-123",
        query_state={"position": [12, 22]}
    )
except MemoryRetrievalException as e:
    # Handle retrieval failure (e.g., fallback to non-vector search)
    print(f"Retrieval failed: {e}")
    # Implement fallback strategy...
""",
    "tier-specific querying": """
# Search only STM and IM (faster than searching all tiers)
results = memory_space.search_by_embedding(
    query_embedding=embedding,
    k=10,
    memory_tiers=["stm", "im"]  # Skip LTM for faster results
)
""",
    "configuration": """
from memory.config import MemoryConfig, RedisSTMConfig

config = MemoryConfig(
    # System-wide settings
    cleanup_interval=100,  # Check for maintenance every N insertions
    memory_priority_decay=0.95,  # Priority decay factor for older memories

    # Tier-specific settings
    stm_config=RedisSTMConfig(
        host="localhost",
        port=6379,
        memory_limit=10000,  # Max entries in STM
        ttl=3600  # 1 hour TTL
    )
)

memory_api = AgentMemoryAPI(config)
""",
}

STRUCTURE = """
{
  "memory_id": "agent-123-1234-1679233344",
  "agent_id": "agent-123",
  "step_number": 1234,
  "timestamp": 1679233344,
  "contents": {
    "position": [10, 20],
    "health": 0.85
  },
  "metadata": {
    "creation_time": 1679233344,
    "last_access_time": 1679233400,
    "compression_level": 0,
    "importance_score": 0.75,
    "retrieval_count": 3,
    "memory_type": "state"
  },
  "embeddings": {
    "full_vector": [],
    "compressed_vector": [],
    "abstract_vector": []
  }
}
"""


class ExistingAgentClass:
    def act(self, observation):
        return f"sunny, since you ask: {observation['user_input']}"


@pytest.fixture
def run(request):
    """Run blocks in order in one namespace, and hand it over."""
    computed = []

    def compute(agent_id, query):
        computed.append(query)
        return [f"{agent_id} would {query}"]

    names = {
        "ExistingAgentClass": ExistingAgentClass,
        "embedding": [0.1, 0.2, 0.3, *[0.0] * 253],
        "compute": compute,
        "computed": computed,
        "__name__": "document",
    }

    def in_order(*blocks):
        for block in blocks:
            code = compile(BLOCKS[block], f"the document: {block}", "exec")
            exec(code, names)
            api = names.get("memory_api")
            if api is not None:
                request.addfinalizer(api.close)
        return names

    return in_order


STORED = ("installation", "initialization", "storing", "models")


def test_initialization(run):
    names = run("installation", "initialization")
    assert names["memory_api"].config.stm_config.memory_limit == 10_000


def test_storing_agent_information(run):
    names = run("initialization", "storing")
    stored = names["memory_api"].retrieve_by_time_range("agent-123", 1234, 1236)
    assert [(entry["step_number"], entry["metadata"]["memory_type"]) for entry in stored] == [
        (1234, "state"),
        (1235, "interaction"),
        (1236, "action"),
    ]
    assert stored[0]["metadata"]["importance_score"] == 0.75
    assert stored[1]["metadata"]["importance_score"] == 1.0
    assert stored[0]["contents"] == {"position": [10, 20], "health": 0.85, "inventory": {"wood": 5, "stone": 2}}


def test_using_structured_models(run):
    names = run("initialization", "models")
    (stored,) = names["memory_api"].retrieve_by_time_range("agent-123", 1234, 1234)
    assert stored["contents"] == names["state_dict"]
    assert stored["contents"]["position"] == [10, 20]
    assert stored["contents"]["inventory"] == {"wood": 5, "stone": 2}
    assert names["result"].reward == 0.5


def test_retrieving_memories(run):
    names = run(*STORED, "retrieving")
    assert [entry["step_number"] for entry in names["recent_states"]] == [1234, 1234]
    assert {entry["contents"]["health"] for entry in names["similar_states"] if "health" in entry["contents"]} == {0.85}
    for found in (names["memories"], names["trading_memories"]):
        assert [entry["contents"]["action_type"] for entry in found] == ["trade"]


def test_memory_management(run, capsys):
    names = run(*STORED, "management")
    shown = capsys.readouterr().out
    assert "Total memories: 4" in shown
    assert "Memory distribution: " in shown
    assert names["stats"]["memory_type_distribution"] == {"state": 2, "interaction": 1, "action": 1}


def test_memory_hooks(run, caplog):
    names = run("hooks")
    assert names["result"] == "sunny, since you ask: What's the weather today?"
    with rmem.agents.AgentMemoryAPI() as api:
        (action,) = api.retrieve_by_time_range("agent-456", 0, 10)
        assert action["contents"]["arguments"] == {"observation": {"user_input": "What's the weather today?"}}
        assert action["contents"]["result"] == names["result"]

        # As written, the agent of option 1 has no `some_internal_state`: get_state fails, and acting does not.
        agent = names["MyAgent"](agent_id="mine")
        agent.act("a fork in the road")
        assert "some_internal_state" in caplog.text
        assert len(api.retrieve_by_time_range("mine", 0, 10, memory_type="action")) == 1
        agent.some_internal_state = "curious"
        agent.act("another fork")
        states = api.retrieve_by_time_range("mine", 0, 10, memory_type="state")
        assert [(entry["step_number"], entry["contents"]) for entry in states] == [
            (1, {"custom_field": "curious"}),
            (2, {"custom_field": "curious"}),
        ]


def test_raw_vector_search(run):
    names = run(*STORED, "raw vector search", "tier-specific querying")
    assert len(names["similar_memories"]) == len(names["results"]) == 4


def test_content_based_search(run):
    names = run(*STORED, "content search")
    assert names["memories"]
    assert "wood" in json.dumps(names["memories"][0]["contents"])


def test_caching_expensive_operations(run):
    names = run("caching")
    assert names["computed"] == ["find wood", "find stone"]
    assert names["result1"] == names["result2"] == ["agent-123 would find wood"]
    assert names["result3"] == ["agent-123 would find stone"]


def test_merge_sorting_and_result_caching(run):
    names = run(*STORED, "retrieving", "merge sorting", "result caching", "cache settings")
    assert [entry["step_number"] for entry in names["memories"]] == [1234, 1234, 1235, 1236]
    assert names["similar_states"] == names["similar_states_again"]
    assert names["similar_states"] is not names["similar_states_again"]


def test_error_handling(run, capsys):
    names = run("error handling")
    assert capsys.readouterr().out == ""
    assert names["similar_states"][0]["contents"] == {"position": [10, 20], "health": 0.8}


def test_configuration_options_when_nothing_listens(run):
    with socket.socket() as probe:
        if probe.connect_ex(("localhost", 6379)) == 0:
            pytest.skip("somebody's Redis listens at localhost:6379")
    started = time.monotonic()
    names = run("initialization", "configuration", "storing", "retrieving")
    assert [entry["contents"]["outcome"] for entry in names["trading_memories"]] == ["success"]
    assert names["trading_memories"].missing_tiers == ("stm",)
    assert time.monotonic() - started < 20


def test_configuration_options_with_a_redis(run, monkeypatch):
    with RedisServer() as server:
        monkeypatch.setitem(BLOCKS, "configuration", BLOCKS["configuration"].replace("6379", str(server.port)))
        names = run("initialization", "configuration", "storing", "retrieving")
        assert [entry["contents"]["outcome"] for entry in names["trading_memories"]] == ["success"]
        assert not names["trading_memories"].missing_tiers
        assert server.client().dbsize() > 0


def test_a_memory_has_the_documented_structure(run):
    names = run("initialization", "storing")
    (memory,) = names["memory_api"].retrieve_by_time_range("agent-123", 1234, 1234)
    documented = json.loads(STRUCTURE)

    def keys(entry):
        return [list(entry), list(entry["metadata"]), list(entry["embeddings"])]

    assert keys(memory) == keys(documented)
    assert re.fullmatch(r"agent-123-1234-\d{10}(\W\w+)?", memory["memory_id"])


def test_the_exceptions_form_the_documented_hierarchy():
    from memory.api import (
        MemoryAPIException,
        MemoryConfigException,
        MemoryMaintenanceException,
        MemoryRetrievalException,
        MemoryStoreException,
    )

    kinds = (MemoryStoreException, MemoryRetrievalException, MemoryMaintenanceException, MemoryConfigException)
    for kind in kinds:
        assert issubclass(kind, MemoryAPIException)
        error = kind("why", agent_id="agent-123", tier="stm", recoverable=True)
        assert (str(error), error.agent_id, error.tier, error.recoverable) == ("why", "agent-123", "stm", True)
        assert not kind("why").recoverable


def test_validation_comes_first_and_is_recoverable(run):
    names = run("initialization", "error handling")
    api, kind = names["memory_api"], names["MemoryStoreException"]
    for bad in ({"state_data": 5}, {"step_number": -1}, {"priority": 2}, {"step_number": True}):
        given = {"agent_id": "agent-9", "state_data": {"x": 1}, "step_number": 1, **bad}
        with pytest.raises(kind, match=next(iter(bad))) as caught:
            api.store_agent_state(**given)
        assert caught.value.recoverable
        assert isinstance(caught.value, ValueError)
    assert api.retrieve_by_time_range("agent-9", 0, 10) == []
    with pytest.raises(names["MemoryRetrievalException"], match="k must be") as caught:
        api.retrieve_similar_states("agent-123", {"x": 1}, k=True)
    assert caught.value.agent_id == "agent-123"


def test_a_bad_agent_is_a_failure_of_the_call_that_named_it(run):
    names = run("initialization", "error handling")
    with pytest.raises(names["MemoryStoreException"], match="agent_id must"):
        names["memory_api"].store_agent_state("", {"x": 1}, 1)


def test_the_aliases_are_the_same_objects():
    import memory.api
    import memory.config

    for name in rmem.agents.__all__:
        assert getattr(memory.api, name) is getattr(rmem.agents, name)
    for name in memory.config.__all__:
        assert getattr(memory.config, name) is getattr(rmem.agents, name)
    assert dir(rmem.agents) == sorted(rmem.agents.__all__)
    with pytest.raises(AttributeError, match="no attribute 'AgentMemoryApi'"):
        _ = rmem.agents.AgentMemoryApi


def test_a_structured_state_is_found_again_at_another_step(run):
    names = run("initialization", "models")
    api, state = names["memory_api"], names["AgentState"]
    for step in range(50):
        api.store_agent_state("a", state("a", step, position_x=step * 7 % 50, position_y=step * 3 % 50).as_dict(), step)
    now = state("a", 1000, position_x=21, position_y=9)  # as at step 3
    assert api.retrieve_similar_states("a", now.as_dict(), k=1)[0]["step_number"] == 3
