"""BM25 over filtered rows: idf = ln(1 + (N - n + ½) / (n + ½)), its statistics taken inside the filter, so that a
filter answers exactly as a store that held nothing else would. All terms of a question are scored in one go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .analyser import Word
from .filtered_rows import Matches

B = 0.75
_K1, _MOST_K1 = 0.5, 10.0
_LONG = 700.0  # average terms of texts that mention so many things that repetition tells what they are about
_SPARSE = 32  # adding 32 consecutive rows takes as long as adding one by index


class Texts(Protocol):
    """Rows by position 0…size-1 and their terms: filtered rows of memories, or a column of a table."""

    size: int
    average_length: float

    @property
    def length(self) -> npt.NDArray[np.int32]: ...

    def matches(self, terms: Sequence[int]) -> Matches: ...


class Scored(NamedTuple):
    """A score for every row, and the upper limit: the score of a row that repeats every word for ever."""

    scores: npt.NDArray[np.float32]
    possible: float


@dataclass(slots=True)
class TermScores:
    """The scores of some terms for the rows that contain them, term after term."""

    at: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]
    ends: list[int]
    held: list[int] | None = None

    def part(self, first: int, end: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return positions (ascending within a term) and scores of the terms first…end-1."""
        low = self.ends[first - 1] if first else 0
        high = self.ends[end - 1] if end else 0
        return self.at[low:high], self.scores[low:high]

    def counts(self) -> list[int]:
        """Return the number of rows of each term."""
        if self.held is not None:
            return self.held
        return [end - start for start, end in zip((0, *self.ends), self.ends, strict=False)]


def idf(rows: int, holding: int) -> float:
    return math.log(1 + (rows - holding + 0.5) / (holding + 0.5))


def saturation(average_length: float) -> float:
    """Return k1, by which repetitions of a word count: hardly in short texts, up to 11 times in long ones."""
    return min(_K1 + (average_length / _LONG) ** 2, _MOST_K1)


def score_terms(found_rows: Texts, terms: Sequence[int], shares: Sequence[float] | None = None) -> TermScores:
    """Compute BM25 of every term for every row that contains it, times the term's share."""
    found = found_rows.matches(terms)
    average = found_rows.average_length
    k1 = saturation(average)
    sizes = np.diff(np.array([0, *found.ends]))
    held = sizes if found.held is None else np.array(found.held)
    rows = found_rows.size if found.rows is None else found.rows
    weights = ((k1 + 1) * np.log1p((rows - held + 0.5) / (held + 0.5))).astype(np.float32)
    if shares is not None:
        weights *= np.array(shares, np.float32)
    counts = found.counts.astype(np.float32)
    norm = found_rows.length[found.at] * np.float32(k1 * B / max(average, 1e-9))
    norm += np.float32(k1 * (1 - B))
    norm += counts
    counts *= np.repeat(weights, sizes)
    counts /= norm
    return TermScores(found.at, counts, found.ends, found.held)


def add_and_clear(scratch: npt.NDArray[np.float32], total: npt.NDArray[np.float32], at: npt.NDArray[np.int64]) -> None:
    """Add the scores of some rows in `scratch`, which is zero elsewhere, to `total`, and reset them. A row may occur
    more than once, because equal values are then written."""
    if at.size * _SPARSE > total.size:
        total += scratch
        scratch[:] = 0
    else:
        total[at] = total[at] + scratch[at]
        scratch[at] = 0


def bm25(found_rows: Texts, words: Sequence[Word]) -> npt.NDArray[np.float32]:
    """Score every row; each word counts by the best of its hashes."""
    return score_words(found_rows, words).scores


def score_words(found_rows: Texts, words: Sequence[Word]) -> Scored:
    """As `bm25`, with the highest possible score."""
    total = np.zeros(found_rows.size, np.float32)
    scratch = np.zeros(found_rows.size, np.float32)
    scored = score_terms(found_rows, [term for word in words for term in word.hashes])
    counts = scored.counts()
    most = saturation(found_rows.average_length) + 1
    first, possible = 0, 0.0
    for word in words:
        end = first + len(word.hashes)
        at, scores = scored.part(first, end)
        np.maximum.at(scratch, at, scores)  # of the terms of one word only the best counts
        add_and_clear(scratch, total, at)
        if word.hashes:
            held = [count for count in counts[first:end] if count]
            possible += most * idf(found_rows.size, min(held, default=0))
        first = end
    return Scored(total, possible)
