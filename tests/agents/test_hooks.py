"""Hooked agents: what is remembered of an act, that the act runs exactly once, and that the agent never notices."""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
import pickle
import traceback
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from rmem.agents import (
    ActionResult,
    AgentMemoryAPI,
    AgentState,
    AsyncAgentMemoryAPI,
    BaseAgent,
    MemoryConfig,
    install_memory_hooks,
    with_memory,
)
from rmem.errors import InputError


@pytest.fixture
def api(tmp_path):
    with AgentMemoryAPI({"ltm_config": {"path": tmp_path / "agents.db", "durability": "normal"}}) as memory_api:
        yield memory_api


def all_of(api, agent_id, kind=None):
    return api.retrieve_by_time_range(agent_id, 0, 10**9, memory_type=kind)


def states(api, agent_id):
    return [(entry["step_number"], entry["contents"]) for entry in all_of(api, agent_id, "state")]


def actions(api, agent_id):
    return [entry["contents"] for entry in all_of(api, agent_id, "action")]


class Walker:
    """A stranger: it knows nothing of memories."""

    def __init__(self):
        self.position, self.health, self.calls = [0, 0], 1.0, 0

    def act(self, direction, *, distance=1):
        self.calls += 1
        if direction == "wall":
            raise RuntimeError("there is a wall")
        self.position[0] += distance
        return {"moved": direction}

    def get_state(self):
        return {"position": self.position, "health": self.health}


@pytest.fixture
def walker(api):
    return with_memory(Walker(), agent_id="walker", memory_api=api)


# What is remembered


def test_states_action_result_and_difference_are_stored_under_agent_and_step(api, walker):
    assert walker.act("east", distance=3) == {"moved": "east"}
    assert states(api, "walker") == [
        (0, {"position": [0, 0], "health": 1.0}),
        (1, {"position": [3, 0], "health": 1.0}),
    ]
    (action,) = all_of(api, "walker", "action")
    assert action["step_number"] == 0
    contents = action["contents"]
    assert contents.pop("execution_time") >= 0
    assert contents == {
        "action_type": "act",
        "action_params": {},
        "arguments": {"direction": "east", "distance": 3},
        "result": {"moved": "east"},
        "reward": 0.0,
        "outcome": "success",
        "step_number": 0,
        "state_before": {"position": [0, 0], "health": 1.0},
        "state_after": {"position": [3, 0], "health": 1.0},
        "state_difference": {"position": {"before": [0, 0], "after": [3, 0]}},
    }


def test_a_state_that_did_not_change_between_acts_is_stored_once(api, walker):
    for _ in range(3):
        walker.act("east")
    assert [(step, state["position"][0]) for step, state in states(api, "walker")] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    walker.health = 0.5  # something happened to it in between
    walker.act("east")
    assert [(step, state["health"]) for step, state in states(api, "walker")][3:] == [(3, 1.0), (3, 0.5), (4, 0.5)]
    assert [entry["step_number"] for entry in all_of(api, "walker", "action")] == [0, 1, 2, 3]


def test_an_action_result_names_the_action(api):
    class Trader:
        def act(self, offer):
            return ActionResult("trade", params={"item": offer, "odd": {1, 2}}, reward=0.5, outcome="refused")

    class Teller:
        def act(self):
            return {"action_type": "tell", "params": {"who": "all"}, "reward": -2}

    odd = {"action_type": 5, "reward": True, "outcome": "a\nb", "params": [1]}

    class Odd:
        def act(self):
            return odd

    with pytest.raises(InputError, match="params"):  # the agent's own mistake stays its own
        with_memory(Trader(), "trader", api).act("wood")
    result = SimpleNamespace(act=lambda: ActionResult("trade", params={"item": "wood"}, reward=0.5, outcome="refused"))
    with_memory(result, "trader", api).act()
    failed, traded = actions(api, "trader")
    assert (failed["outcome"], failed["arguments"]) == ("error", {"offer": "wood"})
    assert (traded["action_type"], traded["action_params"], traded["reward"], traded["outcome"]) == (
        "trade",
        {"item": "wood"},
        0.5,
        "refused",
    )
    with_memory(Teller(), "teller", api).act()
    (told,) = actions(api, "teller")
    assert (told["action_type"], told["action_params"], told["reward"]) == ("tell", {"who": "all"}, -2)
    with_memory(Odd(), "odd", api).act()
    (stored,) = actions(api, "odd")
    assert (stored["action_type"], stored["reward"], stored["outcome"]) == ("act", 0, "success")
    assert stored["result"] == odd


