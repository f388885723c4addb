"""Score the words of a question: the terms of each word, similar words in the memories, and BM25 over the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..index.analyser import Word, plain
from ..index.bm25 import add_and_clear, idf, score_terms
from ..index.filtered_rows import FilteredRows
from .context import dependence
from .explain import WordMatch
from .question import Question
from .settings import RecallSettings
from .spelling import meant_words

Scores = npt.NDArray[np.float32]

_SOFT_UP_TO = 32  # words; a pasted log is matched by its own words
_LONG, _LEAD = 24, 4  # words from which on a text is long; words at its beginning that always count in full
_COMMON, _MANY = 0.05, 1024  # words in more rows than this share, or than this, say nothing about neighbours


@dataclass(slots=True)
class WordTerms:
    """A question word and its terms, which are adjacent in the scored terms, from `first` on."""

    word: str
    names: list[str]
    own: int  # number of terms of the word itself; the rest are of similar words
    first: int
    emphasis: float


class SimilarWords(Protocol):
    """A source of words in the memories that are similar to question words."""

    def relatives(self, words: Sequence[Word]) -> dict[str, list[tuple[int, str, float]]]: ...

    def row_counts(self, terms: Sequence[int]) -> dict[int, int]: ...


class QuestionTerms(NamedTuple):
    """The terms of a question and their weights, word by word."""

    parts: list[WordTerms]
    terms: list[int]
    shares: list[float]

    def idfs(self, rows: int, counts: Sequence[int]) -> dict[str, float]:
        """Return the idf of each word; `counts` are the numbers of rows with each term."""
        return {part.word: idf(rows, max(counts[part.first : part.first + part.own], default=0)) for part in self.parts}

    def weights(self, idfs: Mapping[str, float]) -> dict[str, float]:
        """Return the weight of each word in the score: its idf, less towards the end of a long text."""
        return {part.word: part.emphasis * idfs[part.word] for part in self.parts}


def emphases(count: int) -> list[float]:
    """Return the weights of a question's words by their place. A long text, such as an issue or a prompt, says first
    what it is about: the longer it is, the fewer words at its beginning count in full, and the others as 1/place. A
    pasted output has no such beginning."""
    if count <= _LONG:
        return [1.0] * count
    lead = max(_LEAD, _LONG * (_LONG / count) ** 2)
    return [min(1.0, lead / place) for place in range(1, count + 1)]


def question_terms(
    source: SimilarWords, question: Question, text: str, settings: RecallSettings, *, soft: bool
) -> QuestionTerms:
    """Find the terms of a question without its names, and with `soft` those of similar words in the memories."""
    parts: list[WordTerms] = []
    terms: list[int] = []
    shares: list[float] = []
    kept = set(plain(text).split()) if text != question.text else None
    words = [word for word in question.words if kept is None or not word.text.isalnum() or word.text in kept]
    related: dict[str, list[tuple[int, str, float]]] = {}
    if soft and settings.similar and len(words) <= _SOFT_UP_TO:
        related = source.relatives(words) | meant_words(words, source.row_counts)
    weights = [1.0] * len(words) if question.is_output else emphases(len(words))
    for word, emphasis in zip(words, weights, strict=True):
        part = WordTerms(word.text, [word.text] * len(word.hashes), len(word.hashes), len(terms), emphasis)
        terms += word.hashes
        shares += [emphasis] * len(word.hashes)
        for term, name, cosine in related.get(word.text, ()):
            if term not in word.hashes:
                part.names.append(name)
                terms.append(term)
                shares.append(emphasis * settings.similar * cosine)
        parts.append(part)
    return QuestionTerms(parts, terms, shares)


class QuestionWords:
    """Every word of a question without its names, scored over filtered rows. `scores` is BM25 for each row."""

    def __init__(
        self, found_rows: FilteredRows, question: Question, text: str, settings: RecallSettings, *, soft: bool
    ) -> None:
        found = question_terms(found_rows, question, text, settings, soft=soft)
        self._parts = found.parts
        self._scored = score_terms(found_rows, found.terms, found.shares)
        self._counts = self._scored.counts()
        self.idfs = found.idfs(found_rows.population, self._counts)
        self.weights = found.weights(self.idfs)
        self.scores = self._sum(found_rows, settings.context if soft else 0.0)

    def _sum(self, found_rows: FilteredRows, context: float) -> Scores:
        """Sum the best term of each word for each row. A word also counts, by `context`, for the turns next to one that
        contains it, and by half of that at two steps."""
        total = np.zeros(found_rows.size + 1, np.float32)  # the last place collects what goes to position -1
        scratch = np.zeros(found_rows.size + 1, np.float32)
        parts = [self._scored.part(part.first, part.first + len(part.names)) for part in self._parts]
        few = min(_COMMON * found_rows.population + 256, _MANY)
        held = [sum(self._counts[part.first : part.first + len(part.names)]) for part in self._parts]
        lending = [bool(context) and number <= few for number in held]
        reached = _neighbours(found_rows, [rows for (rows, _), lends in zip(parts, lending, strict=True) if lends])
        steps = np.array([[context], [context / 2], [context], [context / 2]], np.float32)
        shares = steps * dependence(found_rows, reached.ravel()).reshape(reached.shape) if reached.size else steps
        start = 0
        for part, (at, scores), lends in zip(self._parts, parts, lending, strict=True):
            if len(part.names) == 1 and not lends:  # each row has at most one score
                total[at] += scores
                continue
            np.maximum.at(scratch, at, scores)
            if lends:
                end = start + at.size
                near = reached[:, start:end].ravel()
                np.maximum.at(scratch, near, (shares[:, start:end] * scratch[at]).ravel())
                at = np.concatenate([at, near])
                start = end
            add_and_clear(scratch, total, at)
        return total[: found_rows.size]

    def holds(self, at: npt.NDArray[np.int64]) -> Scores:
        """Return a row for each word: 1 where one of some rows contains the word itself, not a similar one."""
        found = np.zeros((len(self._parts), at.size), np.float32)
        for part, holds in zip(self._parts, found, strict=True):
            for number in range(part.first, part.first + part.own):
                rows, _ = self._scored.part(number, number + 1)
                if rows.size:
                    holds[rows[np.minimum(np.searchsorted(rows, at), rows.size - 1)] == at] = 1
        return found

    def matches(self, at: int) -> list[WordMatch]:
        """Return the words that a row matches, each by its best term."""
        matched = []
        for part in self._parts:
            best = WordMatch(part.word, "", 0.0)
            for number, name in enumerate(part.names):
                rows, scores = self._scored.part(part.first + number, part.first + number + 1)
                place = int(np.searchsorted(rows, at))
                if place < rows.size and rows[place] == at and scores[place] > best.score:
                    best = WordMatch(part.word, name, float(scores[place]))
            if best.score > 0:
                matched.append(best)
        return matched


def _neighbours(found_rows: FilteredRows, parts: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the rows one and two steps after and before those of all parts, a row for each step."""
    at = np.concatenate([np.empty(0, np.int64), *parts])
    after, before = found_rows.after(at), found_rows.before(at)
    return np.stack([after, found_rows.after(after), before, found_rows.before(before)])
