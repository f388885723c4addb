"""Recall from a store that keeps facts, as a user calls it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from rmem import Brain

FACTS = (
    "The author of Endymion is John Keats.",
    "John Keats died in the city of Rome.",
    "Rome is located in the continent of Europe.",
    "The author of Emma is Jane Austen.",
    "Jane Austen died in the city of Winchester.",
    "The capital of France is Lyon.",
    "The capital of Spain is Madrid.",
    "Endymion is a poem of four books.",
    "The capital of France is Paris.",
)
DEATH = "What is the place of death of the author of Endymion?"


@pytest.fixture(params=[":memory:", "sqlite", "postgres"])
def brain(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Brain]:
    addresses = {"sqlite": str(tmp_path / "memories.db"), ":memory:": ":memory:"}
    with Brain(addresses.get(request.param) or request.getfixturevalue("postgres_url")) as brain:
        brain.remember_many([{"text": text} for text in FACTS])
        yield brain


def test_the_current_value_comes_first(brain: Brain) -> None:
    assert brain.recall("What is the capital of France?", k=1)[0].text == "The capital of France is Paris."
    brain.remember("The capital of France is Nancy.")
    texts = [hit.text for hit in brain.recall("What is the capital of France?", k=3)]
    assert texts == [
        "The capital of France is Nancy.",
        "The capital of France is Paris.",
        "The capital of France is Lyon.",
    ]


def test_a_question_of_two_hops_finds_both_facts_and_says_why(brain: Brain) -> None:
    hits = brain.recall(DEATH, k=3, explain=True)
    assert hits[0].text == "John Keats died in the city of Rome."
    reason = hits[0].explanation
    assert reason is not None
    assert "Endymion → author → John Keats → died in the city of → Rome" in reason.notes
    assert hits[0].score == pytest.approx(reason.score)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_facts_may_be_left_out_of_the_ranking(brain: Brain) -> None:
    hits = brain.recall("What is the capital of France?", k=2, settings={"facts": 0}, explain=True)
    assert all(not hit.explanation.notes for hit in hits if hit.explanation)


@pytest.mark.parametrize("mode", ["lexical", "vector"])
def test_plain_modes_stay_plain(brain: Brain, mode: str) -> None:
    with_facts = brain.recall(DEATH, mode=mode)  # type: ignore[arg-type]
    without = brain.recall(DEATH, mode=mode, settings={"facts": 0})  # type: ignore[arg-type]
    assert [hit.text for hit in with_facts] == [hit.text for hit in without]


def test_facts_outside_the_filter_neither_enter_nor_are_named(brain: Brain) -> None:
    brain.remember("The author of Lamia is John Keats.", agent="ann")
    brain.remember("Lamia is a long poem.", agent="ann")
    hits = brain.recall("Where did the author of Lamia die?", agent="ann", explain=True)
    assert {hit.memory.agent for hit in hits} == {"ann"}
    assert not any("Rome" in note for hit in hits for note in (hit.explanation.notes if hit.explanation else ()))


def test_words_that_must_be_held_are(brain: Brain) -> None:
    assert all("Endymion" in hit.text for hit in brain.recall(DEATH, must="Endymion"))
    assert all("Rome" not in hit.text for hit in brain.recall(DEATH, must_not="Rome"))


def test_a_forgotten_fact_is_not_followed(brain: Brain) -> None:
    author = next(
        memory
        for memory in brain.recall("author of Endymion", k=9)
        if "Keats" in memory.text and "author" in memory.text
    )
    brain.forget(author.memory.memory_id)
    assert all(not (hit.explanation and hit.explanation.notes) for hit in brain.recall(DEATH, explain=True))


def test_the_newest_of_many_values_is_read_whatever_the_limit(brain: Brain) -> None:
    brain.remember_many([{"text": f"The owner of billing is Person{n}."} for n in range(500)])
    assert brain.recall("Who is the owner of billing?", k=1)[0].text == "The owner of billing is Person499."


def test_a_question_about_an_earlier_time_gets_the_value_of_that_time(brain: Brain) -> None:
    brain.remember("Maria Keller works at Siemens.", when="2024-01-10")
    brain.remember("Maria Keller works at Bosch.", when="2025-06-01")
    brain.remember("Staging runs on port 5433.", when="2026-04-01")
    brain.remember("Staging runs on port 5434.", when="2026-07-01")
    brain.remember("The sauna of Tampere is closed in the afternoon.", when="2024-03-01")
    now = datetime(2026, 9, 1)
    for question, right in {
        "Where does Maria Keller work?": "Maria Keller works at Bosch.",
        "Where did Maria Keller work in 2024?": "Maria Keller works at Siemens.",
        "Where did Maria Keller work in March 2024?": "Maria Keller works at Siemens.",
        "Where did Maria Keller work in July 2025?": "Maria Keller works at Bosch.",
        "Where did Maria Keller work in 2019?": "Maria Keller works at Siemens.",  # the nearest that is known
        "Which port did staging run on in May 2026?": "Staging runs on port 5433.",
        "Which port did staging run on last month?": "Staging runs on port 5434.",
        "Which port did staging run on four months ago?": "Staging runs on port 5433.",
    }.items():
        hits = brain.recall(question, k=3, now=now, explain=True)
        assert hits[0].text == right, question
        notes = [note for hit in hits for note in (hit.explanation.notes if hit.explanation else ())]
        assert not any("replaced by Siemens" in note or "replaced by port 5433" in note for note in notes), question


def test_what_is_called_new_replaces_what_was_there(brain: Brain) -> None:
    for text in ("My phone number is 5550123.", "My manager is Tom Berg.", "My new phone number is 5550456."):
        brain.remember(text, actor="zoe")
    brain.remember("My new manager is Lisa Ohm.", actor="zoe")
    assert brain.recall("What is my phone number?", k=1)[0].text == "My new phone number is 5550456."
    assert [fact.object for fact in brain.graph.facts("zoe", "manager")] == ["Lisa Ohm"]