def test_importance_grows_with_how_much_changed(api):
    class Changing:
        def __init__(self):
            self.state = {"health": 1.0, "mood": "calm"}

        def get_state(self):
            return self.state

        def act(self, **changes):
            self.state.update(changes)
            return ActionResult("change", reward=changes.get("reward", 0.0))

    agent = with_memory(Changing(), "changing", api)
    for changes in ({}, {"health": 0.99}, {"health": 0.5}, {"health": 0.1, "mood": "afraid"}):
        agent.act(**changes)
    importances = [entry["metadata"]["importance_score"] for entry in all_of(api, "changing", "action")]
    assert importances == sorted(importances)
    assert len(set(importances)) == 4
    assert 0 < importances[0] < importances[-1] <= 1
    agent.act(reward=1.0)
    agent.act(reward=1.0)  # the same state as before, the same reward
    unchanged, rewarded = importances[0], all_of(api, "changing", "action")[-1]["metadata"]["importance_score"]
    assert rewarded > unchanged


def test_a_failed_act_is_remembered_as_important(api, walker):
    walker.act("east")
    with pytest.raises(RuntimeError):
        walker.act("wall")
    went, failed = all_of(api, "walker", "action")
    assert failed["contents"]["outcome"] == "error"
    assert failed["contents"]["error"] == "RuntimeError: there is a wall"
    assert failed["contents"]["state_difference"] == {}
    assert failed["metadata"]["importance_score"] > 0.7 > 0.3 < went["metadata"]["importance_score"]


def test_what_was_given_is_remembered_as_it_was(api):
    class Eater:
        def act(self, food):
            food.clear()
            return food

    basket = ["apple"]
    with_memory(Eater(), "eater", api).act(basket)
    (eaten,) = actions(api, "eater")
    assert (eaten["arguments"], eaten["result"]) == ({"food": ["apple"]}, [])


def test_anything_can_be_given_and_returned(api):
    @dataclass
    class Thing:
        size: float = float("nan")
        parts: set = field(default_factory=lambda: {2, 1})

    loop = []
    loop.append(loop)
    given = [
        *(np.arange(3), np.zeros((600, 600)), Thing(), loop, b"bytes", object(), Thing, {1: {2: 3}}, 10**400),
        *("nul \x00 and \ud800", iter([1]), ValueError("x")),
    ]

    class Echo:
        def act(self, *given):
            return given

    assert with_memory(Echo(), "echo", api).act(*given) == tuple(given)
    (stored,) = actions(api, "echo")
    array, image, thing, *_ = stored["arguments"]["given"]
    assert array == [0, 1, 2]
    assert image == "<array float64 (600, 600)>"
    assert thing == {"size": None, "parts": [1, 2]}


# Exactly once, and untouched


def test_the_result_is_the_very_same_object(api):
    made = []

    class Maker:
        def act(self):
            made.append(object())
            return made[-1]

    result = with_memory(Maker(), "maker", api).act()
    assert len(made) == 1
    assert result is made[0]


def test_an_exception_passes_through_unchanged_and_the_act_ran_once(api, walker):
    with pytest.raises(RuntimeError, match="there is a wall") as caught:
        walker.act("wall")
    assert walker.calls == 1
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == 'raise RuntimeError("there is a wall")'


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, StopIteration, GeneratorExit])
def test_unusual_exceptions_pass_through_too(api, error):
    calls = []

    class Agent:
        def act(self):
            calls.append(1)
            raise error("now")

    with pytest.raises(error):
        with_memory(Agent(), "a", api).act()
    assert calls == [1]


@pytest.mark.parametrize("result", [None, False, 0, "", [], ActionResult("x"), (1, 2), NotImplemented])
def test_results_of_any_kind_pass_through(api, result):
    calls = []
    agent = SimpleNamespace(act=lambda: calls.append(1) or result)
    assert with_memory(agent, "a", api).act() is result
    assert calls == [1]


def test_wrong_arguments_are_the_agents_own_error(walker):
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'direction'"):
        walker.act()


# A memory that fails


def closed(tmp_path):
    api = AgentMemoryAPI({"ltm_config": {"path": tmp_path / "closed.db"}})
    api.close()
    return api


