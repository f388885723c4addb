"""Hooked agents that are restarted, copied or pickled, and those whose state cannot be told."""

from __future__ import annotations

import copy
import logging
import pickle
import subprocess
import sys

import pytest

from rmem import Brain
from rmem.agents import (
    AgentMemoryAPI,
    AsyncAgentMemoryAPI,
    BaseAgent,
    MemoryConfigException,
    install_memory_hooks,
    with_memory,
)
from rmem.agents.recorder import shared_memory


@install_memory_hooks
class Gatherer(BaseAgent):
    wood = 0

    def act(self, observation=None):
        self.wood += 1
        return self.wood

    def get_state(self):
        state = super().get_state()
        state.extra_data["wood"] = self.wood
        return state


@install_memory_hooks
class Plain(BaseAgent):
    """It has no state to tell."""


@install_memory_hooks
class Counting(BaseAgent):
    """It counts by itself, and begins at 0 as it was written."""

    def __init__(self, agent_id, memory_api):
        super().__init__(agent_id=agent_id, memory_api=memory_api)
        self.step_number = 0

    def act(self, observation=None):
        self.step_number += 1
        return {"wood": 1}


class Walker:
    position = 0

    def act(self, distance):
        self.position += distance
        return self.position

    def get_state(self):
        return {"position": self.position}


class Slotted:
    __slots__ = ("health",)

    def __init__(self):
        self.health = 1.0

    def act(self, harm):
        self.health -= harm
        return self.health


def opened(path):
    return AgentMemoryAPI({"ltm_config": {"path": path / "agents.db", "durability": "normal"}})


def steps(api, agent, kind="action"):
    found = api.get_memory_space(agent).query(memory_type=kind)
    return [entry["step_number"] for entry in found]


# Restarting


@pytest.mark.parametrize("kind", [Gatherer, Plain, Counting])
def test_a_base_agent_that_is_built_again_goes_on_from_its_last_step(tmp_path, kind):
    for life in range(3):
        with opened(tmp_path) as api:
            agent = kind(agent_id="a", memory_api=api)
            assert agent.step_number == (0 if kind is Counting else 2 * life)  # Counting says 0 itself
            agent.act()
            agent.act()
            assert agent.step_number == 2 * life + 2
            assert steps(api, "a") == list(range(2 * life + 2))


def test_the_states_of_a_restarted_agent_are_one_history(tmp_path):
    for _ in range(2):
        with opened(tmp_path) as api:
            agent = Gatherer(agent_id="a", memory_api=api)
            agent.wood = agent.memory.retrieve_recent_states(1, "state")[0]["contents"]["wood"] if _ else 0
            agent.act()
            agent.act()
    with opened(tmp_path) as api:
        history = api.get_memory_space("a").attribute_history("wood")
        assert [(entry["step_number"], entry["value"]) for entry in history] == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]


def test_a_second_agent_of_the_same_name_goes_on_in_the_same_process(tmp_path):
    with opened(tmp_path) as api:
        Gatherer(agent_id="a", memory_api=api).act()
        Gatherer(agent_id="a", memory_api=api).act()
        assert steps(api, "a") == [0, 1]


def test_a_step_that_was_set_is_kept(tmp_path):
    with opened(tmp_path) as api:
        Gatherer(agent_id="a", memory_api=api).act()
        later = Gatherer(agent_id="a", memory_api=api)
        later.step_number = 100
        later.act()
        later.step_number = 0  # a new episode of an agent that has begun
        later.act()
        assert steps(api, "a") == [0, 0, 100]


def test_a_step_that_cannot_be_set_is_left_to_the_agent(tmp_path, caplog):
    @install_memory_hooks
    class Fixed(BaseAgent):
        step_number = property(lambda self: 0)

        def act(self):
            return "acted"

    with opened(tmp_path) as api, caplog.at_level(logging.WARNING, "rmem"):
        Gatherer(agent_id="a", memory_api=api).act()
        assert Fixed(agent_id="a", memory_api=api).act() == "acted"
        assert steps(api, "a") == [0, 0]


# A state that cannot be told


