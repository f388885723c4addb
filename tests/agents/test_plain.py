"""Whatever an agent returns becomes something that a memory can hold."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from rmem import checks
from rmem.agents.plain_data import plain

LEAVES = (
    some.none() | some.booleans() | some.integers() | some.floats() | some.text() | some.binary() | some.dates()
    | some.complex_numbers() | some.decimals() | some.uuids() | some.characters(categories=("Cs",)) | some.datetimes()
)  # fmt: skip
ANYTHING = some.recursive(
    LEAVES,
    lambda inner: (
        some.lists(inner, max_size=4)
        | some.tuples(inner, inner)
        | some.dictionaries(some.text() | some.integers() | some.none() | some.binary(), inner, max_size=4)
        | some.sets(some.integers() | some.text() | some.none(), max_size=4)
    ),
    max_leaves=20,
)


@given(ANYTHING)
def test_anything_becomes_what_a_memory_can_hold(value):
    made = plain({"value": value})
    assert checks.json_object("contents", made) == made
    assert plain(made) == made


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


def test_what_has_a_plain_form_gets_it():
    assert plain(Colour.RED) == "red"
    assert plain(Level.HIGH) == 3
    assert type(plain(Level.HIGH)) is int
    assert plain({"when": date(2026, 5, 1), "at": datetime(2026, 5, 1, tzinfo=UTC)}) == {
        "when": "2026-05-01",
        "at": "2026-05-01T00:00:00+00:00",
    }
    assert plain(np.array([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert plain(np.float64("inf")) is None
    assert plain({3, 1, 2}) == [1, 2, 3]


def test_an_iterator_is_not_used_up():
    numbers = iter([1, 2])
    assert "iterator" in plain(numbers)
    assert list(numbers) == [1, 2]


@dataclass
class World:
    name: str
    people: list = field(default_factory=list)


@dataclass
class Person:
    name: str
    world: World


def test_objects_that_refer_to_each_other_come_to_an_end():
    world = World("small")
    world.people = [Person(f"p{number}", world) for number in range(12)]
    made = plain(world)
    assert [person["name"] for person in made["people"]] == [f"p{number}" for number in range(12)]
    assert {person["world"] for person in made["people"]} == {"<World>"}
    assert checks.json_object("contents", made) == made


def test_what_is_held_twice_is_told_twice():
    twice = {"wood": 3}
    assert plain({"mine": twice, "yours": twice, "both": [twice, twice]}) == {
        "mine": twice,
        "yours": twice,
        "both": [twice, twice],
    }


def test_neighbours_of_neighbours_are_copied_only_so_far():
    cells = [{"name": number} for number in range(400)]
    for number, cell in enumerate(cells):
        cell["next"] = [cells[number - 1], cells[(number + 1) % 400], cells[(number + 20) % 400]]
    made = plain(cells[0])
    assert made["name"] == 0
    assert len(json.dumps(made)) < 10_000_000
