"""Ranking the rows of a survey for a question, in one of three modes. Hybrid is the product; the other two are
its plain sides, for those who want exactly BM25 or exactly cosines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..index import bits
from ..index.prospect import Prospect
from ..index.survey import Survey, nearest_rows
from .explain import Explanation
from .gathering import gathered
from .hybrid import Hybrid, QueryVector
from .phrases import allowed_rows
from .question import Question
from .settings import RecallSettings
from .words import QuestionWords

MODES = ("hybrid", "lexical", "vector")

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Ranked:
    """A row by its seq, and its score."""

    seq: int
    score: float
    explanation: Explanation | None


def rank(
    rows: Survey | Prospect,
    question: Question,
    query_vector: QueryVector,
    settings: RecallSettings,
    *,
    mode: str = "hybrid",
    count: int = 10,
    explain: bool = False,
) -> list[Ranked]:
    """The best `count` rows, best first."""
    if not rows.size:
        return []
    survey = rows if isinstance(rows, Survey) else gathered(rows, question, query_vector, settings, mode, count)
    if not survey.size:
        return []
    allowed = allowed_rows(survey, question)
    if allowed is not None and not allowed.any():
        return []
    if mode == "lexical":
        return _rank_lexical(survey, question, settings, allowed, count, explain)
    if mode == "vector":
        return _rank_vectors(survey, question, query_vector, allowed, count, explain)
    return _rank_hybrid(Hybrid(survey, question, query_vector, settings), allowed, count, explain)


def _rank_hybrid(hybrid: Hybrid, allowed: Mask | None, count: int, explain: bool) -> list[Ranked]:
    found = hybrid.rank(allowed, count, explain=explain)
    seqs = hybrid.survey.seq[[one.at for one in found]].tolist()
    return [Ranked(seq, one.score, one.explanation) for seq, one in zip(seqs, found, strict=True)]


def _rank_lexical(
    survey: Survey, question: Question, settings: RecallSettings, allowed: Mask | None, count: int, explain: bool
) -> list[Ranked]:
    words = QuestionWords(survey, question, question.text, settings, soft=False)
    scores = words.scores if allowed is None else np.where(allowed, words.scores, np.float32(0))
    holding = np.flatnonzero(scores)
    ranked = []
    for place in holding[bits.top(scores[holding], count)].tolist():
        score = float(scores[place])
        reason = Explanation("lexical", {"bm25": score}, score, words=words.matches(place)) if explain else None
        ranked.append(Ranked(int(survey.seq[place]), score, reason))
    return ranked


def _rank_vectors(
    survey: Survey, question: Question, query_vector: QueryVector, allowed: Mask | None, count: int, explain: bool
) -> list[Ranked]:
    vector = query_vector(question.text, lambda word: 1.0)
    if vector is None or survey.dimension is None:
        return []
    at, cosines = nearest_rows(survey, vector, count, allowed)
    return [
        Ranked(seq, cosine, Explanation("vector", {"cosine": cosine}, cosine=cosine) if explain else None)
        for seq, cosine in zip(survey.seq[at].tolist(), cosines.tolist(), strict=True)
    ]
