"""A text that asks several things: each is looked for by itself, so that the answers to all of them come first."""

from __future__ import annotations

from datetime import datetime

import pytest

from rmem import Brain
from rmem.recall.pipeline import parse_request
from rmem.recall.question import parse_question

NOW = datetime(2026, 11, 16)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "Which port does staging use? And who owns the billing service?",
            ["Which port does staging use?", "who owns the billing service?"],
        ),
        ("我上司的老家是哪儿的来着？另外，年会的规模是什么？", ["我上司的老家是哪儿的来着？", "年会的规模是什么？"]),
        ("Who wrote the importer? Where does she work?", []),  # not to be understood without the first
        ("Who owns billing? What happened?", []),
        ("We moved to Kafka. Why?", []),
        ("Fixed a bug where ?_search= and ?_sort= parameters were duplicated", []),
        ("Which port does staging use?", []),
        (
            "How many days passed between when I ordered the desk and when the chair arrived?",
            ["I ordered the desk", "the chair arrived"],
        ),
        (
            "How long was it between my trip to Oslo in March and the wedding?",
            ["my trip to Oslo in March", "the wedding"],
        ),
        ("Which did we ship first, the importer or the dashboard?", ["the importer", "the dashboard"]),
        ("What is the difference between a list and a tuple?", []),  # one memory tells it
        ("What did we ship between the 3rd of March and the 9th of April?", []),
        ("Document the time between the first retry and the second", []),  # asks nothing
    ],
)
def test_questions_are_told_apart_where_each_can_be_understood(text, parts):
    assert [part.text for part in parse_question(text, NOW).parts] == parts


def test_the_answers_to_both_come_first():
    with Brain(":memory:") as brain:
        brain.remember_many([{"text": f"Note {n} about staging, port, billing and its owner"} for n in range(30)])
        port = brain.remember("The database of staging listens on 5433")
        owner = brain.remember("Kim Lee is responsible for invoices")
        hits = brain.recall("Where does the staging database listen? And who is responsible for invoices?", k=2)
        assert {hit.id for hit in hits} == {port.id, owner.id}


def test_both_events_come_first_where_the_time_between_them_is_asked():
    with Brain(":memory:") as brain:
        talk = "Days passed between meetings, and many a day I met people about skepticism, feedback and managers"
        brain.remember_many([{"text": f"{talk} {n}"} for n in range(30)])
        first = brain.remember("Wyatt was skeptical of the budget when we met")
        last = brain.remember("The regional leads praised the forecast")
        question = "How many days passed between my meeting with Wyatt and the praise for the forecast?"
        assert {hit.id for hit in brain.recall(question, k=2)} == {first.id, last.id}


def test_with_a_vector_of_the_whole_question_it_is_not_taken_apart():
    text = "Which port does staging use? And who owns billing?"
    assert len(parse_request(text, settings={}).question.parts) == 2
    assert parse_request(text, settings={}, vector=[1.0] * 8).question.parts == ()


def test_no_part_crowds_out_another():
    """The five best of each part have the same mean score; the share that this adds is explained."""
    texts = [f"The staging {name} listens on port {7000 + at}." for at, name in enumerate("db cache queue api".split())]
    texts += ["Olga owns the billing service.", "Billing invoices are sent on the first.", "Priya reviews search."]
    texts += [f"Note {number} on lunch, plants and standup." for number in range(20)]
    with Brain(":memory:") as brain:
        brain.remember_many([{"text": text} for text in texts])
        both = brain.recall("Which ports do staging services listen on? And who owns billing?", k=27, explain=True)
        assert [hit.score for hit in both] == sorted((hit.score for hit in both), reverse=True)
        assert all(abs(sum(hit.explanation.components.values()) - hit.score) < 1e-3 for hit in both)
        raised = sorted({round(hit.explanation.components["part"], 4) for hit in both})
        levels = [
            sum(hit.score for hit in brain.recall(part, k=5)) / 5
            for part in ("Which ports do staging services listen on?", "who owns billing?")
        ]
        assert raised == pytest.approx([0, abs(levels[0] - levels[1])], abs=1e-3)
        assert brain.recall("Which ports do staging services listen on? And who owns billing?", k=1)[0].id == both[0].id
