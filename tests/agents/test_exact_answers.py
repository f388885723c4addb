"""Answers where values are nearly the same or oddly named: True beside 1, keys with dots and brackets, states stored
out of order, importances on the edge of a bar, and errors that name what the caller wrote."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from datetime import time as dt_time
from enum import Enum

import numpy as np
import pytest

from rmem.agents import MemoryRetrievalException, MemoryStoreException, RedisIMConfig, RedisSTMConfig
from rmem.filters import Filter
from rmem.models import Memory, Metadata
from rmem.testing.redis import RedisServer


def steps(found):
    return [entry["step_number"] for entry in found]


def stored(api, *states):
    space = api.get_memory_space("a")
    space.store_many("state", states, first_step=0)
    return space


# Attributes that are lists


def test_true_inside_a_list_is_not_one(api):
    space = stored(api, {"bag": [0, True]}, {"bag": [0, 1]}, {"bag": [0, 1.0]}, {"bag": [0, {"n": 1}]})
    assert steps(space.retrieve_by_attributes({"bag": [0, True]})) == [0]
    assert steps(space.retrieve_by_attributes({"bag": [0, 1]})) == [1, 2]
    assert steps(space.retrieve_by_attributes({"bag": [0, {"n": True}]})) == []


@pytest.mark.parametrize("key", ["a.b", "a[0]", "[", "x]", "k=v", "{0}"])
def test_lists_are_found_under_keys_of_any_spelling(api, key):
    space = stored(api, {"bag": {key: ["rope"]}, key: []}, {"bag": {key: ["lamp"]}})
    assert steps(space.retrieve_by_attributes({"bag": {key: ["rope"]}})) == [0]
    assert steps(space.retrieve_by_attributes({key: []})) == [0]


def test_lists_inside_the_members_of_a_list_are_found_as_single_values_are(api):
    space = stored(api, {"items": [{"tags": ["old"]}, {"tags": ["dry", "long"]}]}, {"items": [{"tags": ["dry"]}]})
    assert steps(space.retrieve_by_attributes({"items.tags": "dry"})) == [0, 1]
    assert steps(space.retrieve_by_attributes({"items.tags": ["dry", "long"]})) == [0]
    assert steps(space.retrieve_by_attributes({"items": {"tags": ["dry"]}})) == [1]


# How a state changed


def test_a_value_that_becomes_another_type_has_changed(api):
    space = stored(
        api, {"door": 1, "lamps": [1, 0]}, {"door": True, "lamps": [True, 0]}, {"door": 1.0, "lamps": [1, 0]}
    )
    assert [one["changed"] for one in space.attribute_history("door")] == [True, True, True]
    assert [one["changed"] for one in space.attribute_history("lamps")] == [True, True, True]
    assert space.changes_between(0, 1) == {
        "door": {"before": 1, "after": True},
        "lamps": {"before": [1, 0], "after": [True, 0]},
    }
    assert space.changes_between(0, 2) == {}


def test_the_history_of_attributes_with_odd_keys_and_inside_lists(api):
    space = stored(api, {"bag": {"a.b": {"x[y]": [{"n": 7}]}}, "grid": [[1, 2], [3, 4]], "a]": 5})
    for path, value in (("bag.a.b.x[y][0].n", 7), ("grid[1][0]", 3), ("grid[1]", [3, 4]), ("a]", 5)):
        assert [one["value"] for one in space.attribute_history(path)] == [value], path
    for path in (".", "[]", "grid[2]", "grid[1][0].n", "bag..a.b", "bag[a.b]", "grid.n", "grid[", "bag."):
        assert space.attribute_history(path) == [], path


# Similar states


def test_of_equal_states_that_were_stored_out_of_order_the_one_with_the_last_step_comes_first(new_api):
    api = new_api(cleanup_interval=10**9)
    for step in (5, 9, 1, 7, 3):
        api.store_agent_state("a", {"health": 0.5}, step)
    api.store_agent_state("a", {"health": 0.6}, 99)
    assert steps(api.retrieve_similar_states("a", {"health": 0.5}, k=3)) == [9, 7, 5]
    assert steps(api.retrieve_similar_states("a", {"health": 0.5}, k=9)) == [9, 7, 5, 3, 1, 99]


def test_what_was_forgotten_no_longer_tells_how_much_numbers_differ(api):
    space = stored(api, {"x": 0}, {"x": 1})
    assert space.retrieve_similar_states({"x": 1})[1].score == pytest.approx(1 / 3)
    space.forget(space.retrieve_by_time_range(1, 1)[0]["memory_id"])
    space.store("state", {"x": 1000}, 2)
    assert space.retrieve_similar_states({"x": 1000})[1].score == pytest.approx(1 / 3)


def test_a_filter_cannot_open_another_agents_memory(api):
    api.store_agent_state("b", {"x": 1}, 1)
    space = stored(api, {"x": 1})
    for where in (Filter(agent="b"), {"agent": "b"}, Filter(agent=("a", "b"))):
        with pytest.raises(MemoryRetrievalException, match="agent_id must be 'a'"):
            space.retrieve_similar_states({"x": 1}, where=where)
    for where in (Filter(agent="a"), {"agent": "a"}, {"max_step": 5}):
        assert steps(space.retrieve_similar_states({"x": 1}, where=where)) == [0]
        assert space.retrieve_similar_states({"x": 1}, memory_type="action", where=where) == []


# Statistics


def test_an_importance_on_the_edge_of_two_bars_counts_in_the_upper_one(api):
    for tenth in range(11):
        api.store_agent_state("a", {"x": 1}, tenth, priority=tenth / 10)
    bars = api.get_memory_statistics("a")["importance_histogram"]
    assert list(bars.values()) == [1] * 9 + [2]


# What is handed in


def test_members_of_enumerations_are_plain_values(new_api):
    class Mood(str, Enum):  # noqa: UP042 (the str() of a StrEnum is its value)
        CALM = "calm"

    class Rank(int, Enum):
        SECOND = 2

    api = new_api()
    api.store_agent_state("a", {"mood": Mood.CALM, Mood.CALM: np.str_("yes"), "rank": Rank.SECOND}, 1)
    memory = api._system.brain.store.select()[0]
    assert memory.text == "mood: calm; calm: yes; rank: 2"
    assert steps(api.retrieve_by_attributes("a", {"mood": Mood.CALM, "rank": 2})) == [1]


def test_a_date_of_numpy_is_a_date_whatever_its_precision(api):
    day = "2026-01-02T03:04:05"
    for step, unit in enumerate(("s", "us", "ns")):
        api.store_agent_state("a", {"when": np.datetime64(day, unit), "all": np.array([day], f"M8[{unit}]")}, step)
    assert steps(api.retrieve_by_attributes("a", {"when": day, "all": [day]})) == [0, 1, 2]


# Errors name what the caller wrote

BAD = {
    "start_step must be a whole number ≥ 0": lambda space: space.query(start_step=-1),
    "start_step must not be after end_step: 5 > 2": lambda space: space.query(start_step=5, end_step=2),
    "start_step must not be after end_step: 6 > 2": lambda space: space.attribute_history("x", 6, 2),
    "end_step must be a whole number": lambda space: space.attribute_history("x", 0, "2"),
    "position[1] must be a number": lambda space: space.retrieve_by_location([0, "x"], radius=1),
    "position must be two or three numbers": lambda space: space.query(position=[0], radius=1),
    "radius needs a position": lambda space: space.retrieve_by_location(radius=1, place="forest"),
    "text must not be empty": lambda space: space.recall(" "),
    "text must be a text": lambda space: space.query(5),
    "content_query must not be empty": lambda space: space.search_by_content({}),
    "content_query must be a text": lambda space: space.search_by_content(5),
}


@pytest.mark.parametrize("message", BAD)
def test_a_refused_question_is_told_in_the_callers_words(api, message):
    with pytest.raises(MemoryRetrievalException, match=f"^{re.escape(message)}") as caught:
        BAD[message](stored(api, {"x": 1}))
    assert caught.value.field.split("[")[0] == message.split()[0].split("[")[0]


def test_a_step_beyond_what_can_be_kept_is_told_the_bounds(api):
    with pytest.raises(MemoryStoreException, match=r"step_number must be a whole number from 0 to \d+, got \d+"):
        api.store_agent_state("a", {"x": 1}, 2**63)


# Far away, and the last instant of a day


@pytest.mark.filterwarnings("error")
def test_places_farther_than_squares_reach_are_ranked_too(api):
    space = stored(api, {"position": [1e200, 0]}, {"position": [3, 4]}, {"position": [1e180, 1e180, 7]}, {"x": 1})
    found = space.retrieve_by_location([0, 0])
    assert steps(found) == [1, 2, 0]
    assert [entry.score for entry in found] == pytest.approx([5, 2**0.5 * 1e180, 1e200])
    assert steps(space.retrieve_by_location([0, 0], radius=5)) == [1]
    assert steps(space.query(position=[0, 0], radius=1e190)) == [1, 2]


def test_the_last_instant_of_a_day_belongs_to_it(api):
    midnight = datetime.combine(date.today(), dt_time.min)
    for step, moment in enumerate((midnight - timedelta(microseconds=2), midnight)):
        text = f"step {step}"
        memory = Memory("", "a", step, moment.timestamp(), {"n": step}, Metadata(memory_type="state"), text=text)
        api._system.store(memory.agent_id, [memory])
    space = api.get_memory_space("a")
    yesterday = date.today() - timedelta(days=1)
    for until in ("yesterday", yesterday, yesterday.isoformat()):
        assert steps(space.retrieve_by_time(until=until)) == [0]
    assert steps(space.retrieve_by_time(since="today")) == [1]


# Tiers in different stores


def test_memories_of_one_step_come_in_their_order_also_where_tiers_are_stores_of_their_own(new_api):
    with RedisServer() as server:
        where = {"host": "127.0.0.1", "port": server.port, "memory_limit": 2}
        api = new_api(
            stm_config=RedisSTMConfig(**where), im_config=RedisIMConfig(**where), cleanup_interval=10**9, cache_ttl=0
        )
        for n, priority in enumerate([0.9, 0.1, 0.5, 0.2, 0.8, 0.6]):
            api.store_agent_state("a", {"n": n, "kind": "x"}, 7, priority)
        api.force_memory_maintenance()
        space = api.get_memory_space("a")
        forth, back = list(range(6)), [5, 4, 3, 2, 1, 0]
        for found, order in (
            (space.retrieve_by_time_range(7, 7), forth),
            (space.retrieve_by_attributes({"kind": "x"}), forth),
            (space.retrieve_recent_states(9), back),
            (space.retrieve_similar_states({"kind": "x"}, k=9), back),
        ):
            assert {entry.tier for entry in found} == {"stm", "im", "ltm"}
            assert [entry["contents"]["n"] for entry in found] == order