def test_a_closed_memory_does_not_disturb_the_agent(tmp_path, caplog):
    walker = with_memory(Walker(), "walker", closed(tmp_path))
    with caplog.at_level(logging.WARNING, logger="rmem.agents"):
        assert walker.act("east") == {"moved": "east"}
        with pytest.raises(RuntimeError, match="there is a wall"):
            walker.act("wall")
    assert walker.calls == 2
    assert "the agent goes on" in caplog.text
    assert "Walker" in caplog.text


def test_a_memory_that_breaks_during_the_act_does_not_disturb_the_agent(tmp_path, caplog):
    api = AgentMemoryAPI({"ltm_config": {"path": tmp_path / "a.db"}})

    class Saboteur(Walker):
        def act(self, direction):
            api.close()
            return super().act(direction)

    saboteur = with_memory(Saboteur(), "saboteur", api)
    assert saboteur.act("east") == {"moved": "east"}
    assert saboteur.calls == 1
    assert "the agent goes on" in caplog.text


def test_a_default_memory_that_cannot_be_opened_does_not_disturb_the_agent(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "file"))

    @install_memory_hooks
    class Agent(BaseAgent):
        def act(self, observation):
            return observation

    agent = Agent()
    assert agent.act("x") == "x"
    assert agent.step_number == 1
    assert "the agent goes on" in caplog.text


def test_get_state_that_raises_costs_the_state_only(api, caplog):
    class Shy(Walker):
        def get_state(self):
            raise AttributeError("some_internal_state")

    assert with_memory(Shy(), "shy", api).act("east") == {"moved": "east"}
    assert states(api, "shy") == []
    (action,) = actions(api, "shy")
    assert action["result"] == {"moved": "east"}
    assert "state_difference" not in action
    assert "some_internal_state" in caplog.text


def test_an_agent_whose_every_attribute_raises_still_acts(api, caplog):
    class Touchy:
        def act(self):
            return "done"

        @property
        def agent_id(self):
            raise ZeroDivisionError

        step_number = get_state = memory_api = config = agent_id

    class Broken(Exception):
        def __str__(self):
            raise ZeroDivisionError

    class Failing:
        def act(self):
            raise Broken

    assert with_memory(Touchy(), "touchy", api).act() == "done"
    assert install_memory_hooks(Touchy)().act() == "done"
    with pytest.raises(Broken):
        with_memory(Failing(), "failing", api).act()
    assert "ZeroDivisionError" in caplog.text
    assert [len(actions(api, name)) for name in ("touchy", "failing")] == [1, 1]


@pytest.mark.parametrize("odd", [5, "state", [1], None, {}])
def test_odd_states_cost_the_state_only(api, odd):
    class Odd(Walker):
        def get_state(self):
            return odd

    with_memory(Odd(), "odd", api).act("east")
    assert states(api, "odd") == []
    assert len(actions(api, "odd")) == 1


def test_agents_without_get_state_are_remembered_by_their_actions(api):
    agent = with_memory(SimpleNamespace(act=lambda question: "sunny"), "plain", api)
    assert agent.act("the weather?") == "sunny"
    assert all_of(api, "plain")[0]["contents"]["arguments"] == {"question": "the weather?"}
    assert len(all_of(api, "plain")) == 1


def test_hooks_can_be_switched_off(tmp_path):
    path = tmp_path / "off.db"
    with AgentMemoryAPI(MemoryConfig(enable_memory_hooks=False, ltm_config={"path": path})) as api:
        walker = with_memory(Walker(), "walker", api)
        assert walker.act("east") == {"moved": "east"}
        assert all_of(api, "walker") == []


# Classes


def test_a_decorated_class_is_the_same_class(api):
    @install_memory_hooks(memory_api=api)
    class Agent(Walker):
        """Doc."""

    assert inspect.isclass(Agent)
    assert Agent.__name__ == "Agent"
    assert list(inspect.signature(Agent().act).parameters) == ["direction", "distance"]
    one, two = Agent(), Agent()
    one.act("east")
    two.act("east")
    assert Walker().act("east")  # the base stays as it was
    agents = api._system.agents()
    assert len(agents) == 2  # each has its own memories
    assert all(name.startswith("Agent-") for name in agents)
    assert [len(actions(api, name)) for name in agents] == [1, 1]


