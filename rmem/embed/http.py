"""Embed with a server that speaks the OpenAI `POST {base_url}/embeddings` protocol."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rmem.embed.base import Embedder, Matrix
from rmem.embed.endpoint import Endpoint
from rmem.embed.vectors import check_rows, has_content, unit_rows, windows
from rmem.errors import ConfigError, EmbedderError

_KEY_VARIABLE = "RMEM_EMBED_API_KEY"
_OLLAMA = "http://localhost:11434"
_BATCH_CHARACTERS = 200_000

_Piece = tuple[int, str]  # the row of the text it belongs to, and a part of the text


class HttpEmbedder(Embedder):
    """Vectors from an embeddings endpoint.

    >>> HttpEmbedder("google/gemini-embedding-001", "https://openrouter.ai/api/v1").name
    'http:google/gemini-embedding-001'

    Texts longer than `max_characters` go in windows whose vectors are averaged, because servers refuse long
    texts or cut them silently. `dimension` is learned from the first answer when not given.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        dimension: int | None = None,
        batch: int = 64,
        max_characters: int = 6_000,
        timeout: float = 60.0,
        retries: int = 4,
        longest_wait: float = 60.0,
        name: str | None = None,
    ) -> None:
        """`longest_wait` is the longest Retry-After, in seconds, that is obeyed; above it the request fails."""
        if not model:
            raise ConfigError("the HTTP embedder needs a model name, such as google/gemini-embedding-001")
        if batch < 1 or max_characters < 1 or timeout <= 0 or retries < 0:
            raise ConfigError("batch, max_characters and timeout must be above 0, retries at least 0")
        self.name = name or f"http:{model}"
        self._model = model
        self._endpoint = Endpoint(
            base_url,
            "/embeddings",
            what="the HTTP embedder",
            key_variable=_KEY_VARIABLE,
            error=EmbedderError,
            timeout=timeout,
            retries=retries,
            longest_wait=longest_wait,
        )
        self._known_dimension = dimension
        self._batch = batch
        self._max_characters = max_characters

    @classmethod
    def from_spec(cls, spec: str) -> HttpEmbedder:
        """Parse `http`, `http:MODEL` or `http:MODEL@URL`; missing parts come from the environment."""
        match = re.fullmatch(r"http(?::(?P<model>(?!//).+?)(?:@(?P<url>https?://.+))?)?", spec)
        if match is None:
            raise ConfigError(f"{_without_login(spec)!r} is not an HTTP embedder; write http:MODEL@URL")
        model = match["model"] or os.environ.get("RMEM_EMBED_MODEL", "")
        url = match["url"] or os.environ.get("RMEM_EMBED_URL", "")
        if not model or not url:
            raise ConfigError(
                "the embedder 'http' needs a model and an address: write http:MODEL@URL, or set "
                "RMEM_EMBED_MODEL and RMEM_EMBED_URL (such as https://openrouter.ai/api/v1)"
            )
        return cls(model, url)

    def __repr__(self) -> str:
        return f"HttpEmbedder({self._model!r}, {self._endpoint.base_url!r})"

    @property
    def dimension(self) -> int:
        return self._known_dimension or self._request(["dimension"]).shape[1]

    def embed(self, texts: Sequence[str]) -> Matrix:
        sums: Matrix | None = None
        for pieces in self._batches(texts):
            rows = self._request([piece for _, piece in pieces])
            if sums is None:
                sums = np.zeros((len(texts), rows.shape[1]), dtype=np.float32)
            shares = np.array([len(piece) for _, piece in pieces], dtype=np.float32)
            np.add.at(sums, [row for row, _ in pieces], rows * shares[:, None])
        return np.zeros((len(texts), self.dimension), dtype=np.float32) if sums is None else unit_rows(sums)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[_Piece]]:
        """Split texts into requests of at most `batch` pieces and `_BATCH_CHARACTERS`; skip blank texts."""
        pieces: list[_Piece] = []
        characters = 0
        for row, text in enumerate(texts):
            if not has_content(text):
                continue
            for piece in windows(text, self._max_characters):
                if not has_content(piece):
                    continue
                if pieces and (len(pieces) >= self._batch or characters + len(piece) > _BATCH_CHARACTERS):
                    yield pieces
                    pieces, characters = [], 0
                pieces.append((row, piece))
                characters += len(piece)
        if pieces:
            yield pieces

    def _request(self, texts: list[str]) -> Matrix:
        """Request the unit vectors of `texts`, in order."""
        readable = [text.encode("utf-8", "replace").decode() for text in texts]  # JSON has no lone surrogates
        answer = self._endpoint.post({"model": self._model, "input": readable})
        vectors = self._vectors_in_order(answer, len(texts))
        rows = check_rows(vectors, count=len(texts), dimension=self._known_dimension, source=self._endpoint.url)
        self._known_dimension = rows.shape[1]
        return rows

    def _vectors_in_order(self, answer: Any, count: int) -> list[Any]:
        """Return the vectors of an answer, sorted by their "index"."""
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise self._endpoint.failed(
                f'must answer with a list "data" of embeddings, got: {self._endpoint.excerpt(answer)}'
            )
        if len(data) != count:
            raise self._endpoint.failed(f"must return {count} embeddings, got {len(data)}")
        vectors = {item["index"]: item.get("embedding") for item in data if isinstance(item.get("index"), int)}
        if vectors.keys() != set(range(count)):
            raise self._endpoint.failed(f'must number its embeddings by "index", 0 to {count - 1}, each once')
        return [vectors[place] for place in range(count)]


def ollama(rest: str) -> HttpEmbedder:
    """The embedder of `ollama:MODEL` or `ollama:MODEL@URL`: a server of Ollama, which speaks the same protocol below
    /v1. Without a URL it is OLLAMA_HOST, or this machine."""
    model, _, url = rest.partition("@")
    if not model:
        raise ConfigError("the embedder 'ollama' needs a model: write ollama:nomic-embed-text")
    host = url or os.environ.get("OLLAMA_HOST", "").strip() or _OLLAMA
    address = host if "://" in host else f"http://{host}"
    return HttpEmbedder(model, f"{address.rstrip('/').removesuffix('/v1')}/v1", name=f"ollama:{model}", retries=2)


def _without_login(spec: str) -> str:
    return re.sub(r"//[^/@]*@", "//", spec)
