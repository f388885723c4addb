"""The questions that were judged in use as a question set: what was useful is what they should find. The figures of a
run are kept with the store, to be seen over time; the questions themselves are only in the feedback."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from ..brain import Brain
from ..feedback import Feedback
from ..filters import Filter
from .offline import Setting, evaluate_set
from .question_sets import Question, QuestionSet

_KEY = "evaluation_runs"
_MOST_RUNS, _MOST_QUESTIONS = 100, 1000


def question_set(feedback: Iterable[Feedback]) -> QuestionSet:
    """The judged questions with at least one useful hit, the newest `_MOST_QUESTIONS`."""
    verdicts: dict[str, dict[str, bool]] = {}
    for one in feedback:  # the oldest first, so that later verdicts count
        if one.question and one.memory_id and not one.passed_over:
            told = verdicts.pop(one.question, {})
            verdicts[one.question] = {**told, one.memory_id: one.useful}
    found: list[Question] = []
    for text, told in list(verdicts.items())[-_MOST_QUESTIONS:]:
        if right := {key: 1.0 for key, useful in told.items() if useful}:
            found.append(Question(len(found) + 1, text, right, Filter(), None))
    return QuestionSet(found, [], [])


def run(brain: Brain, given: dict[str, Any], *, who: str) -> dict[str, Any]:
    """Ask the set with some settings, and keep the figures. What was learned from the same feedback does not count."""
    name = ", ".join(f"{key}={value}" for key, value in given.items()) or "default"
    setting = Setting.of(name, {"feedback": 0, **given})
    told = evaluate_set(question_set(brain.store.feedback()), name="judged", brain=brain, settings=setting)
    done = {
        "time": time.time(), "who": who, "settings": name, "questions": told["measured"], "missing": told["missing"],
        "measures": told["settings"][0]["measures"], "reliability": told["settings"][0]["reliability"],
    }  # fmt: skip
    brain.store.set_meta(_KEY, json.dumps([*runs(brain), done][-_MOST_RUNS:]))
    return done


def runs(brain: Brain) -> list[dict[str, Any]]:
    """The figures of the last runs, the oldest first."""
    found: list[dict[str, Any]] = json.loads(brain.store.get_meta(_KEY) or "[]")
    return found
