"""`CandidateSource`: statistics about rows inside a filter that stay in the database. It selects the candidates for one
question and lays them out as FilteredRows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..filters import Filter
from .analyser import Word
from .filtered_rows import FilteredRows, Matches, RowSource
from .recall_index import RecallIndex


@dataclass(slots=True)
class CandidateRequest:
    """What a question looks for."""

    words: Sequence[Sequence[tuple[int, float]]] = ()
    """For each word its (term, weight) pairs, of which the best counts."""
    vector: npt.NDArray[np.float32] | None = None
    seqs: Sequence[int] = ()
    """Rows that an engine beside the store found for the vector, which is then not looked for."""
    phrases: Sequence[Sequence[Sequence[int]]] = ()
    """Phrases: words that a row must all contain, each with its terms."""
    span: tuple[float, float] | None = None
    """A time span whose newest rows are candidates, whatever they contain."""
    actors: Sequence[str] = ()
    """Actors named in the question, whose newest rows are candidates."""
    also: Sequence[int] = ()
    """Further terms that the ranking will look up."""
    side: int = 512
    """Number of candidates by words, and by vectors."""
    newest: int = 64
    """Number of candidates by time, and by actor."""
    held: Mapping[int, int] = field(default_factory=dict)
    """Number of rows of each term, from `row_counts`."""

    @property
    def terms(self) -> list[int]:
        """Return the distinct terms."""
        found = [term for word in self.words for term, _ in word]
        found += [term for phrase in self.phrases for word in phrase for term in word]
        return list(dict.fromkeys([*found, *self.also]))


class CandidateSource(ABC):
    """Statistics about the rows inside one filter, which stay in the database."""

    size: int
    average_length: float
    dimension: int | None

    @abstractmethod
    def actors_named(self, text: str) -> list[str]:
        """Return the actors of these rows that a text names."""

    @abstractmethod
    def relatives(self, words: Sequence[Word]) -> dict[str, list[tuple[int, str, float]]]:
        """As `FilteredRows.relatives`."""

    @abstractmethod
    def row_counts(self, terms: Sequence[int]) -> dict[int, int]:
        """Return the number of rows of each term."""

    @abstractmethod
    def gather(self, request: CandidateRequest) -> FilteredRows:
        """Return the best rows by words and by vectors, and their neighbours in their sessions."""


class Gathered(FilteredRows):
    """Candidates, with the statistics of all rows they were chosen from."""

    def __init__(
        self, index: RecallIndex, source: RowSource, candidates: CandidateSource, held: Mapping[int, int]
    ) -> None:
        super().__init__(index, Filter(), source)
        self.average_length = candidates.average_length
        self._candidates, self._held = candidates, held

    @property
    def population(self) -> int:
        return self._candidates.size

    def relatives(self, words: Sequence[Word]) -> dict[str, list[tuple[int, str, float]]]:
        return self._candidates.relatives(words)

    def matches(self, terms: Sequence[int]) -> Matches:
        found = super().matches(terms)
        own = np.diff([0, *found.ends]).tolist()
        held = [max(self._held.get(term, here), here) for term, here in zip(terms, own, strict=True)]
        return found._replace(held=held, rows=self._candidates.size)
