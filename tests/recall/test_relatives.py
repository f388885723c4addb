"""Words of like meaning: they help to find what a rare word means; a word that finds enough itself needs none."""

from __future__ import annotations

import pytest

from rmem import Brain, Filter
from rmem.index.analyser import question_words


@pytest.fixture(scope="module")
def garage():
    with Brain(":memory:") as brain:
        brain.remember_many([{"text": f"the truck number {number} was washed"} for number in range(40)])
        brain.remember_many([{"text": f"shelf {number} was dusted"} for number in range(900)])
        brain.remember("an automobile stood in the yard", id="automobile")
        brain.remember("the car would not start", id="car")
        yield brain


def _relatives(brain, question):
    return brain.store.filtered_rows(Filter()).relatives(question_words(question))


def test_a_rare_word_has_relatives(garage):
    assert "automobile" in [word for _, word, _ in _relatives(garage, "car")["car"]]
    assert [hit.memory.memory_id for hit in garage.recall("car", k=2)] == ["car", "automobile"]


def test_a_word_that_many_memories_hold_has_none(garage):
    assert _relatives(garage, "truck") == {}
    (match,) = garage.recall("truck", k=1, explain=True)[0].explanation.words
    assert match.matched == "truck"


def test_a_word_that_no_memory_holds_has_relatives(garage):
    assert "car" in [word for _, word, _ in _relatives(garage, "vehicle")["vehicle"]]
