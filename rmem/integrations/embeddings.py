"""LangChain's `Embeddings` as an embedder of a Brain, without importing LangChain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from ..embed.base import Embedder, Matrix, Vector

_MIN_DIMENSION = 8  # of stores


def pad_vector(vector: Sequence[float]) -> list[float]:
    """Append zeros up to the smallest dimension of stores, which changes no angle."""
    return [*vector, *[0.0] * (_MIN_DIMENSION - len(vector))]


class LangChainEmbeddings(Protocol):
    """The methods of `langchain_core.embeddings.Embeddings` that are used."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...

    def embed_query(self, text: str) -> list[float]: ...

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]: ...


class LangChainEmbedder(Embedder):
    """`Brain(embedder=LangChainEmbedder(OpenAIEmbeddings()))`. Stores record the embedder by class and
    model; give `name` for embeddings that do not reveal their model."""

    def __init__(
        self, embeddings: LangChainEmbeddings, *, dimension: int | None = None, name: str | None = None
    ) -> None:
        self.embeddings = embeddings
        model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
        self.name = name or f"langchain:{type(embeddings).__name__}" + (f":{model}" if isinstance(model, str) else "")
        self._dimension = None if dimension is None else max(dimension, _MIN_DIMENSION)

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self._dimension = int(self.embed(["dimension"]).shape[1])
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Matrix:
        return _unit(self._embed_documents(list(texts)))

    def _embed_documents(self, texts: list[str]) -> list[list[float]]:
        embeddings = self.embeddings
        if hasattr(embeddings, "afunc") and not hasattr(embeddings, "func"):  # LangGraph's form of an async function
            return asyncio.run(embeddings.aembed_documents(texts))
        return embeddings.embed_documents(texts)

    def embed_query(self, text: str, weigh: Callable[[str], float] | None = None) -> Vector:
        if hasattr(self.embeddings, "afunc"):
            return super().embed_query(text, weigh)
        vector: Vector = _unit([self.embeddings.embed_query(text)])[0]
        return vector


def _unit(rows: Sequence[Sequence[float]]) -> Matrix:
    matrix = np.asarray(rows, np.float32).reshape(len(rows), -1)
    if matrix.shape[1] < _MIN_DIMENSION:
        matrix = np.pad(matrix, ((0, 0), (0, _MIN_DIMENSION - matrix.shape[1])))
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Matrix = (matrix / np.where(length == 0, 1, length)).astype(np.float32)
    return unit
