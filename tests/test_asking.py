"""Questions in their three steps: what is asked, which memories answer it, reading them."""

from __future__ import annotations

import inspect
from datetime import datetime

import pytest

from rmem import Brain, RecallSettings
from rmem.asking import ask
from rmem.errors import InputError

FACTS = ("the carrier import fails on empty rows", "invoices are sent on Mondays", "the carrier wants ISO dates")
WRONG = {  # in the order in which they are complained of
    "question": " ",
    "k": 0,
    "mode": "psychic",
    "explain": "yes",
    "touch": 1,
    "token_budget": 0,
    "settings": 7,
    "now": "noon",
    "where": 3,
    "vector": [0.0] * 8,
}


@pytest.fixture
def brain(tmp_path):
    with Brain(tmp_path / "memories.db") as brain:
        brain.remember_many([{"text": text} for text in FACTS])
        yield brain


def test_a_question_has_the_arguments_and_defaults_of_recall():
    recalled = dict(inspect.signature(Brain.recall).parameters)
    asked = dict(inspect.signature(ask).parameters)
    del recalled["self"]
    assert asked.pop("settings").default is inspect.Parameter.empty  # whoever asks has to look up the Brain's
    assert recalled.pop("settings").default is None
    assert [(p.name, p.kind, p.default) for p in asked.values()] == [
        (p.name, p.kind, p.default) for p in recalled.values()
    ]


def test_of_several_wrong_arguments_always_the_same_is_told_first(brain):
    wrong = dict(WRONG)
    for field in WRONG:
        with pytest.raises(InputError) as refused:
            brain.recall(**{"question": "carrier", **wrong})
        assert refused.value.field == field
        del wrong[field]


def test_several_questions_are_told_at_once_as_each_alone(brain):
    questions = ("what does the carrier want?", "invoices", "a carrier of nothing -carrier")
    together = brain.tell([brain.seek(ask(one, settings=brain.settings)) for one in questions])
    alone = [brain.recall(one) for one in questions]
    assert [[(hit.text, hit.score) for hit in hits] for hits in together] == [
        [(hit.text, hit.score) for hit in hits] for hits in alone
    ]
    assert [hits.recall.question for hits in together] == list(questions)


def test_time_words_narrow_the_filter_where_the_settings_say_so():
    now = datetime(2026, 5, 4, 12)
    words = {"question": "what happened yesterday?", "now": now}
    assert not ask(**words, settings=RecallSettings()).where
    where = ask(**words, settings={"time_words": "filter"}).where
    assert (where.since, where.until) == (datetime(2026, 5, 3).timestamp(), datetime(2026, 5, 4).timestamp())


def test_settings_of_the_brain_count_as_they_are_when_it_is_asked(brain):
    brain.remember("a war long ago", when="1998-05-04")
    assert "a war long ago" not in [
        hit.text for hit in brain.recall("a war yesterday", settings={"time_words": "filter"})
    ]
    assert brain.recall("a war yesterday")[0].text == "a war long ago"
    brain.settings = RecallSettings(time_words="filter")
    assert "a war long ago" not in [hit.text for hit in brain.recall("a war yesterday")]
