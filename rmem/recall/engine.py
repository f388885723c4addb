"""Rank filtered rows for a question in one of three modes: hybrid, plain BM25 ("lexical") or plain cosines
("vector")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..annotations import Mode
from ..index.best_scores import top
from ..index.candidate_source import CandidateSource
from ..index.filtered_rows import FilteredRows, nearest_rows
from .candidates import gather_candidates
from .explain import Explanation
from .fusion import scale_of, standardise
from .hybrid import Hybrid, QueryVector
from .phrases import allowed_rows
from .question import Question
from .ranked import Ranked
from .relevance import SIGNALS, WEIGHTS, relevance, signals
from .settings import RecallSettings
from .words import QuestionWords

MODES: tuple[Mode, ...] = ("hybrid", "lexical", "vector")

Mask = npt.NDArray[np.bool_]

_LEVEL = 5  # best hits of a part whose mean score is its level


def rank(
    rows: FilteredRows | CandidateSource,
    question: Question,
    query_vector: QueryVector,
    settings: RecallSettings,
    *,
    mode: str = "hybrid",
    count: int = 10,
    explain: bool = False,
) -> list[Ranked]:
    """Return the best `count` rows, best first."""
    if not rows.size:
        return []
    if question.parts and mode == "hybrid":
        deep = max(count, _LEVEL)
        rankings = [rank(rows, part, query_vector, settings, count=deep, explain=explain) for part in question.parts]
        return _merge_parts(rankings)[:count]
    found_rows = (
        rows
        if isinstance(rows, FilteredRows)
        else gather_candidates(rows, question, query_vector, settings, mode, count)
    )
    if not found_rows.size:
        return []
    allowed = allowed_rows(found_rows, question)
    if allowed is not None and not allowed.any():
        return []
    if mode == "lexical":
        return _rank_lexical(found_rows, question, settings, allowed, count, explain)
    if mode == "vector":
        return _rank_vectors(found_rows, question, query_vector, allowed, count, explain)
    return Hybrid(found_rows, question, query_vector, settings).rank(allowed, count, explain=explain)


def _merge_parts(rankings: Sequence[Sequence[Ranked]]) -> list[Ranked]:
    """Merge rankings of the parts of a question: each row counts by the part that it answers best. All parts are
    brought to the level of the best one, so that a part whose hits stand out does not crowd out the others."""
    levels = [sum(row.score for row in ranking[:_LEVEL]) / max(len(ranking[:_LEVEL]), 1) for ranking in rankings]
    best: dict[int, Ranked] = {}
    for row in (
        _raise_score(row, max(levels) - level)
        for ranking, level in zip(rankings, levels, strict=True)
        for row in ranking
    ):
        if row.seq not in best or best[row.seq].score < row.score:
            best[row.seq] = row
    return sorted(best.values(), key=lambda row: -row.score)


def _raise_score(row: Ranked, by: float) -> Ranked:
    why = row.explanation
    if why is not None:
        why = replace(why, components={**why.components, "part": by})
    return row._replace(score=row.score + by, explanation=why)


def _rank_lexical(
    found_rows: FilteredRows,
    question: Question,
    settings: RecallSettings,
    allowed: Mask | None,
    count: int,
    explain: bool,
) -> list[Ranked]:
    words = QuestionWords(found_rows, question, question.text, settings, soft=False)
    scores = words.scores if allowed is None else np.where(allowed, words.scores, np.float32(0))
    holding = np.flatnonzero(scores)
    ranked = []
    best = holding[top(scores[holding], count)]
    if not best.size:
        return []
    shares = (scores[best] / np.float32(sum(words.weights.values()) or 1)).astype(np.float32)
    scale = scale_of(scores[holding])
    shown = signals(
        shares, np.zeros_like(shares), standardise(scores[best], scale), standardise(scores[holding], scale)
    )
    likely = relevance(shown, WEIGHTS["lexical"], np.zeros(best.size, np.bool_))
    for place, likelihood, values in zip(best.tolist(), likely.tolist(), shown.tolist(), strict=True):
        score = float(scores[place])
        reason = None
        if explain:
            reason = Explanation(
                "lexical", {"bm25": score}, score, None, words.matches(place), dict(words.idfs), found_rows.size,
                signals=dict(zip(SIGNALS, values, strict=True)),
            )  # fmt: skip
        ranked.append(Ranked(int(found_rows.seq[place]), score, likelihood, reason))
    return ranked


def _rank_vectors(
    found_rows: FilteredRows,
    question: Question,
    query_vector: QueryVector,
    allowed: Mask | None,
    count: int,
    explain: bool,
) -> list[Ranked]:
    vector = query_vector(question.text, lambda word: 1.0)
    if vector is None or found_rows.dimension is None:
        return []
    at, cosines = nearest_rows(found_rows, vector, count, allowed)
    if not at.size:
        return []
    nothing = np.zeros_like(cosines)
    shown = signals(nothing, cosines, nothing, nothing[:1])
    likely = relevance(shown, WEIGHTS["vector"], np.zeros(at.size, np.bool_))
    rows = zip(found_rows.seq[at].tolist(), cosines.tolist(), likely.tolist(), shown.tolist(), strict=True)
    return [
        Ranked(
            seq,
            cosine,
            likelihood,
            _vector_explanation(cosine, dict(zip(SIGNALS, values, strict=True))) if explain else None,
        )
        for seq, cosine, likelihood, values in rows
    ]


def _vector_explanation(cosine: float, values: dict[str, float]) -> Explanation:
    return Explanation("vector", {"cosine": cosine}, cosine=cosine, signals=values)
