"""A question word that no memory contains finds the word that was meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmem import Brain

NOTES = {
    "redis": "Redis is the cache and the rate limiter",
    "typescript": "TypeScript strict mode is on",
    "helm": "We deploy to Kubernetes with Helm",
    "parquet": "The parquet files are read in batches",
    "lunch": "Lunch is at noon",
}


@pytest.fixture(params=["sqlite", "postgres"])
def brain(request: pytest.FixtureRequest, tmp_path: object) -> Iterator[Brain]:
    address = ":memory:" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with Brain(address) as opened:
        opened.remember_many({"id": key, "text": text} for key, text in NOTES.items())
        yield opened


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("reedis eviction", "redis"),  # a letter too many
        ("typsecript configuration", "typescript"),  # two swapped
        ("how is kuberntes set up", "helm"),  # one missing
        ("parpuet batches", "parquet"),  # one wrong
    ],
)
def test_a_misspelt_word_is_understood(brain: Brain, question: str, found: str) -> None:
    first = brain.recall(question, k=1, explain=True, settings={"dense": 0})[0]
    assert first.id == found
    assert first.explanation is not None
    assert any(match.word != match.matched for match in first.explanation.words)


def test_words_that_memories_contain_are_taken_as_they_are(brain: Brain) -> None:
    brain.remember("The merlin flew over the wall", id="bird")
    brain.remember("The marlin swam under the boat", id="fish")
    first = brain.recall("marlin", k=1, explain=True, settings={"dense": 0})[0]
    assert first.id == "fish"
    assert first.explanation is not None
    assert [match.matched for match in first.explanation.words] == ["marlin"]


@pytest.mark.parametrize("question", ["pedis", "reddit", "typescipts", "redi"])
def test_the_first_letter_and_words_that_are_short_or_far_off_are_taken_as_written(brain: Brain, question: str) -> None:
    first = brain.recall(question, k=1, explain=True, settings={"dense": 0})[0]
    assert first.explanation is not None
    assert not {match.matched for match in first.explanation.words} & {"redis", "typescript"}


def test_it_goes_with_similar_words(brain: Brain) -> None:
    found = brain.recall("reedis", k=1, explain=True, settings={"similar": 0, "dense": 0})
    assert not found or not found[0].explanation.words