def test_a_failing_get_state_is_logged_once_and_counted(tmp_path, caplog):
    class Shy(Walker):
        def get_state(self):
            raise AttributeError("no such thing")

    with opened(tmp_path) as api, caplog.at_level(logging.DEBUG, "rmem"):
        shy, other = with_memory(Shy(), "shy", api), with_memory(Shy(), "other", api)
        for _ in range(5):
            shy.act(1)
        other.act(1)
        told = [record for record in caplog.records if "goes on" in record.getMessage()]
        assert [record.levelname for record in told] == ["WARNING"] * 2  # once for each agent
        assert all(record.exc_info for record in told)
        assert caplog.text.count("AttributeError: no such thing") == 2
        assert api.get_memory_statistics("shy")["state_failures"] == 10  # before and after each act
        assert api.get_memory_statistics("nobody")["state_failures"] == 0
        assert len(steps(api, "shy")) == 5


# Copies and pickles


@pytest.mark.parametrize("again", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
@pytest.mark.parametrize("kind", [Walker, Slotted])
def test_a_copy_or_a_pickle_of_an_agent_with_memory_keeps_it(tmp_path, again, kind):
    with opened(tmp_path) as api:
        agent = with_memory(kind(), "a", api)
        agent.act(1)
        twin = again(again(agent))
        assert type(twin).act is not None
        twin.act(1)
        assert len(steps(api, "a")) == 2
        assert twin.act.__self__ is not agent.act.__self__
        agent.act(1)
        assert len(steps(api, "a")) == 3


@pytest.mark.parametrize("again", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
def test_an_agent_that_holds_its_memory_keeps_it(tmp_path, again):
    with opened(tmp_path) as api:
        agent = Gatherer(agent_id="a", memory_api=api)
        agent.space = api.get_memory_space("a")
        agent.act()
        twin = again(agent)
        twin.act()
        assert steps(api, "a") == [0, 1]
        assert len(twin.space.query(memory_type="action")) == 2


def test_a_copy_shares_the_open_memory(tmp_path):
    with opened(tmp_path) as api:
        assert copy.deepcopy(api) is copy.copy(api) is api
        space = api.get_memory_space("a")
        assert copy.deepcopy(space) is copy.copy(space) is space


def test_a_pickle_leads_to_the_same_file_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with AgentMemoryAPI({"ltm_config": {"path": "here.db"}, "cleanup_interval": 7}) as api:
        agent = with_memory(Walker(), "a", api)
        agent.act(1)
        data = pickle.dumps([agent, api, AsyncAgentMemoryAPI({"ltm_config": {"path": "here.db"}})])
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "agent.pickle").write_bytes(data)
    code = (
        "import pickle, sys; sys.path.insert(0, sys.argv[1]); "
        "agent, api, aio = pickle.load(open('../agent.pickle', 'rb')); agent.act(1); "
        "print(api.config.cleanup_interval, len(api.retrieve_by_time_range('a', 0, 99, 'action')), aio.sync is not api)"
    )
    folder = __file__.rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", code, folder], cwd=tmp_path / "elsewhere", capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["7", "2", "True"]
    assert not (tmp_path / "elsewhere" / "here.db").exists()


def test_a_memory_that_no_other_process_can_open_says_no(tmp_path):
    with (
        AgentMemoryAPI({"ltm_config": {"path": ":memory:"}}) as fleeting,
        Brain(tmp_path / "own.db") as other,
        AgentMemoryAPI(brain=Brain(other.store)) as own,
    ):
        for api in (fleeting, own):
            with pytest.raises(MemoryConfigException, match="cannot be pickled"):
                pickle.dumps(with_memory(Walker(), "a", api))
        assert copy.deepcopy(with_memory(Walker(), "a", fleeting)).act(1) == 1
        assert len(steps(fleeting, "a")) == 1


def test_a_memory_around_an_open_brain_is_opened_again_by_its_address(tmp_path):
    with AgentMemoryAPI(brain=Brain(tmp_path / "own.db")) as api:
        again = pickle.loads(pickle.dumps(api))
        assert again.config.ltm_config.path == str(tmp_path / "own.db")
        assert again is shared_memory(again.config)
