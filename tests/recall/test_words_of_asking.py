"""Words that say what to do with the answer ("how many", "the order in which") do not decide what is found."""

from __future__ import annotations

from datetime import datetime

import pytest

from rmem import Brain
from rmem.recall.question import parse_question

NOW = datetime(2026, 11, 18)


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("How many different types of doctors did I visit?", "doctors did I visit?"),
        ("What is the order of the trips I took, from earliest to latest?", "What is the trips I took, ?"),
        (
            "Can you list the order in which I brought up different aspects of my garden throughout our conversations?",
            "aspects of my garden ?",
        ),
        (
            "I'm going back to our previous chat about home decor. Can you remind me which sealant you mentioned?",
            "home decor. which sealant ?",
        ),
        ("How many?", "How many?"),  # nothing else is asked
        ("What did you say?", "What did you say?"),
        ("Keep columns in order", "Keep columns"),
        ("The order of columns is kept", "columns is kept"),
        ("in which order we deploy", "in which order we deploy"),
    ],
)
def test_they_are_left_out_of_the_topic(text: str, topic: str) -> None:
    assert parse_question(text, NOW).topic == topic


@pytest.mark.parametrize(
    ("text", "about_asker"),
    [
        ("Can you list the books that I read?", True),
        ("Could you explain what I did to the parser?", True),
        ("Which books did you list for me?", False),
        ("What was the paint that you recommended to me?", False),
    ],
)
def test_a_request_is_not_taken_for_what_an_assistant_said(text: str, about_asker: bool) -> None:
    assert parse_question(text, NOW).asks_own is about_asker


def test_a_memory_that_counts_something_else_does_not_come_first() -> None:
    with Brain(":memory:") as brain:
        brain.remember_many([{"text": f"In total there are many different types of order {n}"} for n in range(10)])
        brain.remember_many([{"text": f"The harbour was quiet on day {n}"} for n in range(10)])
        visit = brain.remember("Saw the dermatologist, a doctor in Lund")
        hit = brain.recall("How many different types of doctors did I see in total?", k=1)[0]
        assert hit.id == visit.id


def test_plain_bm25_reads_every_word() -> None:
    with Brain(":memory:") as brain:
        brain.remember("Order them by size, there are many")
        assert brain.recall("How many in order?", mode="lexical")
