"""Fit the weights of `team/relevance.py`: a logistic regression over the hits of prompts with known answers,
cross-validated on repositories that it was not fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...team.briefing import CONSIDERED, SHOWN_KINDS, question_of_failure, reads_like_work
from ...team.relevance import FEATURES, features
from . import Found, Prompt, PromptResult, is_right
from .repositories import Histories, commits_of

Table = npt.NDArray[np.float64]
_PENALTY = 3.0  # L2, on weights of standardised features
_ROUNDS = 30


@dataclass(slots=True)
class Example:
    """A prompt, its hits, and the features of each hit."""

    prompt: Prompt
    found: list[Found]
    lines: Table


@dataclass(slots=True)
class Curve:
    """A logistic curve over FEATURES."""

    base: float
    weights: dict[str, float]

    def relevances(self, lines: Table) -> Table:
        found: Table = 1 / (1 + np.exp(-(self.base + lines @ np.array([self.weights[name] for name in FEATURES]))))
        return found


def examples(histories: Histories) -> list[Example]:
    """Search for every prompt and compute the features of its hits."""
    found = []
    for prompt in histories.prompts:
        failure = prompt.kind == "error"
        question = question_of_failure("", prompt.text) if failure else prompt.text[:4000]
        if not failure and not reads_like_work(prompt.text):
            found.append(Example(prompt, [], np.empty((0, len(FEATURES)))))
            continue
        hits = histories.team.search(question, repository=histories.places[prompt.repository], kinds=SHOWN_KINDS)
        wanted = tuple(prompt.answers)
        rated = [
            Found(hit.memory.memory_id, hit.text.partition("\n")[0], 0.0, is_right(commits_of(hit.memory), wanted))
            for hit in hits
        ]
        found.append(Example(prompt, rated, features(question, hits, failure=failure)))
    return found


def fit(known: Sequence[Example]) -> Curve:
    """Fit a penalised logistic regression by Newton's method."""
    lines = np.vstack([example.lines for example in known])
    right = np.array([found.is_right for example in known for found in example.found], np.float64)
    mean, deviation = lines.mean(axis=0), lines.std(axis=0)
    deviation[deviation == 0] = 1.0
    standardised = np.column_stack([np.ones(len(lines)), (lines - mean) / deviation])
    penalty = np.diag([1e-6, *[_PENALTY] * lines.shape[1]])
    weights = np.zeros(standardised.shape[1])
    for _ in range(_ROUNDS):
        probability = 1 / (1 + np.exp(-standardised @ weights))
        gradient = standardised.T @ (probability - right) + penalty @ weights
        hessian = (standardised * (probability * (1 - probability))[:, None]).T @ standardised + penalty
        weights -= np.linalg.solve(hessian, gradient)
    unscaled = weights[1:] / deviation
    base = float(weights[0] - mean @ unscaled)
    return Curve(base, dict(zip(FEATURES, unscaled.tolist(), strict=True)))


def cross_validate(known: Sequence[Example]) -> list[PromptResult]:
    """Rate the hits of every prompt with a curve fitted on the other repositories (leave one out)."""
    names = dict.fromkeys(example.prompt.repository for example in known)
    curves = {name: fit([example for example in known if example.prompt.repository != name]) for name in names}
    results = []
    for example in known:
        relevances = curves[example.prompt.repository].relevances(example.lines).tolist()
        rated = [replace(found, relevance=value) for found, value in zip(example.found, relevances, strict=True)]
        results.append(PromptResult(example.prompt, sorted(rated, key=lambda found: -found.relevance)[:CONSIDERED]))
    return results
