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
class Asked:
    """What a question looks for."""

    words: Sequence[Sequence[tuple[int, float]]] = ()
    """For each word its terms, of which the best one counts: (term, what it counts)."""
    vector: npt.NDArray[np.float32] | None = None
    seqs: Sequence[int] = ()
    """Rows that an engine beside the store found for the vector, which is then not looked for."""
    phrases: Sequence[Sequence[Sequence[int]]] = ()
    """Words of which a row must hold all to be of use, each with its terms."""
    span: tuple[float, float] | None = None
    """A time whose newest rows are wanted whatever they say."""
    actors: Sequence[str] = ()
    """Who is named: of these the newest rows are wanted."""
    also: Sequence[int] = ()
    """Further terms that will be looked up."""
    side: int = 512
    """How many rows each side sends."""
    newest: int = 64
    """How many rows a time and an actor send."""
    k1: float = 0.9
    b: float = 0.4
    held: Mapping[int, int] = field(default_factory=dict)
    """In how many rows terms occur, as `holding` told."""

    @property
    def terms(self) -> list[int]:
        """Every term, once."""
        told = [term for word in self.words for term, _ in word]
        told += [term for phrase in self.phrases for word in phrase for term in word]
        return list(dict.fromkeys([*told, *self.also]))


class CandidateSource(ABC):
    """The rows inside one filter, seen from afar."""

    size: int
    average_length: float
    dimension: int | None

    @abstractmethod
    def actors_named(self, text: str) -> list[str]:
        """Those who act in these rows and are named in a text."""

    @abstractmethod
    def relatives(self, words: Sequence[Word], floor: float, most: int) -> dict[str, list[tuple[int, str, float]]]:
        """As `FilteredRows.relatives`."""

    @abstractmethod
    def holding(self, terms: Sequence[int]) -> dict[int, int]:
        """In how many rows terms occur."""

    @abstractmethod
    def gather(self, asked: Asked) -> FilteredRows:
        """The best rows of each side and their neighbours in the sessions."""


class Gathered(FilteredRows):
    """Candidates, with statistics of all rows that they were chosen from."""

    def __init__(
        self, index: RecallIndex, source: RowSource, candidates: CandidateSource, held: Mapping[int, int]
    ) -> None:
        super().__init__(index, Filter(), source)
        self.average_length = candidates.average_length
        self._candidates, self._held = candidates, held

    @property
    def population(self) -> int:
        return self._candidates.size

    def relatives(self, words: Sequence[Word], floor: float, most: int) -> dict[str, list[tuple[int, str, float]]]:
        return self._candidates.relatives(words, floor, most)

    def matches(self, terms: Sequence[int]) -> Matches:
        found = super().matches(terms)
        own = np.diff([0, *found.ends]).tolist()
        held = [max(self._held.get(term, here), here) for term, here in zip(terms, own, strict=True)]
        return found._replace(held=held, rows=self._candidates.size)
