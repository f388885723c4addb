"""The team memory tells what fits and keeps quiet otherwise, on the history that is shipped."""

from __future__ import annotations

import pytest

from remanence.evaluate.team import evaluate, history, prompts


@pytest.fixture(scope="module")
def report():
    return evaluate()


def test_the_set_is_large_and_half_of_it_has_no_answer():
    asked = prompts()
    assert len(asked) >= 150
    assert 0.45 <= sum(not prompt.wanted for prompt in asked) / len(asked) <= 0.55
    names = {name for name, _ in history()}
    assert all(prompt.wanted <= names for prompt in asked)


def test_what_is_told_is_right(report):
    assert report.precision >= 0.9


def test_what_is_known_is_told(report):
    assert report.recall >= 0.8


def test_the_right_experience_is_among_the_first_three(report):
    assert report.recall_at_3 >= 0.95


def test_a_bar_that_nothing_reaches_tells_nothing():
    assert evaluate(bar=1.0).recall == 0.0
