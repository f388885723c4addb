"""Ranking the rows of a survey for a question: words and vectors → fused → context and priors → the best.

Every row gets a fused score. In a small survey every row also gets its context; in a large one only those
that could reach the top do: the best by fused score and the neighbours that these may lift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..index import bits
from ..index.analyser import Word, plain, question_words, says
from ..index.bm25 import WordScores, best_of, idf, term_scores
from ..index.manner import TELLS_TIME
from ..index.stopwords import VOTES
from ..index.survey import Survey, nearest_rows
from . import context
from .explain import Explanation, WordMatch
from .fusion import scale_of, sparse_scale, standardised
from .question import Question, without_names
from .settings import RecallSettings

Scores = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]
Vector = npt.NDArray[np.float32]
QueryVector = Callable[[str, Callable[[str], float]], Vector | None]
"""(question without names, weight of a word) → its vector; None where there are no vectors."""

MODES = ("hybrid", "lexical", "vector")

_SMALL = 2048  # up to here all vectors are compared closely
_POOL_FROM = 32_768  # from here on only a pool of rows gets its context
_POOL, _LIFTED = 8192, 2048
_RESCORED = 2000
_FUNCTION_WORD = 0.5  # what words outside the index weigh in a question's vector
_SOFT_UP_TO = 32  # words; a pasted log is matched by its own words


@dataclass(slots=True)
class Ranked:
    """A row of the survey and its score."""

    at: int
    score: float
    explanation: Explanation | None


def rank(
    survey: Survey,
    question: Question,
    query_vector: QueryVector,
    settings: RecallSettings,
    *,
    mode: str = "hybrid",
    count: int = 10,
    explain: bool = False,
) -> list[Ranked]:
    """The best `count` rows, best first."""
    if not survey.size:
        return []
    allowed = _allowed(survey, question)
    if allowed is not None and not allowed.any():
        return []
    if mode == "lexical":
        return _rank_lexical(survey, question, settings, allowed, count, explain)
    if mode == "vector":
        return _rank_vectors(survey, question, query_vector, allowed, count, explain)
    return _Hybrid(survey, question, query_vector, settings).rank(allowed, count, explain)


def _allowed(survey: Survey, question: Question) -> npt.NDArray[np.bool_] | None:
    """Rows that hold every phrase and nothing excluded; None for all."""
    if not (question.phrases or question.excluded or question.excluded_phrases):
        return None
    allowed = np.ones(survey.size, np.bool_)
    for words in question.excluded:  # the parts of one identifier: all of them together are excluded
        allowed &= ~np.logical_and.reduce([_holding(survey, word) for word in words])
    for phrase in question.phrases:
        allowed &= _saying(survey, phrase, allowed)
    for phrase in question.excluded_phrases:
        allowed &= ~_saying(survey, phrase, allowed)
    return allowed


def _holding(survey: Survey, word: Word) -> npt.NDArray[np.bool_]:
    held = np.zeros(survey.size, np.bool_)
    for term in word.hashes:
        held[survey.matches(term).at] = True
    return held


def _saying(survey: Survey, phrase: str, among: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Rows (among some) whose text holds a phrase word for word."""
    candidates = among.copy()
    for word in question_words(phrase):
        # Words that may be missing from the index, such as function words of some language, prove nothing.
        if len(word.text) > 2 and word.text.isalpha() and word.text not in VOTES:
            candidates &= _holding(survey, word)
    at = np.flatnonzero(candidates)
    said = [says(text, phrase) for text in survey.texts(at)]
    candidates[at] = said
    return candidates


def _best(scores: Scores, allowed: npt.NDArray[np.bool_] | None, count: int) -> Positions:
    if allowed is None:
        return bits.top(scores, count)
    at = np.flatnonzero(allowed)
    return at[bits.top(scores[at], count)]


def _rank_lexical(
    survey: Survey,
    question: Question,
    settings: RecallSettings,
    allowed: npt.NDArray[np.bool_] | None,
    count: int,
    explain: bool,
) -> list[Ranked]:
    parts = _words(survey, question.text, question, settings, soft=False)
    scores = np.zeros(survey.size, np.float32)
    for part in parts:
        scores[part.found.at] += part.found.scores
    best = _best(scores, allowed, count)
    best = best[scores[best] > 0]
    reasons = (
        [None] * best.size
        if not explain
        else [
            Explanation("lexical", {"bm25": float(scores[at])}, float(scores[at]), words=_matches(parts, int(at)))
            for at in best
        ]
    )
    return [Ranked(int(at), float(scores[at]), reason) for at, reason in zip(best, reasons, strict=True)]


