"""States and actions as structured models: checked when made and when changed, and whole again after a round trip."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import pytest

from rmem.agents.changes import amount_of, changed_paths, value_at
from rmem.agents.models import ActionData, ActionResult, AgentState
from rmem.errors import InputError, MemoryAPIException, UnknownFieldError

NAN, INF = float("nan"), float("inf")


def a_state(**more):
    return AgentState(**{"agent_id": "agent-123", "step_number": 1234, **more})


def test_a_state_gives_its_values_its_position_and_its_extra_data():
    state = a_state(health=0.85, position_x=10, position_y=20, extra_data={"inventory": {"wood": 5, "stone": 2}})
    assert state.as_dict() == {
        "agent_id": "agent-123",
        "step_number": 1234,
        "health": 0.85,
        "position_x": 10,
        "position_y": 20,
        "position": [10, 20],
        "inventory": {"wood": 5, "stone": 2},
    }


def test_what_was_not_given_is_left_out():
    assert a_state().as_dict() == {"agent_id": "agent-123", "step_number": 1234}
    assert "position" not in a_state(position_x=1).as_dict()
    assert a_state(position_x=1, position_y=2, position_z=0).as_dict()["position"] == [1, 2, 0]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"health": 0, "reward": -1.5, "resource_level": 1e6},
        {"position_x": 1, "position_y": 2},
        {"position_x": 1.5, "position_y": 2, "position_z": 3},
        {"extra_data": {"inventory": {"wood": [1, 2]}, "name": "Ada", "alive": True, "none": None}},
    ],
)
def test_a_state_survives_the_round_trip(more):
    state = a_state(**more)
    again = AgentState.from_dict(json.loads(json.dumps(state.as_dict())))
    assert again == state
    assert again.as_dict() == state.as_dict()


def test_a_position_sets_the_coordinates():
    state = AgentState.from_dict({"agent_id": "a", "step_number": 1, "position": [3, 4]})
    assert (state.position_x, state.position_y, state.position_z) == (3, 4, None)
    with pytest.raises(InputError, match="position must agree with position_x, got 3 and 5"):
        AgentState.from_dict({"agent_id": "a", "step_number": 1, "position": [3, 4], "position_x": 5})
    with pytest.raises(InputError, match="position must be two or three numbers"):
        AgentState.from_dict({"agent_id": "a", "step_number": 1, "position": [3]})
    somewhere = AgentState.from_dict({"agent_id": "a", "step_number": 1, "position": "the forest"})
    assert somewhere.as_dict()["position"] == "the forest"


def test_extra_data_can_grow_but_not_contradict():
    state = a_state(health=0.5)
    state.extra_data["custom_field"] = [1, 2]
    assert state.as_dict()["custom_field"] == [1, 2]
    state.extra_data["health"] = 0.1
    with pytest.raises(InputError, match="extra_data must not hold 'health'") as caught:
        state.as_dict()
    assert caught.value.field == "extra_data"


def test_a_state_and_its_dictionary_do_not_share():
    given = {"inventory": {"wood": 5}}
    state = a_state(extra_data=given)
    given["inventory"]["wood"] = 0
    state.as_dict()["inventory"]["wood"] = 1
    assert state.extra_data == {"inventory": {"wood": 5}}


def test_arrays_become_lists():
    state = a_state(health=np.float32(0.5), extra_data={"seen": np.arange(3)})
    assert json.loads(json.dumps(state.as_dict()))["seen"] == [0, 1, 2]


BAD = [
    ("agent_id", ["", None, 5, "a\nb"]),
    ("step_number", [-1, True, 1.0, "1", None, NAN]),
    *((name, [True, NAN, INF, "1", [1]]) for name in ("health", "reward", "position_x", "position_y", "position_z")),
    ("resource_level", [True, NAN, "much"]),
    ("extra_data", [None, 5, [], {1: 2}, {"a": object()}, {"a": NAN}]),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD for value in values])
def test_a_bad_value_is_refused_when_made_and_when_set(name, value):
    with pytest.raises(InputError, match=name) as caught:
        a_state(**{name: value})
    assert isinstance(caught.value, MemoryAPIException)
    assert caught.value.recoverable
    state = a_state()
    with pytest.raises(InputError, match=name):
        setattr(state, name, value)
    assert state == a_state()


def test_a_field_that_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'health'"):
        a_state(helth=1)
    with pytest.raises(MemoryAPIException, match="did you mean 'reward'"):
        a_state().rewrd = 1
    assert not issubclass(MemoryAPIException, UnknownFieldError)


@dataclass
class Mood(AgentState):
    mood: str = "calm"
    friends: list = field(default_factory=list)


def test_a_state_may_have_fields_of_its_own():
    state = Mood(agent_id="a", step_number=1, mood="glad", friends=["b"])
    assert state.as_dict() == {"agent_id": "a", "step_number": 1, "mood": "glad", "friends": ["b"]}
    assert Mood.from_dict(state.as_dict()) == state
    with pytest.raises(InputError, match=r"^friends"):
        state.friends = [object()]
    with pytest.raises(InputError, match="did you mean 'mood'"):
        Mood(agent_id="a", step_number=1, mod="glad")


@pytest.mark.parametrize("data", [5, None, [], {}, {"agent_id": "a"}, {"step_number": 1}])
def test_a_state_needs_an_agent_and_a_step(data):
    with pytest.raises(InputError):
        AgentState.from_dict(data)


def test_an_action_result_needs_only_its_type():
    result = ActionResult(action_type="trade", params={"target": "agent-456", "item": "wood"}, reward=0.5)
    assert result.as_dict() == {
        "action_type": "trade",
        "params": {"target": "agent-456", "item": "wood"},
        "reward": 0.5,
    }
    assert ActionResult("wait").as_dict() == {"action_type": "wait", "params": {}, "reward": 0.0}
    for bad in ({"action_type": ""}, {"params": 5}, {"reward": True}, {"reward": None}, {"outcome": 5}):
        with pytest.raises(InputError, match=next(iter(bad))):
            ActionResult(**{"action_type": "trade", **bad})


def test_action_data_tells_what_changed():
    data = ActionData(
        action_type="trade",
        action_params={"item": "wood"},
        state_before={"health": 0.9, "inventory": {"wood": 5}},
        state_after={"health": 0.9, "inventory": {"wood": 3, "stone": 1}},
        result=["stone"],
        outcome="success",
        execution_time=0.01,
        step_number=7,
    )
    stored = data.as_dict()
    assert stored["state_difference"] == {
        "inventory.wood": {"before": 5, "after": 3},
        "inventory.stone": {"after": 1},
    }
    assert json.loads(json.dumps(stored)) == stored
    assert ActionData("wait").as_dict() == {"action_type": "wait", "action_params": {}, "reward": 0.0}
    for bad in ({"execution_time": -1}, {"step_number": -1}, {"state_before": 5}, {"result": {1}}, {"error": ""}):
        with pytest.raises(InputError, match=next(iter(bad))):
            ActionData(**{"action_type": "trade", **bad})


def test_changes_are_found_at_any_depth():
    before = {"a": 1, "b": {"c": [1, 2], "d": {"e": "x"}}, "gone": 1, "same": True, "kind": {"x": 1}}
    after = {"a": 1.0, "b": {"c": [1, 3], "d": {"e": "y"}}, "new": None, "same": True, "kind": 5}
    assert changed_paths(before, after) == {
        "b.c": {"before": [1, 2], "after": [1, 3]},
        "b.d.e": {"before": "x", "after": "y"},
        "gone": {"before": 1},
        "new": {"after": None},
        "kind": {"before": {"x": 1}, "after": 5},
    }
    assert changed_paths({"flag": True}, {"flag": 1}) == {"flag": {"before": True, "after": 1}}
    assert changed_paths(before, before) == {}


def test_a_value_is_found_by_its_path():
    state = {"inventory": {"wood": 5, "tools": [{"name": "axe"}]}, "position": [10, 20], "a.b": 1, "none": None}
    assert value_at(state, "inventory.wood") == (True, 5)
    assert value_at(state, "inventory.tools[0].name") == (True, "axe")
    assert value_at(state, "position[1]") == (True, 20)
    assert value_at(state, "a.b") == (True, 1)
    assert value_at(state, "none") == (True, None)
    for path in ("gold", "inventory.gold", "position[2]", "position.x", "inventory[0]", "inventory.wood.x"):
        assert value_at(state, path) == (False, None), path


def test_the_amount_grows_with_the_change():
    def amount(before, after):
        return amount_of(changed_paths(before, after))

    state = {"health": 1.0, "position": [10, 20], "mood": "calm"}
    none = amount(state, state)
    little = amount(state, {**state, "health": 0.99})
    more = amount(state, {**state, "health": 0.5})
    most = amount(state, {**state, "health": 0.5, "mood": "afraid"})
    assert 0 == none < little < more < most
    assert amount(state, {**state, "position": [10, 21]}) < amount(state, {**state, "position": [90, 5]})
    assert amount({"x": -1}, {"x": 1}) == amount({"x": 0}, {"x": 1e300}) == amount({}, {"x": 1}) == 1
    assert amount({"x": 10**400}, {"x": 1}) == amount({"x": 10**400}, {"x": 0.5}) == 1