def test_base_agent_counts_its_acts(api):
    @install_memory_hooks
    class Agent(BaseAgent):
        def act(self, observation):
            return self.process(observation)

    agent = Agent(agent_id="counter", memory_api=api)
    for n in range(3):
        assert agent.act(n).action_type == "observe"
    assert agent.step_number == 3
    assert [entry["step_number"] for entry in all_of(api, "counter", "action")] == [0, 1, 2]
    assert [entry["action_params"] for entry in actions(api, "counter")] == [{"observation": n} for n in range(3)]
    assert agent.memory.retrieve_recent_states(count=1, memory_type="action")[0]["step_number"] == 2


def test_an_agent_that_counts_for_itself_is_believed(api):
    @install_memory_hooks(memory_api=api)
    class Agent(BaseAgent):
        def act(self, observation):
            self.step_number += 10

        def get_state(self):
            state = super().get_state()
            state.extra_data["seen"] = {1, 2}
            return state

    agent = Agent(agent_id="own")
    agent.act("x")
    agent.act("y")
    assert agent.step_number == 20
    assert states(api, "own") == [(0, {"seen": [1, 2]}), (10, {"seen": [1, 2]}), (20, {"seen": [1, 2]})]
    assert [entry["step_number"] for entry in all_of(api, "own", "action")] == [0, 10]


def test_a_state_that_tells_its_step_is_believed(api):
    class Telling:
        tick = np.int64(100)

        def act(self):
            self.tick += 5

        def get_state(self):
            return AgentState(agent_id="somebody", step_number=self.tick, health=1)

    with_memory(Telling(), "telling", api).act()
    assert states(api, "telling") == [(100, {"health": 1}), (105, {"health": 1})]
    assert [entry["step_number"] for entry in all_of(api, "telling", "action")] == [100]


def test_acts_at_the_same_time_are_different_steps(api):
    walker = with_memory(Walker(), "walker", api)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: walker.act("east"), range(20)))
    assert walker.calls == 20
    assert sorted(entry["step_number"] for entry in all_of(api, "walker", "action")) == list(range(20))


def test_steps_go_on_after_a_restart(tmp_path):
    for life in range(2):
        with AgentMemoryAPI({"ltm_config": {"path": tmp_path / "a.db"}}) as api:
            walker = with_memory(Walker(), "walker", api)
            walker.act("east")
            walker.act("east")
            steps = [entry["step_number"] for entry in all_of(api, "walker", "action")]
            assert steps == [0, 1, 3, 4][: 2 * life + 2]


def test_subclasses_are_hooked_and_super_is_part_of_the_act(api):
    @install_memory_hooks(memory_api=api)
    class Base(BaseAgent):
        def act(self, observation):
            return f"base {observation}"

    class Calling(Base):
        def act(self, observation):
            return f"calling {super().act(observation)}"

    class Alone(Base):
        def act(self, observation):
            return f"alone {observation}"

    class Inheriting(Base):
        pass

    class Mixin:
        def act(self, observation):
            return f"mixin {super().act(observation)}"

    class Mixed(Mixin, Base):
        pass

    for kind, expected in (
        (Calling, "calling base x"),
        (Alone, "alone x"),
        (Inheriting, "base x"),
        (Mixed, "mixin base x"),
    ):
        name = kind.__name__
        assert kind(agent_id=name).act("x") == expected
        assert [entry["result"] for entry in actions(api, name)] == [expected]


def test_hooking_twice_remembers_once(api):
    @install_memory_hooks(memory_api=api)
    @install_memory_hooks(memory_api=api)
    class Agent(BaseAgent):
        def act(self, observation):
            return observation

    @install_memory_hooks(memory_api=api)
    class Derived(Agent):
        def act(self, observation):
            return super().act(observation)

    agent = with_memory(with_memory(Derived(agent_id="inner"), "twice", api), "twice", api)
    agent.act("x")
    assert len(actions(api, "twice")) == 1
    assert all_of(api, "inner") == []


def test_a_class_may_remember_elsewhere_than_its_base(api, tmp_path):
    with AgentMemoryAPI({"ltm_config": {"path": tmp_path / "elsewhere.db"}}) as elsewhere:

        @install_memory_hooks(memory_api=api)
        class Base(BaseAgent):
            pass

        @install_memory_hooks(memory_api=elsewhere)
        class Derived(Base):
            pass

        class Below(Derived):
            def act(self, observation):
                return super().act(observation)

        for n, kind in enumerate((Base, Derived, Below)):
            kind(agent_id=f"agent-{n}").act("x")
        assert [len(actions(api, f"agent-{n}")) for n in range(3)] == [1, 0, 0]
        assert [len(actions(elsewhere, f"agent-{n}")) for n in range(3)] == [0, 1, 1]
        assert len(Below(agent_id="agent-2").memory.retrieve_recent_states(count=9, memory_type="action")) == 1
        Below(agent_id="own", memory_api=api).act("x")
        with_memory(Below(agent_id="given"), memory_api=api).act("x")
        assert [len(actions(api, name)) for name in ("own", "given")] == [1, 1]