def _rank_vectors(
    survey: Survey,
    question: Question,
    query_vector: QueryVector,
    allowed: npt.NDArray[np.bool_] | None,
    count: int,
    explain: bool,
) -> list[Ranked]:
    vector = query_vector(question.text, lambda word: 1.0)
    if vector is None or survey.dimension is None:
        return []
    at, cosines = nearest_rows(survey, vector, count, allowed)
    return [
        Ranked(place, cosine, Explanation("vector", {"cosine": cosine}, cosine=cosine) if explain else None)
        for place, cosine in zip(at.tolist(), cosines.tolist(), strict=True)
    ]


@dataclass(slots=True)
class _WordPart:
    """A question word with what it gave: to rows that hold it (and, for hybrid recall, to their neighbours)."""

    word: str
    weight: float
    terms: list[tuple[str, WordScores, float]]
    found: WordScores


def _words(survey: Survey, text: str, question: Question, settings: RecallSettings, *, soft: bool) -> list[_WordPart]:
    kept = set(plain(text).split())
    parts = []
    scratch = np.zeros(survey.size, np.float32) if soft and settings.spread else np.empty(0, np.float32)
    for word in question.words:
        if word.text.isalnum() and word.text not in kept and text != question.text:
            continue  # a name that was taken out
        terms = [(word.text, term_scores(survey, term, settings.k1, settings.b), 1.0) for term in word.hashes]
        known = max((scores.rows for _, scores, _ in terms), default=0)
        weight = idf(survey.size, known)
        if soft and settings.soft_weight and len(question.words) <= _SOFT_UP_TO:
            for term, relative, cosine in survey.relatives(word.text, settings.soft_floor, settings.soft_most):
                if term not in word.hashes:
                    scores = term_scores(survey, term, settings.k1, settings.b)
                    terms.append((relative, scores, settings.soft_weight * cosine))
        found = best_of([(scores, share) for _, scores, share in terms], survey.size)
        if soft:
            found = context.spread(survey, found, settings.spread, scratch)
        parts.append(_WordPart(word.text, weight, terms, found))
    return parts


def _matches(parts: list[_WordPart], at: int) -> list[WordMatch]:
    """Which words a row answered, each by its best term."""
    matched = []
    for part in parts:
        best = WordMatch(part.word, "", 0.0)
        for name, scores, share in part.terms:
            position = int(np.searchsorted(scores.at, at))
            if position < scores.rows and scores.at[position] == at:
                value = float(scores.scores[position]) * share
                if value > best.score:
                    best = WordMatch(part.word, name, value)
        if best.score > 0:
            matched.append(best)
    return matched


