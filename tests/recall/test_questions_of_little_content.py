"""Questions that say only when, or only who: the time or the person is then all there is to go by."""

from __future__ import annotations

from datetime import datetime

import pytest

from rmem import Brain
from rmem.testing.synthetic import synthetic_memories

NOW = datetime(2026, 5, 20, 15, 30)


@pytest.fixture(scope="module")
def brain():
    with Brain(":memory:") as brain:
        brain.remember_many(synthetic_memories(300))
        brain.remember("the gardener repotted a bonsai", id="yesterday", when=datetime(2026, 5, 19, 9), session="y")
        brain.remember("a parcel from Lisbon", id="april", when=datetime(2026, 4, 10, 9), session="x")
        brain.remember("paint the fence", id="quimby", actor="Quimby", when=datetime(2019, 1, 1), session="q")
        yield brain


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("what happened yesterday?", "yesterday"),
        ("yesterday", "yesterday"),
        ("what did I do yesterday", "yesterday"),
        ("anything from last week or yesterday?", "yesterday"),
        ("what was going on in April 2026?", "april"),
        ("last month", "april"),
        ("what did Quimby do?", "quimby"),
        ("what do you know about Quimby?", "quimby"),
        ("Quimby", "quimby"),
    ],
)
def test_the_time_or_the_person_decides(brain, question, wanted):
    assert wanted in [hit.memory.memory_id for hit in brain.recall(question, k=5, now=NOW)]


def test_a_question_with_content_is_still_answered_by_its_content(brain):
    hits = brain.recall("what did the gardener do in 2025?", k=5, now=NOW)
    assert "yesterday" in [hit.memory.memory_id for hit in hits], "a boost is not a filter"
