"""Turns of a conversation and notes in one store: what a turn says and its session must not lift it above all notes."""

from __future__ import annotations

import pytest

from rmem import Brain

_THINGS = (
    "lamp chair kettle bicycle radio camera piano clock mirror violin boiler engine pump window ladder printer tent "
    "canoe organ statue"
).split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_TURNS = [
    turn
    for at, thing in enumerate(_THINGS)
    for turn in (
        {"text": f"Bob fixed the old {thing} in the north hall on {_DAYS[at % 7]}", "actor": "Bob"},
        {"text": "Good to hear, and what happened there after lunch?", "actor": "Ann"},
    )
]
_NOTES = [
    {"text": f"Eve fixed the new {thing} in the south hall on {_DAYS[at % 7]}"} for at, thing in enumerate(_THINGS)
]


@pytest.fixture(scope="module")
def mixed():
    with Brain(":memory:") as brain:
        turns = [{**turn, "session": f"evening {at // 10}"} for at, turn in enumerate(_TURNS)]
        brain.remember_many([*turns, *_NOTES])
        yield brain


@pytest.mark.parametrize("thing", _THINGS)
def test_the_note_that_says_more_of_the_question_comes_first(mixed, thing):
    assert mixed.recall(f"Who fixed a {thing} in the south?")[0].text.startswith("Eve")


@pytest.mark.parametrize("thing", _THINGS)
def test_the_turn_that_says_more_of_the_question_comes_first(mixed, thing):
    assert mixed.recall(f"Who fixed a {thing} in the north?")[0].text.startswith("Bob")


def test_the_components_of_a_mixed_store_add_up(mixed):
    for hit in mixed.recall("Who fixed the lamp?", k=20, explain=True):
        assert sum(hit.explanation.components.values()) == pytest.approx(hit.score, abs=1e-4)


def test_turns_among_themselves_are_ranked_as_without_notes():
    """What all rows get alike changes no order, so a store of turns alone gets no correction."""
    with Brain(":memory:") as brain:
        brain.remember_many([{**turn, "session": f"evening {at // 10}"} for at, turn in enumerate(_TURNS)])
        hit = brain.recall("Who fixed the lamp?", explain=True)[0]
        assert hit.text.startswith("Bob fixed the old lamp")
        assert hit.explanation.components["substance"] > 0.5
