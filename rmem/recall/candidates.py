"""Fetch the candidates for a question from a store that searches in its database, with all that the ranking will need.
The ranking itself is the same for all stores."""

from __future__ import annotations

from ..index.analyser import question_words
from ..index.bm25 import idf
from ..index.candidate_source import CandidateRequest, CandidateSource
from ..index.filtered_rows import FilteredRows
from .hybrid import FUNCTION_WORD, QueryVector
from .question import Question, is_open, without_names
from .settings import RecallSettings
from .words import question_terms

_ROWS_PER_SIDE = 512  # candidates by words, and by vectors; both scales come from the best few hundred scores


def gather_candidates(
    source: CandidateSource,
    question: Question,
    query_vector: QueryVector,
    settings: RecallSettings,
    mode: str,
    count: int,
) -> FilteredRows:
    """Return the candidates for a question as FilteredRows."""
    phrases = [
        [word.hashes for word in question_words(phrase.written)] for phrase in (*question.must, *question.quoted)
    ]
    others = [word for phrase in question.must_not for word in question_words(phrase.written)]
    request = CandidateRequest(
        phrases=[phrase for phrase in phrases if phrase],
        also=[term for word in others for term in word.hashes],
        side=max(_ROWS_PER_SIDE, 4 * count),
    )
    if mode == "vector":
        request.vector = query_vector(question.text, lambda word: 1.0) if source.dimension is not None else None
        return source.gather(request)
    named = source.actors_named(question.text) if mode == "hybrid" else []
    bare = without_names(question.topic, named) if mode == "hybrid" else question.text
    terms = question_terms(source, question, bare, settings, soft=mode == "hybrid")
    row_counts = source.row_counts(terms.terms)
    weights = terms.weights(terms.idfs(source.size, [row_counts.get(term, 0) for term in terms.terms]))
    request.held = row_counts
    request.words = [
        [
            (terms.terms[at], terms.shares[at] * idf(source.size, row_counts.get(terms.terms[at], 0)))
            for at in range(part.first, part.first + len(part.names))
        ]
        for part in terms.parts
    ]
    if mode == "hybrid":
        if source.dimension is not None and settings.dense:
            request.vector = query_vector(bare, lambda word: weights.get(word, FUNCTION_WORD))
        request.actors = named
        if question.span is not None:
            request.span = question.span.start.timestamp(), question.span.end.timestamp()
        if is_open(weights):
            request.newest = request.side
    return source.gather(request)
