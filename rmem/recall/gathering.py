"""What a question looks for, told to a store that searches by itself: the candidates of both sides, and whatever else
the ranking will want to see. The ranking itself is the same for all."""

from __future__ import annotations

from ..index.analyser import question_words
from ..index.bm25 import idf
from ..index.prospect import Asked, Prospect
from ..index.survey import Survey
from .hybrid import FUNCTION_WORD, QueryVector
from .question import Question, is_open, without_names
from .settings import RecallSettings
from .words import sought

_SIDE = 512  # rows that each side sends; the scales of both come from the best few hundred scores


def gathered(
    prospect: Prospect, question: Question, query_vector: QueryVector, settings: RecallSettings, mode: str, count: int
) -> Survey:
    """A survey of the candidates for a question."""
    phrases = [
        [word.hashes for word in question_words(phrase.written)] for phrase in (*question.must, *question.quoted)
    ]
    others = [word for phrase in question.must_not for word in question_words(phrase.written)]
    asked = Asked(
        phrases=[phrase for phrase in phrases if phrase],
        also=[term for word in others for term in word.hashes],
        side=max(_SIDE, 4 * count),
        k1=settings.k1,
        b=settings.b,
    )
    if mode == "vector":
        asked.vector = query_vector(question.text, lambda word: 1.0) if prospect.dimension is not None else None
        return prospect.gather(asked)
    named = prospect.actors_named(question.text) if mode == "hybrid" else []
    bare = without_names(question.topic, named) if mode == "hybrid" else question.text
    found = sought(prospect, question, bare, settings, soft=mode == "hybrid")
    held = prospect.holding(found.terms)
    weights = found.weights(prospect.size, lambda number: held.get(found.terms[number], 0))
    asked.held = held
    asked.words = [
        [
            (found.terms[at], found.shares[at] * idf(prospect.size, held.get(found.terms[at], 0)))
            for at in range(part.first, part.first + len(part.names))
        ]
        for part in found.parts
    ]
    if mode == "hybrid":
        if prospect.dimension is not None and settings.dense > 0:
            asked.vector = query_vector(bare, lambda word: weights.get(word, FUNCTION_WORD))
        asked.actors = named
        if question.span is not None:
            asked.span = question.span.start.timestamp(), question.span.end.timestamp()
        if is_open(weights):
            asked.newest = asked.side
    return prospect.gather(asked)
