"""A question in the present is answered by what was said last."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmem import Brain

CHANGES = [
    ("Staging runs on port 5433.", "Since the move, staging runs on port 5434.", "which port does staging run on?"),
    ("The staging DB is on port 5433", "We moved the staging DB to port 5434", "what port is the staging DB on?"),
    (
        "The API rate limit is 100 requests per minute",
        "Rate limit was raised to 250 requests per minute",
        "what is the rate limit?",
    ),
    ("My favourite colour is blue", "Actually my favourite colour is green now", "what's my favourite colour?"),
    ("The backup job runs at two", "Since May the backup job runs at four", "when does the backup job run?"),
    ("The release manager is Ann", "Bob took over as release manager", "release manager"),
]


@pytest.fixture
def brain() -> Iterator[Brain]:
    with Brain(":memory:") as opened:
        yield opened


def _texts(brain: Brain, question: str, **settings: float) -> list[str]:
    return [hit.text for hit in brain.recall(question, k=2, settings=settings)]


@pytest.mark.parametrize(("before", "now", "question"), CHANGES)
def test_what_was_said_last_comes_first(brain: Brain, before: str, now: str, question: str) -> None:
    brain.remember("The lunch menu is on the wall", when="2026-05-01")
    brain.remember(before, when="2026-05-02")
    brain.remember(now, when="2026-05-03")
    assert _texts(brain, question) == [now, before]


def test_it_does_not_matter_in_which_order_they_came_in(brain: Brain) -> None:
    brain.remember("We moved staging to port 5434", when="2026-05-03")
    brain.remember("Staging runs on port 5433", when="2026-05-02")
    assert _texts(brain, "which port does staging run on?")[0] == "We moved staging to port 5434"


@pytest.mark.parametrize(
    "question", ["which port did staging run on?", "which port was staging on before?", "staging port in 2025"]
)
def test_a_question_about_the_past_is_ranked_as_before(brain: Brain, question: str) -> None:
    brain.remember("Staging runs on port 5433.", when="2026-05-02")
    brain.remember("Since the move, staging runs on port 5434.", when="2026-05-03")
    assert _texts(brain, question) == _texts(brain, question, newer=0)


def test_a_memory_that_holds_less_of_the_question_replaces_nothing(brain: Brain) -> None:
    brain.remember("The capital of France is Paris", when="2026-05-01")
    brain.remember("The capital of Spain is Madrid", when="2026-05-02")
    brain.remember("France has good trains", when="2026-05-03")
    assert _texts(brain, "What is the capital of France?")[0] == "The capital of France is Paris"


def test_what_somebody_else_says_or_what_matters_less_replaces_nothing(brain: Brain) -> None:
    brain.remember("My favourite colour is blue", actor="Ann", when="2026-05-01")
    brain.remember("Now my favourite colour is green", actor="Bob", when="2026-05-02")
    assert _texts(brain, "what is the favourite colour?")[0] == "My favourite colour is blue"
    brain.remember("Deploys need the VPN and a ticket", importance=0.9, when="2026-05-01")
    brain.remember("Deploys and tickets: notes of the meeting", importance=0.5, when="2026-05-02")
    assert _texts(brain, "what do deploys need?")[0] == "Deploys need the VPN and a ticket"


def test_memories_that_came_together_do_not_replace_each_other(brain: Brain) -> None:
    brain.remember_many(
        {"text": text} for text in ("Staging runs on port 5433", "Well, staging runs on port 5434, too")
    )
    assert len({memory.timestamp for memory in brain.store.select()}) == 1
    question = "which port does staging run on?"
    assert _texts(brain, question) == _texts(brain, question, newer=0)


def test_the_explanation_says_what_moved_and_adds_up(brain: Brain) -> None:
    brain.remember("Staging runs on port 5433.", when="2026-05-02")
    brain.remember("Since the move, staging runs on port 5434.", when="2026-05-03")
    first, second = brain.recall("which port does staging run on?", k=2, explain=True)
    assert first.explanation is not None
    assert second.explanation is not None
    assert first.explanation.components["newer"] > 0
    assert sum(first.explanation.components.values()) == pytest.approx(first.score, abs=1e-4)
    assert "a newer memory about the same comes first" in second.explanation.notes
    assert first.relevance >= second.relevance
