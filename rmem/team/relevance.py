"""Estimate how relevant memories are to a prompt or a failing command: the probability, from 0 to 1, that the user
wants to see them. Recall scores order the hits of one question; this estimate orders them better and is comparable
across questions and stores, so that a threshold can be set.

It is a logistic curve over a few features of a question and a memory (`FEATURES`). A word's weight depends on how many
memories hold it, as if there were a hundred more without it: among a handful of memories about one bug every word would
otherwise seem common. `training/team_relevance.py` fitted the numbers on the six development repositories of
benchmarks/team_prompts (docs/decisions/0017-telling-unasked.md)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..embed import static_embedder
from ..index.analyser import Word, question_words
from ..index.bm25 import idf
from ..models import Hit, Memory
from ..recall.explain import Explanation
from .outcomes import headline

FEATURES = {
    "telling": "weight of the question's words in the memory (logarithm); related words count half",
    "title": "weight of the question's words in its first line (logarithm)",
    "gist": "cosine between that line and the gist of the question",
    "whole": "cosine between that line and the whole question",
    "nearer": "cosine between memory and question, minus the mean of the ten nearest memories",
    "lead": "its recall score above the mean of the hits, in standard deviations",
    "length": "length of the memory (logarithm)",
    "fix": "whether it is an error with its fix",
    "order": "whether the prompt orders something new, for fixes and commits",
    "asks": "whether the prompt is a question",
    "at_hand": "whether the prompt is about the code before its author, for fixes and commits",
}
BASE = -7.48
WEIGHTS = {
    "telling": 0.36, "title": 1.30, "gist": 1.67, "whole": 3.54, "nearer": 5.99, "lead": 0.75, "length": 0.85,
    "fix": 0.92, "order": -2.94, "asks": 0.86, "at_hand": -1.68,
}  # fmt: skip
_OTHERS = 100  # imaginary further memories, so that words of a small store do not seem common
_RELATED = 0.5  # weight of a related word
_NEAREST = 10  # hits that a hit is compared with
_FAR, _BEHIND = 0.3, -2.0  # the cosine and the score assumed for hits that a small store lacks
_LONGEST = 1000  # characters of a question that are embedded

# What a prompt wants, by its words. Reports of trouble and questions about how things are done profit from past
# experience; orders for something new, and remarks about the code at hand, rarely do.
_POLITE = r"^\W*(?:(?:please|can you|could you|now|then|let's|i want(?: you)? to|i need|we need|help me)\b[\s,:]*)*"
_ORDER = re.compile(
    _POLITE + r"(?:add|write|implement|create|build|generate|export|design|draft|let|make|port|migrate|convert|rename|"
    r"explain|summari[sz]e|split|shorten|open|run|move|refactor|extract|inline|commit|push|format|show|list|print|"
    r"delete|translate|set up|install|start|support|decode|serve|connect|schedule|introduce|provide|extend)\b",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"\b(?:fix|bugs?|errors?|fail\w*|wrong\w*|broken?|breaks?|crash\w*|hang\w*|freez\w*|regress\w*|no longer|any ?more|"
    r"leak\w*|lost|loses?|ignored?|unexpected\w*|does ?n[o']t|didn't|can ?not|can't|won't|panick?\w*|exception|"
    r"traceback|stuck|corrupt\w*|nonsense|duplicat\w*|slow|not work\w*|raises|twice)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\?|^\W*(?:how|why|which|what|where|when|is|are|do|does|did|can|should|who|whose)\b", re.IGNORECASE)
_AT_HAND = re.compile(
    r"\b(?:my|mine|this (?:function|file|code|diff|decorator|snippet|script|handler|test|class|method|docstring|"
    r"branch)|i just|above|under the cursor|our (?:own|company|internal))\b",
    re.IGNORECASE,
)
_OUTPUT = re.compile(
    r"^Traceback \(most recent|^\s*File \"|\b[A-Z]\w*(?:Error|Exception)\b: |panicked at|^\S+: (?:fatal )?error: ",
    re.MULTILINE,
)
_SENTENCE = re.compile(r"(?<=[.?!])\s|\n")

Table = npt.NDArray[np.float64]


def relevances(question: str, hits: Sequence[Hit], *, failure: bool = False) -> list[float]:
    """Return the relevance of each hit of a question. The hits need explanations."""
    if not hits:
        return []
    z = BASE + features(question, hits, failure=failure) @ np.array([WEIGHTS[name] for name in FEATURES])
    found: list[float] = (1 / (1 + np.exp(-z))).tolist()
    return found


def features(question: str, hits: Sequence[Hit], *, failure: bool = False) -> Table:
    """Return a row of FEATURES for each hit."""
    reasons = [_reason(hit) for hit in hits]
    weights = _weights(reasons[0])
    question_terms = question_words(question)
    titles = [hit.text.partition("\n")[0] for hit in hits]
    embedder = static_embedder()
    queries = np.stack([embedder.embed_query(text) for text in (_gist(question), question[:_LONGEST])])
    cosines = embedder.embed(titles) @ queries.T
    nearest = sorted((reason.cosine or 0.0 for reason in reasons), reverse=True)[:_NEAREST]
    around = (sum(nearest) + _FAR * (_NEAREST - len(nearest))) / _NEAREST
    scores = np.array([hit.score for hit in hits] + [_BEHIND] * (_NEAREST - len(hits)))
    spread = max(1.0, float(scores.std()))  # do not exaggerate small differences between a few hits
    order = not failure and _orders_new_work(question)
    asks = not failure and _is_question(question)
    at_hand = not failure and _is_about_code_at_hand(question)
    lines = []
    for hit, reason, title, (gist, whole) in zip(hits, reasons, titles, cosines.tolist(), strict=True):
        exact = {match.word for match in reason.words if match.word == match.matched}
        related = {match.word for match in reason.words} - exact
        held, near = (sum(weights.get(word, 0.0) for word in words) for words in (exact, related))
        lines.append([
            math.log1p(held + _RELATED * near),
            math.log1p(_weight_in_title(title, question_terms, weights)),
            gist,
            whole,
            (reason.cosine or 0.0) - around,
            (hit.score - float(scores.mean())) / spread,
            math.log1p(len(hit.text) / 200),
            hit.memory.type == "error_fix",
            order and _is_past(hit.memory),
            asks,
            at_hand and _is_past(hit.memory),
        ])  # fmt: skip
    return np.array(lines, np.float64)


def _is_past(memory: Memory) -> bool:
    """Return whether a memory reports an event. Rules and conventions apply to new work, too."""
    return memory.type == "error_fix" or memory.agent_id == "git"


def _reason(hit: Hit) -> Explanation:
    assert hit.explanation is not None  # recall was called with explanations
    return hit.explanation


def _weights(reason: Explanation) -> dict[str, float]:
    """Return the weight of each word of the question, at most 1 for the rarest."""
    rows = reason.rows
    rarest = idf(rows + _OTHERS, 0)
    return {word: idf(rows + _OTHERS, _row_count(rows, word_idf)) / rarest for word, word_idf in reason.asked.items()}


def _weight_in_title(title: str, question_terms: Sequence[Word], weights: dict[str, float]) -> float:
    held = {term for word in question_words(title) for term in word.hashes}
    return sum(weights.get(word.text, 0.0) for word in question_terms if not held.isdisjoint(word.hashes))


def _row_count(rows: int, word_idf: float) -> int:
    """Return how many rows contain a word, from its idf."""
    odds = math.exp(word_idf) - 1
    return max(0, round((rows + 0.5 - 0.5 * odds) / (1 + odds)))


def _orders_new_work(prompt: str) -> bool:
    """Return whether a prompt orders something new ("add a spinner") and reports no trouble."""
    return bool(_ORDER.search(prompt)) and not _TROUBLE.search(prompt)


def _is_question(prompt: str) -> bool:
    """Return whether a prompt is a question: "why …", "which …", or any question mark."""
    return bool(_ASKS.search(prompt))


def _is_about_code_at_hand(prompt: str) -> bool:
    """Return whether a prompt is about the code before its author: "this function", "my script"."""
    return bool(_AT_HAND.search(prompt))


def _gist(text: str) -> str:
    """Return the line that says what a text is about: the error of an output, the first sentence of a prompt."""
    if _OUTPUT.search(text):
        return headline(text)
    return next((part for part in _SENTENCE.split(text.strip()) if part.strip()), "")
