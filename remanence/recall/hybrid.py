"""One hybrid ranking: words and vectors → fused → context and priors → the best.

Every row is looked at by both sides. In a small survey all rows go on; in a large one those that either side
finds best, and the neighbours that these may lift: the rest cannot reach the top."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..index.bits import least, most, top
from ..index.manner import TELLS_TIME
from ..index.survey import Survey
from . import context
from .explain import Explanation
from .fusion import scale_of, standardised
from .phrases import saying
from .question import Question, is_open, without_names
from .settings import RecallSettings
from .words import QuestionWords

Scores = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]
Vector = npt.NDArray[np.float32]
QueryVector = Callable[[str, Callable[[str], float]], Vector | None]
"""(question without names, weight of a word) → its vector; None where there are no vectors."""

_ALL_ROWS = 4096  # up to here every row gets its context
_SIDE = 400  # of a larger survey: rows that each side sends on
_LIFTED = 96  # of those: how many may lift their neighbours
_RESCORED = 400
FUNCTION_WORD = 0.5  # what words outside the index weigh in a question's vector


class Hybrid:
    def __init__(self, survey: Survey, question: Question, query_vector: QueryVector, settings: RecallSettings) -> None:
        self.survey, self.question, self.settings = survey, question, settings
        self.named = survey.actors_named(question.text)
        bare = without_names(question.topic, [name for _, name in self.named])
        self.words = QuestionWords(survey, question, bare, settings, soft=True)
        # Where only a time or a person is asked for, that decides.
        self.emphasis = settings.open if is_open(self.words.weights) else 1.0
        self.lexical = self.words.scores
        wanted = survey.dimension is not None and settings.dense > 0
        self.vector = query_vector(bare, self._weight) if wanted else None
        self.share = settings.dense if self.vector is not None else 0.0
        self.cosines = survey.cosines(self.vector) if self.vector is not None else None

    def _weight(self, word: str) -> float:
        """How telling a word is among these rows, for embedders that can weigh."""
        return self.words.weights.get(word, FUNCTION_WORD)

    def rank(self, allowed: npt.NDArray[np.bool_] | None, count: int) -> tuple[Positions, dict[str, Scores]]:
        """The best rows, best first, and the parts of their scores."""
        at = self._candidates(allowed, count)
        components = self._components(at)
        if allowed is not None:
            inside = allowed[at]
            at = at[inside]
            components = {name: values[inside] for name, values in components.items()}
        best = top(sum(components.values(), np.zeros(at.size, np.float32)), count)
        return at[best], {name: values[best] for name, values in components.items()}

    def _candidates(self, allowed: npt.NDArray[np.bool_] | None, count: int) -> Positions:
        """Rows that may reach the top, ascending; the best of them are looked at closely."""
        survey = self.survey
        if survey.size <= max(_ALL_ROWS, 2 * count):
            at = np.arange(survey.size)
            self._look_closely(at, self._rough(at) if at.size > _RESCORED else None)
            return at
        wanted = max(_SIDE, 4 * count)
        chosen = np.zeros(survey.size, np.bool_)
        chosen[most(self.lexical, wanted)] = True
        if self.cosines is not None:
            chosen[self.cosines.best(wanted)] = True
        if self.emphasis > 1:
            chosen[self._asked_for(wanted)] = True
        if allowed is not None and int((chosen & allowed).sum()) < count:
            chosen |= allowed
        at = np.flatnonzero(chosen)
        rough = self._rough(at)
        self._look_closely(at, rough)
        if allowed is None and self.emphasis <= 1 and at.size > wanted:
            chosen[:] = False
            chosen[at[least(-rough, wanted)]] = True
        lifting = at[least(-rough, _LIFTED)]
        for step in (survey.before, survey.after):
            near = step(lifting)
            for place in (near, step(near)):
                chosen[place[place >= 0]] = True
        return np.flatnonzero(chosen)

    def _asked_for(self, wanted: int) -> Positions:
        """The newest rows of the time and of the one person that the question names."""
        found = [np.empty(0, np.int64)]
        if self.question.span is not None:
            times, span = self.survey.column("time"), self.question.span
            inside = (times >= span.start.timestamp()) & (times <= span.end.timestamp())
            found.append(np.flatnonzero(inside)[-wanted:])
        if len(self.named) == 1:
            found.append(np.flatnonzero(self.survey.column("actor") == self.named[0][0])[-wanted:])
        return np.concatenate(found)

    def _look_closely(self, at: Positions, rough: Scores | None) -> None:
        if self.cosines is not None:
            self.cosines.look_closely(at if rough is None else at[least(-rough, _RESCORED)])

    def _rough(self, at: Positions) -> Scores:
        """A first fused score, good enough to choose by."""
        words = self.lexical[at]
        rough = (1 - self.share) * standardised(words, scale_of(words, self.settings.pool))
        if self.cosines is not None:
            cosines = self.cosines.at(at)
            rough = rough + self.share * standardised(cosines, scale_of(cosines, self.settings.pool))
        return rough.astype(np.float32)

    def _components(self, at: Positions) -> dict[str, Scores]:
        """The parts of the score of each candidate; they add up to it."""
        survey, settings, question = self.survey, self.settings, self.question
        words_scale = scale_of(self.lexical[at], settings.pool)
        vector_scale = (0.0, 0.0) if self.cosines is None else scale_of(self.cosines.at(at), settings.pool)

        def words(places: Positions) -> Scores:
            return np.float32(1 - self.share) * standardised(self.lexical[places], words_scale)

        def vectors(places: Positions) -> Scores:
            if self.cosines is None:
                return np.zeros(places.size, np.float32)
            return np.float32(self.share) * standardised(self.cosines.at(places), vector_scale)

        own_words, own_vectors = words(at), vectors(at)
        lent = context.lent_by_neighbours(survey, at, lambda places: words(places) + vectors(places), settings)
        lifted = own_words + own_vectors + lent
        scale = scale_of(lifted, settings.pool)
        scored = standardised(lifted, scale)
        inverse = np.float32(1 / scale[1]) if scale[1] else np.float32(0)
        components = {
            "words": own_words * inverse,
            "vectors": own_vectors * inverse,
            "neighbours": lent * inverse,
            "baseline": scored - lifted * inverse,
        }
        several = question.asks_several
        weight = settings.session * (settings.several_session if several else 1.0)
        prior = context.session_prior(survey.groups_at(at), scored, settings.pool)
        components["session"] = np.float32(weight) * prior
        if len(self.named) == 1:
            weight = self.emphasis * settings.actor * (settings.several_actor if several else 1.0)
            components["actor"] = np.float32(weight) * (survey.column_at("actor", at) == self.named[0][0])
        components |= context.manner(survey, at, settings)
        for title in question.titles:
            said = saying(survey, title, np.ones(survey.size, np.bool_))[at]
            components["title"] = components.get("title", np.float32(0)) + np.float32(settings.title) * said
        if question.asks_time:
            tells = survey.column_at("flags", at) & TELLS_TIME != 0
            components["when"] = np.float32(settings.when) * tells
        if question.span is not None and settings.time_words != "off":
            times = survey.column_at("time", at)
            weight = self.emphasis * settings.time
            components["time"] = np.float32(weight) * context.inside_span(times, question.span, settings)
        if settings.importance:
            importance = survey.column_at("importance", at).astype(np.float32)
            components["importance"] = np.float32(settings.importance) * (importance - np.float32(0.5))
        return {name: values.astype(np.float32, copy=False) for name, values in components.items()}

    def explained(self, at: int, components: dict[str, float]) -> Explanation:
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
            asked=dict(self.words.weights),
            rows=self.survey.size,
            notes=notes,
        )