class _Hybrid:
    """One hybrid ranking, step by step."""

    def __init__(self, survey: Survey, question: Question, query_vector: QueryVector, settings: RecallSettings) -> None:
        self.survey, self.question, self.settings = survey, question, settings
        self.named = survey.actors_named(question.text)
        bare = without_names(question.text, [name for _, name in self.named])
        self.parts = _words(survey, bare, question, settings, soft=True)
        self.weights = {part.word: part.weight for part in self.parts}
        self.lexical = np.zeros(survey.size, np.float32)
        for part in self.parts:
            self.lexical[part.found.at] += part.found.scores
        self.vector = query_vector(bare, self._weight) if survey.dimension is not None and settings.dense else None
        self.cosines: Scores | None = None

    def _weight(self, word: str) -> float:
        """How telling a word is among these rows, for embedders that can weigh."""
        return self.weights.get(word, _FUNCTION_WORD)

    def rank(self, allowed: npt.NDArray[np.bool_] | None, count: int, explain: bool) -> list[Ranked]:
        fused, words, vectors = self._fused(count)
        pool = self._pool(fused, allowed, count)
        components = self._components(fused, words, vectors, pool)
        total: Scores = sum(components.values(), np.zeros(1, np.float32))
        if pool is None:
            best = _best(total, allowed, count)
            at = best
        else:
            best = bits.top(total, count)
            at = pool[best]
        ranked = []
        for position, row in zip(at.tolist(), best.tolist(), strict=True):
            parts = {name: float(values[row]) for name, values in components.items()} if explain else {}
            ranked.append(Ranked(position, float(total[row]), self._explained(position, parts) if explain else None))
        return ranked

    def _fused(self, count: int) -> tuple[Scores, Scores, Scores]:
        """Every row's fused score and its two sides. Cosines are estimates first, then close for the best."""
        survey, pool = self.survey, self.settings.pool
        share = self.settings.dense if self.vector is not None else 0.0
        words = standardised(self.lexical, sparse_scale(self.lexical[self.lexical > 0], survey.size, pool))
        words *= np.float32(1 - share)
        if self.vector is None:
            return words, words, np.zeros_like(words)
        if survey.size <= _SMALL:
            self.cosines = survey.all_close_cosines(self.vector)
        else:
            self.cosines = survey.cosines(self.vector)
            estimate = standardised(self.cosines, scale_of(self.cosines, pool))
            estimate *= np.float32(share)
            estimate += words
            best = bits.top(estimate, max(_RESCORED, 4 * count))
            best = best if survey.absent is None else best[~survey.absent[best]]
            self.cosines[best] = survey.close_cosines(self.vector, best)
        vectors = standardised(self.cosines, scale_of(self.cosines, pool))
        vectors *= np.float32(share)
        return words + vectors, words, vectors

    def _pool(self, fused: Scores, allowed: npt.NDArray[np.bool_] | None, count: int) -> Positions | None:
        """The rows that get their context; None for all."""
        survey = self.survey
        if survey.size <= _POOL_FROM:
            return None
        best = bits.top(fused, max(_POOL, 8 * count))
        lifted = best[:_LIFTED]
        around = [best]
        for links in (survey.previous, survey.next):
            near = links[lifted]
            near = near[near >= 0]
            far = links[near]
            around += [near, far[far >= 0]]
        pool: Positions = np.sort(np.concatenate(around))
        pool = pool[np.append(True, pool[1:] != pool[:-1])]
        if allowed is None:
            return pool
        kept: Positions = pool[allowed[pool]]
        return kept if kept.size >= count else np.flatnonzero(allowed)

    def _components(self, fused: Scores, words: Scores, vectors: Scores, pool: Positions | None) -> dict[str, Scores]:
        """The parts of the score of each row of the pool; they add up to it."""
        survey, settings, question = self.survey, self.settings, self.question
        at: Positions | slice = slice(None) if pool is None else pool
        lent = context.lent_by_neighbours(survey, fused, pool, settings)
        lifted = fused[at] + lent
        scale = scale_of(lifted, settings.pool)
        scored = standardised(lifted, scale)
        inverse = np.float32(1 / scale[1]) if scale[1] else np.float32(0)
        components = {
            "words": words[at] * inverse,
            "vectors": vectors[at] * inverse,
            "neighbours": lent * inverse,
        }
        components["baseline"] = scored - lifted * inverse
        several = question.asks_several
        weight = settings.session * (settings.several_session if several else 1.0)
        components["session"] = np.float32(weight) * context.session_prior(survey.groups[at], scored, settings.pool)
        if len(self.named) == 1:
            weight = settings.actor * (settings.several_actor if several else 1.0)
            components["actor"] = np.float32(weight) * (survey.column("actor")[at] == self.named[0][0])
        components |= context.manner(survey, at, settings)
        for title in question.titles:
            said = _saying(survey, title, np.ones(survey.size, np.bool_))[at]
            components["title"] = components.get("title", np.float32(0)) + np.float32(settings.title) * said
        if question.asks_time:
            components["when"] = np.float32(settings.when) * (survey.flags[at] & TELLS_TIME != 0)
        if question.span is not None and settings.time_words != "off":
            times = survey.column("time")[at].astype(np.float64, copy=False)
            components["time"] = np.float32(settings.time) * context.inside_span(times, question.span, settings)
        if settings.importance:
            importance = survey.column("importance")[at].astype(np.float32)
            components["importance"] = np.float32(settings.importance) * (importance - np.float32(0.5))
        return {name: values.astype(np.float32, copy=False) for name, values in components.items()}

    def _explained(self, at: int, components: dict[str, float]) -> Explanation:
        notes = []
        if len(self.named) == 1:
            notes.append(f"the question names {self.named[0][1]}")
        if self.question.span is not None:
            span = self.question.span
            notes.append(f"“{span.words}” is {span.start:%Y-%m-%d %H:%M} to {span.end:%Y-%m-%d %H:%M}")
        return Explanation(
            mode="hybrid",
            components=components,
            bm25=float(self.lexical[at]),
            cosine=None if self.cosines is None else float(self.cosines[at]),
            words=_matches(self.parts, at),
            notes=notes,
        )
