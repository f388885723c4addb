"""Relevance says how likely a hit answers, and means the same in every store."""

from __future__ import annotations

import pytest

from rmem import Brain
from rmem.errors import InputError

PAIR = ("The staging database runs on port 5433", "Deploys of the billing service need the VPN")


@pytest.fixture
def brain():
    with Brain(":memory:") as brain:
        brain.remember_many([{"text": text} for text in PAIR])
        yield brain


def test_a_question_about_nothing_here_is_answered_with_relevance_near_zero(brain):
    assert all(hit.relevance < 0.06 for hit in brain.recall("zebra giraffe elephant"))


def test_the_memory_that_answers_is_far_likelier_than_the_other(brain):
    first, second = brain.recall("which port does the staging database run on")
    assert first.text == PAIR[0]
    assert first.relevance > 0.6
    assert second.relevance < 0.2


def test_hits_below_the_least_relevance_are_left_out(brain):
    assert [hit.text for hit in brain.recall("port of the staging database", min_relevance=0.5)] == [PAIR[0]]
    assert not brain.recall("zebra giraffe elephant", min_relevance=0.5)


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "vector"])
def test_every_mode_has_relevance_between_0_and_1(brain, mode):
    hits = brain.recall("which port does the staging database run on", mode=mode)
    assert hits
    assert all(0 <= hit.relevance <= 1 for hit in hits)
    assert hits[0].relevance == max(hit.relevance for hit in hits)
    assert hits[0].to_dict()["relevance"] == hits[0].relevance


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "much", True])
def test_a_least_relevance_outside_0_to_1_is_refused(brain, wrong):
    with pytest.raises(InputError, match="min_relevance"):
        brain.recall("port", min_relevance=wrong)


def test_a_memory_of_somebody_else_than_the_one_named_is_less_relevant():
    with Brain(":memory:") as brain:
        for actor, text in (("Ann", "I adopted a grey cat last week"), ("Ben", "I bought a red bicycle last week")):
            brain.remember(text, actor=actor, session="s")
        own = {hit.memory.actor: hit.relevance for hit in brain.recall("What colour is the cat that Ann adopted?")}
        swapped = {hit.memory.actor: hit.relevance for hit in brain.recall("What colour is the cat that Ben adopted?")}
        assert swapped["Ann"] < own["Ann"]


@pytest.mark.parametrize(
    "again", ["The staging database runs on port 5433.", "The staging database runs on port 5433 now"]
)
@pytest.mark.parametrize("question", ["which port does the staging database run on", "what is on port 5433?"])
@pytest.mark.parametrize("important", [0, 1])
def test_of_two_memories_that_are_nearly_the_same_the_important_one_comes_first(again, question, important):
    with Brain(":memory:") as brain:
        for number, text in enumerate((PAIR[0], again)):
            brain.remember(text, id=str(number), importance=0.9 if number == important else 0.5)
        assert brain.recall(question)[0].id == str(important)