def test_an_agent_that_acts_through_another_is_two_agents(api):
    class Boss:
        def __init__(self, worker):
            self.worker = worker

        def act(self, task):
            return self.worker.act(task)

    boss = with_memory(Boss(with_memory(Walker(), "worker", api)), "boss", api)
    boss.act("east")
    assert len(actions(api, "worker")) == len(actions(api, "boss")) == 1


def test_acts_that_the_agent_starts_itself_are_remembered(api):
    class Runner(Walker):
        def run(self):
            return [self.act("east") for _ in range(3)]

    with_memory(Runner(), "runner", api).run()
    assert len(actions(api, "runner")) == 3


def test_a_class_with_its_own_init_subclass(api):
    seen = []

    @install_memory_hooks(memory_api=api)
    class Base(BaseAgent):
        def __init_subclass__(cls, *, label, **options):
            super().__init_subclass__(**options)
            seen.append((cls.__name__, label))

    class Derived(Base, label="d"):
        def act(self, observation):
            return observation

    assert seen == [("Derived", "d")]
    Derived(agent_id="d").act(1)
    assert len(actions(api, "d")) == 1


def test_abstract_dataclass_and_slotted_classes(api):
    @install_memory_hooks(memory_api=api)
    class Abstract(ABC):
        @abstractmethod
        def act(self): ...

    with pytest.raises(TypeError, match="abstract"):
        Abstract()

    @dataclass(slots=True)
    @install_memory_hooks(memory_api=api)
    class Slotted:
        agent_id: str
        health: float = 1.0

        def act(self, harm):
            self.health -= harm
            return self.health

        def get_state(self):
            return {"health": self.health}

    @dataclass(slots=True)
    class Below(Slotted):
        def act(self, harm):
            return harm

    assert Slotted("slotted").act(0.25) == 0.75
    assert [state for _, state in states(api, "slotted")] == [{"health": 1.0}, {"health": 0.75}]
    Below("below").act(0.5)
    assert len(actions(api, "below")) == 1

    @install_memory_hooks(memory_api=api)
    class Nameless:
        __slots__ = ()

        def act(self):
            return 1

    assert Nameless().act() == 1
    assert len(actions(api, "Nameless")) == 1


def test_class_and_static_methods(api):
    @install_memory_hooks(memory_api=api)
    class Agent:
        agent_id = "classy"

        @classmethod
        def act(cls, x):
            return cls.__name__, x

        def get_state(self):
            return {}

    assert Agent.act(1) == Agent().act(1) == ("Agent", 1)
    assert len(actions(api, "classy")) == 2

    class Static:
        @staticmethod
        def act(x):
            return x

    with pytest.raises(InputError, match="must have a method act"):
        install_memory_hooks(Static)
    assert with_memory(Static(), "static", api).act(5) == 5
    assert actions(api, "static")[0]["arguments"] == {"x": 5}


@pytest.mark.parametrize("wrong", [5, "text", object(), lambda: 1])
def test_only_classes_and_agents_can_be_hooked(wrong):
    with pytest.raises(InputError, match="agent_class must be a class"):
        install_memory_hooks(wrong)
    with pytest.raises(InputError, match="agent must be an object with a method act"):
        with_memory(wrong)
    for agent_id in ("", 5, "a\nb"):
        with pytest.raises(InputError, match="agent_id must"):
            with_memory(Walker(), agent_id)
    with pytest.raises(InputError, match="must have a method act"):

        @install_memory_hooks
        class Idle:
            pass


# One instance


def test_with_memory_returns_the_same_agent(api):
    walker = Walker()
    assert with_memory(walker, "walker", api) is walker
    assert isinstance(walker, Walker)


