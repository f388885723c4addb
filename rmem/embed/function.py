"""An embedder around any function that turns a list of texts into a list of vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rmem.embed.base import Embedder, Matrix
from rmem.embed.vectors import check_rows, has_content
from rmem.errors import ConfigError, EmbedderError

from ..forks import cached_property


class FunctionEmbedder(Embedder):
    """Wraps `function(texts) -> vectors`; checks the answer and scales it to unit length.

    >>> FunctionEmbedder(lambda texts: [[len(text), 1.0] for text in texts], name="lengths").dimension
    2

    `name` is stored with the vectors. Without it the function's qualified name is taken, so give one when the
    function is a lambda or when what it computes may change. White-space texts are not passed to the function.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str | None = None,
        dimension: int | None = None,
        batch: int = 256,
    ) -> None:
        if batch < 1:
            raise ConfigError(f"batch must be a whole number ≥ 1, got {batch!r}")
        self._function = function
        self._given_dimension = dimension
        self._batch = batch
        self.name = f"function:{name or _qualified_name(function)}"

    @cached_property
    def _dimension(self) -> int:
        return self._given_dimension or self._call(["dimension"], None).shape[1]

    @property
    def dimension(self) -> int:
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Matrix:
        rows: Matrix = np.zeros((len(texts), self.dimension), dtype=np.float32)
        filled = [row for row, text in enumerate(texts) if has_content(text)]
        for start in range(0, len(filled), self._batch):
            places = filled[start : start + self._batch]
            rows[places] = self._call([texts[place] for place in places], self.dimension)
        return rows

    def _call(self, texts: list[str], dimension: int | None) -> Matrix:
        try:
            answer = self._function(texts)
        except Exception as error:  # the caller's own code: whatever it raises, the embedder failed
            raise EmbedderError(f"{self.name} failed: {type(error).__name__}: {error}") from error
        return check_rows(answer, count=len(texts), dimension=dimension, source=self.name)


def _qualified_name(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
