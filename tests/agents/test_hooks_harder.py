"""Hooked agents in harder lives: acts that overlap or outlive each other, odd callables, and agents that resist."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from rmem.agents import AgentMemoryAPI, BaseAgent, MemoryConfig, install_memory_hooks, with_memory
from rmem.errors import InputError


@pytest.fixture
def api(tmp_path):
    with AgentMemoryAPI({"ltm_config": {"path": tmp_path / "agents.db", "durability": "normal"}}) as memory_api:
        yield memory_api


def stored(api, agent_id, kind="action"):
    return api.retrieve_by_time_range(agent_id, 0, 10**9, memory_type=kind)


def results(api, agent_id):
    return [entry["contents"]["result"] for entry in stored(api, agent_id)]


# Acts that overlap


class Planner:
    """Its first act starts a task that acts again when it is told to."""

    agent_id = "planner"

    async def act(self, n, *, finish=True):
        if n == 0:
            self.go = asyncio.Event()
            self.later = asyncio.create_task(self.act_again())
            if not finish:
                await asyncio.Event().wait()
        return n

    async def act_again(self):
        await self.go.wait()
        return await self.act(1)


def test_an_act_that_outlives_a_super_act_is_an_act_of_its_own(api):
    @install_memory_hooks(memory_api=api)
    class Base(Planner):
        pass

    class Derived(Base):
        async def act(self, n):
            return await super().act(n)

    async def play():
        agent = Derived()
        await agent.act(0)
        agent.go.set()
        await agent.later

    asyncio.run(play())
    assert results(api, "planner") == [0, 1]


async def cancelled(act, agent, started):
    """Start an act, and cancel it when it has set an attribute of the agent."""
    task = asyncio.create_task(act)
    while not hasattr(agent, started):
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_act_that_outlives_a_cancelled_act_is_an_act_of_its_own(api):
    async def play():
        agent = with_memory(Planner(), memory_api=api)
        await cancelled(agent.act(0, finish=False), agent, "later")
        agent.go.set()
        await agent.later

    asyncio.run(play())
    assert results(api, "planner") == [1]


@install_memory_hooks
class Counter(BaseAgent):
    def get_state(self):
        state = super().get_state()
        state.extra_data["at"] = self.step_number
        return state


class AsyncCounter(Counter):
    async def act(self, n):
        await asyncio.sleep(0.02 * (3 - n))
        return n


class CountingItself(Counter):
    async def act(self, n):
        self.step_number += 1
        await asyncio.sleep(0.02 * (3 - n))
        return n


@pytest.mark.parametrize("kind", [AsyncCounter, CountingItself])
def test_overlapping_acts_of_a_base_agent_are_different_steps(api, kind):
    agent = kind(agent_id="counter", memory_api=api)

    async def play():
        await asyncio.gather(*(agent.act(n) for n in range(3)))
        await agent.act(3)

    asyncio.run(play())
    assert agent.step_number == 4
    assert sorted(entry["step_number"] for entry in stored(api, "counter")) == [0, 1, 2, 3]
    assert stored(api, "counter")[-1]["contents"]["result"] == 3
    assert max(entry["step_number"] for entry in stored(api, "counter", "state")) == 4


def test_threads_of_one_base_agent_are_different_steps(api):
    agent = Counter(agent_id="counter", memory_api=api)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(agent.act, range(20)))
    assert agent.step_number == 20
    assert sorted(entry["step_number"] for entry in stored(api, "counter")) == list(range(20))


def test_a_cancelled_act_of_a_base_agent_takes_no_step(api):
    class Waiting(Counter):
        async def act(self, name):
            setattr(self, name, asyncio.Event())
            await getattr(self, name).wait()

    async def play():
        agent = Waiting(agent_id="counter", memory_api=api)
        first = asyncio.create_task(agent.act("first"))
        while not hasattr(agent, "first"):
            await asyncio.sleep(0.005)
        await cancelled(agent.act("second"), agent, "second")
        agent.first.set()
        await first
        return agent.step_number

    assert asyncio.run(play()) == 1
    assert [entry["step_number"] for entry in stored(api, "counter")] == [0]


def test_get_state_may_act(api):
    class Curious:
        acts = 0

        def act(self):
            self.acts += 1
            return self.acts

        def get_state(self):
            return {"next": self.act()}

    agent = with_memory(Curious(), "curious", api)
    assert agent.act() == 2  # once by get_state, and then the act itself
    assert agent.acts == 3
    assert results(api, "curious") == [2]


def test_a_coroutine_outside_of_asyncio_is_remembered_too(api, caplog):
    class Agent:
        async def act(self, n):
            return n

    act = with_memory(Agent(), "driven", api).act(5)
    with pytest.raises(StopIteration) as stop:
        act.send(None)
    assert stop.value.value == 5
    assert results(api, "driven") == [5]
    assert caplog.text == ""


# Odd callables


def test_arguments_are_kept_when_the_signature_tells_no_names(api):
    def unnamed(act):
        def wrapper(*args, **options):
            return act(*args, **options)

        return wrapper

    class Agent:
        @unnamed
        def act(self, x, *, y):
            return x + y

    assert with_memory(Agent(), "unnamed", api).act(1, y=2) == 3
    assert stored(api, "unnamed")[0]["contents"]["arguments"] == {"args": [1], "options": {"y": 2}}


class Static:
    @staticmethod
    def act(x, *, y=1): ...


class Classy:
    @classmethod
    def act(cls, x, *, y=1): ...


@pytest.mark.parametrize(
    "make",
    [Static, Classy, lambda: SimpleNamespace(act=lambda x, *, y=1: None)],
    ids=["static method", "class method", "function of the instance"],
)
def test_a_callable_that_does_not_take_the_agent_keeps_its_signature(api, make):
    agent = make()
    before = inspect.signature(agent.act)
    for _ in range(2):  # also when it is hooked twice
        agent = with_memory(agent, "agent", api)
        assert inspect.signature(agent.act) == before
    agent.act("a", y=3)
    assert [entry["contents"]["arguments"] for entry in stored(api, "agent")] == [{"x": "a", "y": 3}]


# Agents that resist


class Slotted:
    __slots__ = ("health",)

    def __init__(self):
        self.health = 1.0

    def act(self, harm):
        self.health -= harm
        return self.health

    def __str__(self):
        return "a slotted agent"

    def __len__(self):
        return 3

    def __call__(self, harm):
        return self.act(harm)

    def __enter__(self):
        return self

    def __exit__(self, *_): ...

    def __lt__(self, other):
        return self.health < other.health


def test_a_stand_in_is_remembered_once_however_often_it_is_hooked(api):
    agent = with_memory(with_memory(Slotted(), "slotted", api), "slotted", api)
    assert agent.act(0.5) == 0.5
    assert len(stored(api, "slotted")) == 1


def test_a_stand_in_can_do_what_the_agent_can(api):
    agent = with_memory(Slotted(), "slotted", api)
    assert (str(agent), len(agent), agent(0.25)) == ("a slotted agent", 3, 0.75)
    with agent as same:
        assert same is agent
    assert agent < with_memory(Slotted(), "other", api)
    assert not agent < agent
    assert not callable(with_memory(namedtuple("Point", "act")(lambda: 1), "point", api))


def test_copies_and_pickles_of_a_stand_in_are_their_own_agents(api):
    agent = with_memory(Slotted(), "slotted", api)
    twin = copy.deepcopy(agent)
    assert (twin.act(0.5), agent.health) == (0.5, 1.0)
    assert len(stored(api, "slotted")) == 1
    away = pickle.loads(pickle.dumps(agent))
    assert (away.act(0.5), agent.health) == (0.5, 1.0)


def test_an_agent_that_refuses_every_question_still_acts(api, caplog):
    class Closed:
        def act(self):
            return "done"

        def __getattribute__(self, name):
            if name != "act":
                raise RuntimeError(name)
            return object.__getattribute__(self, name)

    hooked = install_memory_hooks(memory_api=api)(Closed)
    assert hooked().act() == "done"
    assert "the agent goes on" in caplog.text


def test_a_class_is_no_agent():
    with pytest.raises(InputError, match="install_memory_hooks"):
        with_memory(Slotted)


@pytest.mark.parametrize("wrong", ["memory", MemoryConfig(), {"ltm_config": {}}, AgentMemoryAPI, 0])
def test_what_is_no_memory_is_refused_when_it_is_given(wrong):
    for give in (
        lambda: with_memory(SimpleNamespace(act=print), "agent", wrong),
        lambda: install_memory_hooks(memory_api=wrong),
        lambda: BaseAgent(memory_api=wrong),
    ):
        with pytest.raises(InputError, match="memory_api must be an AgentMemoryAPI"):
            give()


class Embedder:
    """Equal to all of its kind, and so without a hash."""

    def __call__(self, texts):
        return [[float(len(text))] + [1.0] * 7 for text in texts]

    def __eq__(self, other):
        return isinstance(other, Embedder)


@pytest.mark.parametrize("given", [{"privacy": "default"}, {"embedder": Embedder()}])
def test_agents_share_the_memory_of_a_configuration_that_has_no_hash(tmp_path, given, caplog):
    config = MemoryConfig(ltm_config={"path": tmp_path / "agents.db"}, **given)
    agents = [Counter(config, f"agent-{n}") for n in range(2)]
    for agent in agents:
        agent.act("x")
        assert len(agent.memory.retrieve_recent_states(5, "action")) == 1
    assert agents[0].memory._system is agents[1].memory._system
    assert caplog.text == ""


def test_a_store_that_fails_is_tried_once_in_an_act(tmp_path, caplog):
    """Each try may wait for a lock, and the agent with it."""
    api = AgentMemoryAPI({"ltm_config": {"path": tmp_path / "agents.db"}})

    class Saboteur:
        health = 1.0

        def act(self):
            api.close()
            self.health = 0.5

        def get_state(self):
            return {"health": self.health}

    with_memory(Saboteur(), "saboteur", api).act()
    assert [record.message for record in caplog.records] == [
        "the memory of Saboteur failed while storing its state; the agent goes on"
    ]
