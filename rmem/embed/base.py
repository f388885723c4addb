"""The interface of an embedder. The implementations live beside this module; nothing here loads weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
Vector = npt.NDArray[np.float32]


class Embedder(ABC):
    """Turns texts into unit vectors.

    `name` identifies the vectors ("static:minilm-256", "http:google/gemini-embedding-001") and is
    stored with them: vectors of two names never meet in one store.
    """

    name: str
    dense: ClassVar[float] = 0.4
    """Weight of its vectors in hybrid recall, 0 to 1, unless settings give one; words have the rest."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of every vector."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Matrix:
        """One float32 row of unit length (or all zeros for a text without content) for each text."""

    def embed_query(self, text: str, weigh: Callable[[str], float] | None = None) -> Vector:
        """Embed a question, in the same space as `embed`.

        `weigh` returns the weight of a lower-case word, such as its rarity in a store. Embedders that pool words use
        it; others embed the question as a whole.
        """
        vector: Vector = self.embed([text])[0]
        return vector
