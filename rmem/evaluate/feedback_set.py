"""A question set made of the feedback in a store: each judged question should find the hits that were useful. The
figures of a run are stored with the memories; the questions stay in the feedback alone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from ..brain import Brain
from ..feedback import Feedback
from ..filters import Filter
from .offline import Setting, evaluate_set
from .question_sets import GradedQuestion, QuestionSet

_KEY = "evaluation_runs"
_MOST_RUNS, _MOST_QUESTIONS = 100, 1000


def question_set(feedback: Iterable[Feedback]) -> QuestionSet:
    """Build the set of the judged questions with at least one useful hit, the newest `_MOST_QUESTIONS`."""
    verdicts: dict[str, dict[str, bool]] = {}
    for verdict in feedback:  # oldest first, so that later verdicts replace earlier ones
        if verdict.question and verdict.memory_id and not verdict.passed_over:
            useful_by_id = verdicts.pop(verdict.question, {})
            verdicts[verdict.question] = {**useful_by_id, verdict.memory_id: verdict.useful}
    questions: list[GradedQuestion] = []
    for text, useful_by_id in list(verdicts.items())[-_MOST_QUESTIONS:]:
        if relevant := {key: 1.0 for key, useful in useful_by_id.items() if useful}:
            questions.append(GradedQuestion(len(questions) + 1, text, relevant, Filter(), None))
    return QuestionSet(questions, [], [])


def run(brain: Brain, given: dict[str, Any], *, who: str) -> dict[str, Any]:
    """Evaluate the set with some settings and store the figures. Learning from feedback is off: it would be measured on
    its own training data."""
    name = ", ".join(f"{key}={value}" for key, value in given.items()) or "default"
    setting = Setting.of(name, {"feedback": 0, **given})
    report = evaluate_set(question_set(brain.store.feedback()), name="judged", brain=brain, settings=setting)
    measured = report["settings"][0]
    figures = {
        "time": time.time(), "who": who, "settings": name, "questions": report["measured"],
        "missing": report["missing"], "measures": measured["measures"], "reliability": measured["reliability"],
    }  # fmt: skip
    brain.store.set_meta(_KEY, json.dumps([*runs(brain), figures][-_MOST_RUNS:]))
    return figures


def runs(brain: Brain) -> list[dict[str, Any]]:
    """Return the figures of the last runs, oldest first."""
    found: list[dict[str, Any]] = json.loads(brain.store.get_meta(_KEY) or "[]")
    return found
