"""Whatever an agent returns becomes something that a memory can hold."""

from __future__ import annotations

import enum
from datetime import UTC, date, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from remanence import checks
from remanence.agents.plain import plain

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
