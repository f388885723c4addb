"""Words of like meaning: they help to find what a rare word means; a word that finds enough itself needs none."""

from __future__ import annotations

import pytest

from rmem import Brain, Filter
from rmem.index.analyser import question_words
from rmem.index.vocabulary import abbreviates


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


@pytest.mark.parametrize(
    ("note", "question", "matched"),
    [
        ("Our production database runs on PostgreSQL", "which DB is it?", "database"),
        ("The DB password rotates every month", "database credentials", "db"),
        ("We deploy to Kubernetes with Helm", "k8s setup", "kubernetes"),
        ("We use k8s on two clouds", "which kubernetes provider?", "k8s"),
        ("Env vars are in a file of their own", "where are the environment variables?", "env"),
        ("parse_config() reads the TOML file", "how is the configuration read?", "config"),
    ],
)
def test_abbreviations_stand_for_their_words(note, question, matched):
    with Brain(":memory:") as brain:
        brain.remember_many(
            [{"text": note, "id": "right"}, {"text": "Lunch is at noon"}, {"text": "The cat is called Ada"}]
        )
        first = brain.recall(question, k=1, explain=True, settings={"dense": 0})[0]
    assert first.id == "right"
    assert matched in {match.matched for match in first.explanation.words}


@pytest.mark.parametrize(
    ("short", "long", "expected"),
    [
        ("db", "database", True),
        ("k8s", "kubernetes", True),
        ("config", "configuration", True),
        ("msg", "message", True),
        ("doc", "docs", False),  # the stem finds it
        ("base", "database", False),
        ("dt", "database", True),
        ("tab", "database", False),
    ],
)
def test_an_abbreviation_has_the_first_letter_and_others_in_order(short, long, expected):
    assert abbreviates(short, long) is expected