def test_an_agent_that_cannot_hold_its_hook_is_stood_in_for(api):
    class Slotted:
        __slots__ = ("health",)

        def __init__(self):
            self.health = 1.0

        def act(self, harm):
            self.health -= harm
            return self.health

        def get_state(self):
            return {"health": self.health}

    original = Slotted()
    agent = with_memory(original, "slotted", api)
    assert agent.act(0.5) == 0.5
    assert isinstance(agent, Slotted)
    assert agent == original
    agent.health = 2.0
    assert original.health == 2.0
    assert agent.act(1) == 1.0
    assert [state["health"] for _, state in states(api, "slotted")] == [1.0, 0.5, 2.0, 1.0]
    with pytest.raises(AttributeError):
        _ = agent.nothing


def test_copies_and_pickles_of_a_hooked_agent_are_their_own_agents(api):
    walker = with_memory(Walker(), "walker", api)
    twin = copy.deepcopy(walker)
    twin.act("east")
    assert (twin.position, walker.position) == ([1, 0], [0, 0])
    away = pickle.loads(pickle.dumps(walker))
    away.act("east")
    assert (away.position, walker.position) == ([1, 0], [0, 0])


def test_agent_ids_may_be_numbers(api):
    agent = Walker()
    agent.agent_id = 7
    with_memory(agent, memory_api=api).act("east")
    assert len(actions(api, "7")) == 1


# Async and generators


class AsyncWalker(Walker):
    async def act(self, direction):
        await asyncio.sleep(0)
        return super().act(direction)

    async def get_state(self):
        await asyncio.sleep(0)
        return super().get_state()


def test_async_agents_are_remembered_the_same(api):
    walker = with_memory(AsyncWalker(), "walker", api)
    assert inspect.iscoroutinefunction(walker.act)
    assert asyncio.run(walker.act("east")) == {"moved": "east"}
    with pytest.raises(RuntimeError, match="there is a wall"):
        asyncio.run(walker.act("wall"))
    assert walker.calls == 2
    assert [state["position"] for _, state in states(api, "walker")] == [[0, 0], [1, 0], [1, 0]]
    assert [entry["outcome"] for entry in actions(api, "walker")] == ["success", "error"]


def test_async_classes_super_and_many_at_once(api):
    @install_memory_hooks(memory_api=api)
    class Base(BaseAgent):
        async def act(self, observation):
            await asyncio.sleep(0.01)
            return observation

    class Derived(Base):
        async def act(self, observation):
            return await super().act(observation)

    async def play():
        agents = [Derived(agent_id=f"agent-{n}") for n in range(5)]
        return await asyncio.gather(*(agent.act(n) for n, agent in enumerate(agents)))

    assert asyncio.run(play()) == list(range(5))
    assert [len(actions(api, f"agent-{n}")) for n in range(5)] == [1] * 5


def test_an_act_of_a_task_that_outlives_the_act_is_an_act_of_its_own(api):
    class Planner:
        later = None

        async def act(self, n):
            if n == 0:
                self.later = asyncio.create_task(self.after_a_while())
            return n

        async def after_a_while(self):
            await asyncio.sleep(0.05)
            return await self.act(1)

    async def play():
        planner = with_memory(Planner(), "planner", api)
        await planner.act(0)
        assert await planner.later == 1

    asyncio.run(play())
    assert [entry["result"] for entry in actions(api, "planner")] == [0, 1]


def test_a_cancelled_act_is_cancelled(api):
    class Slow:
        async def act(self):
            await asyncio.sleep(10)

    async def play():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(with_memory(Slow(), "slow", api).act(), 0.5)

    asyncio.run(play())


def test_an_async_memory_api_will_do(tmp_path):
    async def play():
        async with AsyncAgentMemoryAPI({"ltm_config": {"path": tmp_path / "a.db"}}) as api:
            await with_memory(AsyncWalker(), "walker", api).act("east")
            return await api.retrieve_by_time_range("walker", 0, 10)

    assert len(asyncio.run(play())) == 3


def test_a_failing_memory_does_not_disturb_an_async_agent(tmp_path, caplog):
    walker = with_memory(AsyncWalker(), "walker", closed(tmp_path))
    assert asyncio.run(walker.act("east")) == {"moved": "east"}
    assert walker.calls == 1
    assert "the agent goes on" in caplog.text


def test_an_async_get_state_needs_an_async_act(api, caplog):
    class Half(Walker):
        async def get_state(self):
            return {}

    assert with_memory(Half(), "half", api).act("east") == {"moved": "east"}
    assert "asynchronous get_state" in caplog.text


