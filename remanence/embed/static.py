"""The default embedder: one fixed vector for each token, averaged. No network, no model run, no GPU.

The 256-number vectors and their vocabulary come from the `wordllama` wheel. The file is mapped, not read: a
process touches only the rows of the tokens that it meets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from remanence.embed.base import Embedder, Matrix, Vector
from remanence.embed.bpe import PieceTokenizer
from remanence.embed.vectors import has_content, unit_rows, windows
from remanence.embed.wheels import file_in_wheel
from remanence.errors import EmbedderError
from remanence.index.arrays import distinct

_MODEL = "l2_supercat_256"
_DIMENSION = 256
_INSTALL = "pip install 'wordllama>=0.4,<0.5'"
# Limits of memory, not of length: every token of a text counts.
_WINDOW_CHARACTERS = 4096
_TOKENS_AT_ONCE = 8192
_MANY_TEXTS = 200
_LONGEST_HEADER = 1 << 20
_WORDS = re.compile(r"\w+(?:['’]\w+)?")


class StaticEmbedder(Embedder):
    """Mean of the token vectors of a text, at unit length.

    >>> StaticEmbedder().embed(["the car broke down", ""]).shape
    (2, 256)
    """

    name = f"static:{_MODEL}"

    @property
    def dimension(self) -> int:
        return _DIMENSION

    def embed(self, texts: Sequence[str]) -> Matrix:
        sums: Matrix = np.zeros((len(texts), _DIMENSION), dtype=np.float32)
        numbers: list[int] = []
        spans: list[tuple[int, int]] = []
        if len(texts) >= _MANY_TEXTS:
            self._tokenizer.learn(" " + text for text in texts if len(text) <= _WINDOW_CHARACTERS)
        for row, text in enumerate(texts):
            if not has_content(text):
                continue
            for window in windows(" " + text, _WINDOW_CHARACTERS):
                before = len(numbers)
                numbers += self._tokenizer.numbers(window)
                spans.append((row, len(numbers) - before))
                if len(numbers) >= _TOKENS_AT_ONCE:
                    self._add(sums, spans, numbers)
                    numbers, spans = [], []
        if numbers:
            self._add(sums, spans, numbers)
        return unit_rows(sums)

    def embed_query(self, text: str, weigh: Callable[[str], float] | None = None) -> Vector:
        if weigh is None or len(text) > _WINDOW_CHARACTERS:
            return super().embed_query(text)
        numbers: list[int] = []
        weights: list[float] = []
        for word in _WORDS.findall(text):
            pieces = self._tokenizer.numbers(" " + word)
            numbers += pieces
            weights += [weigh(word.lower().replace("’", "'").removesuffix("'s"))] * len(pieces)
        if not numbers:
            return super().embed_query(text)
        pooled = np.array(weights, np.float32) @ self._table[numbers].astype(np.float32)
        vector: Vector = unit_rows(pooled[None, :])[0]
        return vector

    def word_vectors(self, words: Sequence[str]) -> Matrix:
        """The vector of each single word, for matching words of like meaning; same space as `embed`."""
        return self.embed(words)

    def _add(self, sums: Matrix, spans: list[tuple[int, int]], numbers: list[int]) -> None:
        """Add the vectors of each span of `numbers` to its row of `sums`.

        Rows are converted to float32 once for each distinct token. Each span is summed alone and in order, so
        the vector of a text does not depend, to the last bit, on the texts beside it.
        """
        tokens = np.array(numbers, dtype=np.intp)
        used = distinct(tokens)
        places = np.searchsorted(used, tokens)
        rows = self._table[used].astype(np.float32)
        start = 0
        for row, count in spans:
            sums[row] += np.add.reduce(rows.take(places[start : start + count], axis=0), axis=0)
            start += count

    @cached_property
    def _tokenizer(self) -> PieceTokenizer:
        path = file_in_wheel("wordllama", "tokenizers/l2_supercat_tokenizer_config.json", install=_INSTALL)
        tokenizer = PieceTokenizer.from_file(path)
        if tokenizer.size != len(self._table):
            raise EmbedderError(
                f"{path} has {tokenizer.size} tokens, the weights have {len(self._table)}. Run: {_INSTALL}"
            )
        return tokenizer

    @cached_property
    def _table(self) -> npt.NDArray[np.float16]:
        return _map_table(file_in_wheel("wordllama", f"weights/{_MODEL}.safetensors", install=_INSTALL))


def _map_table(path: Path) -> npt.NDArray[np.float16]:
    """Map the one float16 matrix of a safetensors file: a length, a JSON header, then the numbers."""
    try:
        with path.open("rb") as file:
            header_size = int.from_bytes(file.read(8), "little")
            if header_size > _LONGEST_HEADER:
                raise ValueError("it is no safetensors file")
            tensor = json.loads(file.read(header_size))["embedding.weight"]
        rows, columns = tensor["shape"]
        if tensor["dtype"] != "F16" or columns != _DIMENSION:
            raise ValueError(f"expected F16 rows of {_DIMENSION}, got {tensor['dtype']} rows of {columns}")
        offset = 8 + header_size + tensor["data_offsets"][0]
        return np.memmap(path, dtype="<f2", mode="r", offset=offset, shape=(rows, columns))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EmbedderError(f"{path} is damaged or of another version ({error}). Run: {_INSTALL}") from error
