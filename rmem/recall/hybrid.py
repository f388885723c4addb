"""Rank rows by words and vectors: score both, fuse, add context and priors, return the best.

Both sides score every row. A few rows are all ranked; of many, only the best of either side and the neighbours whose
scores these may raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..index.best_scores import least, most, top
from ..index.filtered_rows import FilteredRows
from ..index.text_features import TELLS_TIME
from . import context
from .explain import Explanation
from .fusion import scale_of, standardise
from .newer import DEPTH, newest_first
from .phrases import rows_with_phrase
from .question import Question, is_open, without_names
from .ranked import Ranked, add_note, match_scores_to_order
from .relevance import SIGNALS, WEIGHTS, relevance, signals
from .settings import RecallSettings
from .words import QuestionWords

Scores = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]
Vector = npt.NDArray[np.float32]
QueryVector = Callable[[str, Callable[[str], float]], Vector | None]
"""(question without names, weight of a word) -> its vector; None for a store without vectors."""

_ROWS_PER_SIDE = 448  # candidates by words, and by vectors, if there are too many rows to rank all
_WITH_NEIGHBOURS = 160  # of these candidates: those whose neighbours are added
_ACCURATE = 448  # candidates whose accurate cosines are computed
_COMPETING = 0.3  # a row so far below the best by words and vectors counts 1 / e where turns compete with notes
# Least deviation for few rows: a share of the best word score, a cosine, a fused score.
_LEAST_WORDS, _LEAST_COSINE, _LEAST_FUSED = 0.3, 0.2, 1.4
_EMPHASIS = 5.0  # of the time and the person that a question names, if it asks for nothing else
FUNCTION_WORD = 0.5  # weight of words outside the index in a question's vector


def _merge_sorted(positions: Sequence[Positions]) -> Positions:
    """Merge positions: distinct, ascending."""
    every = np.sort(np.concatenate(positions))
    return every[np.append(True, every[1:] != every[:-1])] if every.size else every


class _ScoredCandidates(NamedTuple):
    """Candidates, their scores and the components of these."""

    at: Positions
    total: Scores
    words: Scores
    vectors: Scores
    lent: Scores
    deviation: float
    fused: Scores  # words, vectors and neighbours together
    added: dict[str, Scores]

    def components(self, number: int) -> dict[str, float]:
        """Return the components of the score of one candidate; they add up to it."""
        inverse = 1 / self.deviation if self.deviation else 0.0
        parts = {
            "words": float(self.words[number]) * inverse,
            "vectors": float(self.vectors[number]) * inverse,
            "neighbours": float(self.lent[number]) * inverse,
        }
        parts["baseline"] = float(self.fused[number]) - sum(parts.values())
        return parts | {name: float(values[number]) for name, values in self.added.items()}


class Hybrid:
    """The ranking of one question over some rows: `__init__` scores words and vectors, `rank` returns the best rows."""

    def __init__(
        self, found_rows: FilteredRows, question: Question, query_vector: QueryVector, settings: RecallSettings
    ) -> None:
        self.found_rows, self.question, self.settings = found_rows, question, settings
        self.named = found_rows.actors_named(question.text)
        bare = without_names(question.topic, [name for _, name in self.named])
        self.words = QuestionWords(found_rows, question, bare, settings, soft=True)
        # If the question asks only for a time or a person, these decide.
        self.emphasis = _EMPHASIS if is_open(self.words.weights) else 1.0
        by_itself = self.emphasis > 1 and (len(self.named) == 1 or question.span is not None)
        self.lexical = np.zeros_like(self.words.scores) if by_itself else self.words.scores
        dense = settings.dense or 0.0
        wanted = found_rows.dimension is not None and dense > 0
        self.vector = query_vector(bare, self._weight) if wanted else None
        self.share = dense if self.vector is not None else 0.0
        self.cosines = found_rows.cosines(self.vector) if self.vector is not None else None

    def _weight(self, word: str) -> float:
        """Return the weight of a word among these rows, for embedders that weigh words."""
        return self.words.weights.get(word, FUNCTION_WORD)

    def rank(self, allowed: npt.NDArray[np.bool_] | None, count: int, *, explain: bool) -> list[Ranked]:
        """Return the best rows, best first."""
        at = self._candidates(allowed, count)
        if not at.size:
            return []
        scored = self._score(at)
        total = scored.total
        if allowed is not None:
            total = np.where(allowed[at], total, -np.inf)
        best = top(total, max(count, DEPTH) if self.settings.newer else count)
        best = best[total[best] > -np.inf]
        if not best.size:
            return []
        found, of_another = self._signals(at[best], total[best], total)
        weights = WEIGHTS["no vectors" if self.cosines is None else "hybrid"]
        likely = relevance(found, weights, of_another).tolist()
        seqs = self.found_rows.seq[at[best]].tolist()
        rows = zip(best.tolist(), at[best].tolist(), seqs, total[best].tolist(), likely, found.tolist(), strict=True)
        ranked = [
            Ranked(
                seq,
                score,
                likelihood,
                self._explain(place, scored.components(number), shown) if explain else None,
            )
            for number, place, seq, score, likelihood, shown in rows
        ]
        return self._newest_first(ranked, at[best], total[best])[:count]

    def _newest_first(self, ranked: list[Ranked], at: Positions, scores: Scores) -> list[Ranked]:
        """Put newer rows before older ones that they replace; they are as likely to answer as these."""
        if not self.settings.newer or len(ranked) < 2:
            return ranked
        at, scores = at[:DEPTH], scores[:DEPTH]
        order = newest_first(self.found_rows, self.question, at, scores, self.words.holds(at), self.settings.newer)
        if order == sorted(order):
            return ranked
        moved = []
        for place, number in enumerate(order):
            row = ranked[number]
            passed = [ranked[other].relevance for other in order[place + 1 :] if other < number]
            row = row._replace(relevance=max([row.relevance, *passed]))
            was_passed = any(other > number for other in order[:place])
            moved.append(add_note(row, "a newer memory about the same comes first") if was_passed else row)
        return match_scores_to_order([*moved, *ranked[len(order) :]], "newer")

    def _signals(
        self, at: Positions, scores: Scores, competing: Scores
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Return the signals of relevance of each of the best rows, and which are of another person than the question
        names."""
        total_weight = sum(self.words.weights.values())
        words = self.lexical[at] / np.float32(total_weight or 1)
        cosines = np.zeros(at.size, np.float32) if self.cosines is None else self.cosines.at(at)
        of_another = np.zeros(at.size, np.bool_)
        if len(self.named) == 1:
            actors = self.found_rows.column_at("actor", at)
            of_another = (actors != self.found_rows.nobody) & (actors != self.named[0][0])
        return signals(words, cosines, scores, competing), of_another

    def _candidates(self, allowed: npt.NDArray[np.bool_] | None, count: int) -> Positions:
        """Return rows that may reach the top, ascending; compute accurate cosines for the best of them."""
        found_rows = self.found_rows
        if found_rows.small or found_rows.size <= 2 * count:
            at = np.arange(found_rows.size)
            if self.cosines is not None and self.cosines.estimated:
                self.cosines.look_closely(at[least(-self._rough_scores(at), _ACCURATE)])
            return at
        wanted = max(_ROWS_PER_SIDE, 4 * count)
        found = [most(self.lexical, wanted)]
        if self.cosines is not None:
            found.append(self.cosines.best(wanted))
        if self.emphasis > 1:
            found.append(self._named_rows(wanted))
        at = _merge_sorted(found)
        if allowed is not None and int(allowed[at].sum()) < count:
            at = _merge_sorted([at, np.flatnonzero(allowed)])
        below = -self._rough_scores(at)
        best = least(below, wanted)
        if self.cosines is not None:
            self.cosines.look_closely(at[best if wanted == _ACCURATE else least(below, _ACCURATE)])
        raising = at[least(below, _WITH_NEIGHBOURS)]
        if allowed is None and self.emphasis <= 1:
            at = at[best]
        before, after = found_rows.before(raising), found_rows.after(raising)
        near = _merge_sorted([at, before, found_rows.before(before), after, found_rows.after(after)])
        return near[int(np.searchsorted(near, 0)) :]

    def _named_rows(self, wanted: int) -> Positions:
        """Return the newest rows of the time and of the one person that the question names."""
        found = [np.empty(0, np.int64)]
        if self.question.span is not None:
            times, span = self.found_rows.column("time"), self.question.span
            inside = (times >= span.start.timestamp()) & (times <= span.end.timestamp())
            found.append(np.flatnonzero(inside)[-wanted:])
        if len(self.named) == 1:
            found.append(np.flatnonzero(self.found_rows.column("actor") == self.named[0][0])[-wanted:])
        return np.concatenate(found)

    def _rough_scores(self, at: Positions) -> Scores:
        """Return a rough fused score, to choose candidates."""
        words = self.lexical[at]
        rough = (1 - self.share) * standardise(words, scale_of(words))
        if self.cosines is not None:
            cosines = self.cosines.at(at)
            rough = rough + self.share * standardise(cosines, scale_of(cosines))
        return rough.astype(np.float32)

    def _score(self, at: Positions) -> _ScoredCandidates:
        """Score each candidate."""
        found_rows, settings, question = self.found_rows, self.settings, self.question
        own = self.lexical.take(at)
        words_scale = scale_of(own, _LEAST_WORDS * float(own.max()))
        own_words = np.float32(1 - self.share) * standardise(own, words_scale)
        own_vectors, vector_scale = np.zeros(at.size, np.float32), (0.0, 0.0)
        if self.cosines is not None:
            cosines = self.cosines.at(at)
            vector_scale = scale_of(cosines, _LEAST_COSINE)
            own_vectors = np.float32(self.share) * standardise(cosines, vector_scale)
        own_scores = own_words + own_vectors
        if found_rows.small:
            around = found_rows.once(settings, lambda: context.Surroundings(found_rows, at, settings))
            neighbour_scores = np.append(own_scores, np.float32(0)).take(around.places)
        else:
            around = context.Surroundings(found_rows, at, settings)
            places = around.places
            neighbour_scores = np.float32(1 - self.share) * standardise(self.lexical.take(places), words_scale)
            if self.cosines is not None:
                neighbour_scores += np.float32(self.share) * standardise(self.cosines.at(places), vector_scale)
            neighbour_scores *= places >= 0
        lent = around.lent(neighbour_scores, settings)
        combined = own_scores + lent
        scale = scale_of(combined, _LEAST_FUSED)
        scored = standardise(combined, scale)
        competing = np.exp((own_scores - own_scores.max()) / np.float32(_COMPETING))
        added = {
            "substance": around.substance_prior(competing),
            "importance": around.importance,
            "session": around.session_prior(scored, competing, settings),
        }
        actors = found_rows.column_at("actor", at)
        if len(self.named) == 1:
            added["actor"] = np.float32(self.emphasis * settings.named) * (actors == self.named[0][0])
        if question.asks_own and (assistants := found_rows.assistants()):
            added["own"] = np.float32(-settings.own) * np.isin(actors, assistants)
        if question.quoted:
            candidates = np.zeros(found_rows.size, np.bool_)
            candidates[at] = True
            quoted = added["quoted"] = np.zeros(at.size, np.float32)
            for phrase in question.quoted:
                quoted += np.float32(settings.named) * rows_with_phrase(found_rows, phrase, candidates)[at]
        if question.asks_time:
            tells = found_rows.column_at("flags", at) & TELLS_TIME != 0
            added["when"] = np.float32(settings.time / 2) * tells
        if question.span is not None and settings.time:
            times = found_rows.column_at("time", at)
            weight = self.emphasis * settings.time
            added["time"] = np.float32(weight) * context.inside_span(times, question.span)
        total = sum(added.values(), scored)
        return _ScoredCandidates(at, total, own_words, own_vectors, lent, scale[1], scored, added)

    def _explain(self, at: int, components: dict[str, float], shown: Sequence[float]) -> Explanation:
        notes = []
        if len(self.named) == 1:
            notes.append(f"the question names {self.named[0][1]}")
        if self.question.span is not None:
            span = self.question.span
            notes.append(f"“{span.words}” is {span.start:%Y-%m-%d %H:%M} to {span.end:%Y-%m-%d %H:%M}")
        place = np.array([at])
        return Explanation(
            mode="hybrid",
            components=components,
            bm25=float(self.lexical[at]),
            cosine=None if self.cosines is None else float(self.cosines.at(place)[0]),
            words=self.words.matches(at),
            asked=dict(self.words.idfs),
            rows=self.found_rows.size,
            notes=notes,
            signals=dict(zip(SIGNALS, shown, strict=True)),
        )
