"""Embed with a model of SentenceTransformers, by its name or its folder. The library and torch are imported when the
first text comes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rmem.embed.base import Embedder, Matrix, Vector
from rmem.embed.vectors import check_rows, has_content, unit_rows, windows
from rmem.errors import ConfigError, EmbedderError
from rmem.extras import require

from ..forks import cached_property

_BATCH = 32
_CHARACTERS = 3  # of a token, about; windows that are longer than the model reads would be cut off silently
_LONGEST = 512  # tokens of a window where a model names no limit, or an absurd one


class SentenceTransformerEmbedder(Embedder):
    """`SentenceTransformerEmbedder("all-mpnet-base-v2")`, or a folder that `model.save` wrote.

    A folder is known by a hash of its files, a name by itself. Texts longer than the model reads go in windows whose
    vectors are averaged. Prompts that the model has for questions and for documents are used.
    """

    dense = 0.5  # docs/decisions/0027

    def __init__(self, model: str) -> None:
        require("sentence-transformers", f"the SentenceTransformers model {model!r}")
        if not model:
            raise ConfigError(
                "the embedder 'sentence-transformers' needs a model: write sentence-transformers:all-mpnet-base-v2"
            )
        self._place = model
        folder = Path(model).expanduser()
        known = f"{folder.resolve().name}:{_digest(folder)}" if folder.is_dir() else model
        self.name = f"sentence-transformers:{known}"

    @cached_property
    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer

        try:
            return SentenceTransformer(str(Path(self._place).expanduser()) if self._is_folder else self._place)
        except Exception as error:  # of torch, of the hub, of the operating system
            told = str(error).strip().partition("\n")[0][:300]
            raise EmbedderError(
                f"the SentenceTransformers model {self._place!r} cannot be loaded: {type(error).__name__}: {told}. It "
                "must be the name of a model that is downloaded or can be, or a folder that model.save() wrote"
            ) from error

    @property
    def _is_folder(self) -> bool:
        return Path(self._place).expanduser().is_dir()

    @cached_property
    def _dimension(self) -> int:
        return int(self._encoded(["dimension"], query=False).shape[1])

    @property
    def dimension(self) -> int:
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Matrix:
        return self._averaged(texts, query=False)

    def embed_query(self, text: str, weigh: Callable[[str], float] | None = None) -> Vector:
        vector: Vector = self._averaged([text], query=True)[0]
        return vector

    def _averaged(self, texts: Sequence[str], *, query: bool) -> Matrix:
        read = self._model.max_seq_length or _LONGEST
        size = _CHARACTERS * min(int(read), _LONGEST)
        pieces = [
            (row, piece)
            for row, text in enumerate(texts)
            if has_content(text)
            for piece in windows(text.encode("utf-8", "replace").decode(), size)
            if has_content(piece)
        ]
        sums: Matrix = np.zeros((len(texts), self.dimension), np.float32)
        if pieces:
            vectors = self._encoded([piece for _, piece in pieces], query=query)
            shares = np.array([len(piece) for _, piece in pieces], np.float32)
            np.add.at(sums, [row for row, _ in pieces], vectors * shares[:, None])
        return unit_rows(sums)

    def _encoded(self, texts: list[str], *, query: bool) -> Matrix:
        model = self._model
        wanted = "encode_query" if query else "encode_document"  # since version 5; they put the model's prompts first
        encode = getattr(model, wanted, model.encode)
        try:
            answer = encode(texts, batch_size=_BATCH, convert_to_numpy=True, show_progress_bar=False)
        except Exception as error:
            raise EmbedderError(f"{self.name} failed: {type(error).__name__}: {error}") from error
        return check_rows(answer, count=len(texts), dimension=None, source=self.name)


def _digest(folder: Path) -> str:
    """Short hash of all files of a model."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md"):
        digest.update(f"{file.relative_to(folder).as_posix()}\0".encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:12]