class Streamer:
    def __init__(self):
        self.said, self.closed = 0, False

    def act(self, n):
        received = []
        try:
            for i in range(n):
                self.said += 1
                try:
                    received.append((yield i))
                except KeyError as error:
                    received.append(error)
        finally:
            self.closed = True
        return received

    def get_state(self):
        return {"said": self.said}


def test_a_generator_is_remembered_when_it_ends(api):
    streamer = with_memory(Streamer(), "streamer", api)
    assert inspect.isgeneratorfunction(streamer.act)
    stream = streamer.act(3)
    assert all_of(api, "streamer") == []
    assert (next(stream), stream.send("a"), stream.throw(KeyError("b"))) == (0, 1, 2)
    with pytest.raises(StopIteration) as stop:
        stream.send("c")
    assert stop.value.value[::2] == ["a", "c"]
    assert streamer.said == 3
    (action,) = actions(api, "streamer")
    assert action["state_difference"] == {"said": {"before": 0, "after": 3}}
    assert action["result"][0] == "a"


def test_a_generator_that_is_closed_early_or_fails(api):
    streamer = with_memory(Streamer(), "streamer", api)
    stream = streamer.act(3)
    next(stream)
    stream.close()
    assert streamer.closed
    stream = streamer.act(3)
    next(stream)
    with pytest.raises(ZeroDivisionError):
        stream.throw(ZeroDivisionError())
    assert [entry["outcome"] for entry in actions(api, "streamer")] == ["stopped", "error"]


def test_acts_between_the_items_of_a_generator_are_their_own(api):
    class Two(Streamer):
        def act(self, n):
            return (yield from super().act(n))

    two = with_memory(Two(), "two", api)
    first, second = two.act(2), two.act(2)
    assert [next(first), next(second), next(first), next(second)] == [0, 0, 1, 1]
    assert (list(first), list(second)) == ([], [])
    assert len(actions(api, "two")) == 2


def test_async_generators(api):
    class Stream(Streamer):
        async def act(self, n):
            try:
                for i in range(n):
                    self.said += 1
                    await asyncio.sleep(0)
                    got = yield i
                    if got == "fail":
                        raise RuntimeError("asked to")
            finally:
                self.closed = True

    stream = with_memory(Stream(), "stream", api)
    assert inspect.isasyncgenfunction(stream.act)

    async def play():
        assert [item async for item in stream.act(3)] == [0, 1, 2]
        early = stream.act(3)
        assert await anext(early) == 0
        await early.aclose()
        failing = stream.act(3)
        await anext(failing)
        with pytest.raises(RuntimeError, match="asked to"):
            await failing.asend("fail")
        thrown = stream.act(3)
        await anext(thrown)
        with pytest.raises(KeyError):
            await thrown.athrow(KeyError("x"))

    asyncio.run(play())
    assert [entry["outcome"] for entry in actions(api, "stream")] == ["success", "stopped", "error", "error"]


# The shared default memory


def test_agents_without_a_memory_share_the_default_one():
    @install_memory_hooks
    class Agent(BaseAgent):
        def act(self, observation):
            return observation

    one, two = Agent(agent_id="one"), Agent(agent_id="two")
    one.act("x")
    two.act("y")
    assert one.memory._system is two.memory._system
    with AgentMemoryAPI() as api:  # it is the default file
        assert [len(actions(api, name)) for name in ("one", "two")] == [1, 1]


def test_the_configuration_of_an_agent_chooses_its_memory(tmp_path):
    @install_memory_hooks
    class Agent(BaseAgent):
        pass

    path = tmp_path / "own.db"
    settings = MemoryConfig(ltm_config={"path": path})
    for n, config in enumerate(
        (settings, {"memory_config": {"ltm_config": {"path": path}}}, SimpleNamespace(memory_config=settings))
    ):
        agent = Agent(config, f"agent-{n}")
        agent.act("x")
        assert agent.config is config
    with AgentMemoryAPI(settings) as api:
        assert [len(actions(api, f"agent-{n}")) for n in range(3)] == [1, 1, 1]


def test_a_base_agent_alone():
    agent = BaseAgent()
    assert agent.agent_id.startswith("agent-")
    assert agent.agent_id != BaseAgent().agent_id
    assert isinstance(agent.get_state(), AgentState)
    assert agent.act({"see": np.zeros(2)}).params == {"observation": {"see": [0, 0]}}
    with pytest.raises(InputError, match="agent_id"):
        BaseAgent(agent_id="")
