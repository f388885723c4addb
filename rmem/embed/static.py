"""The default embedder: one fixed vector for each token, averaged. No network, no model run, no GPU.

The 256-number vectors and their vocabulary come from the `wordllama` wheel. The file is mapped, not read: a
process touches only the rows of the tokens that it meets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rmem.embed.base import Embedder, Matrix, Vector
from rmem.embed.bpe import PieceTokenizer, words_of
from rmem.embed.vectors import has_content, unit_rows, windows
from rmem.embed.wheels import file_in_wheel
from rmem.errors import EmbedderError
from rmem.index.arrays import distinct

_MODEL = "l2_supercat_256"
_DIMENSION = 256
_INSTALL = "pip install 'wordllama>=0.4,<0.5'"
# Limits of memory, not of length: every token of a text counts.
_WINDOW_CHARACTERS = 4096
_WORDS_AT_ONCE = 8192
_LONGEST_HEADER = 1 << 20
_FEW_WORDS = 32  # that are not worth the preparations for many
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
        rows: list[int] = []
        cut: list[list[str]] = []
        waiting = 0
        for row, text in enumerate(texts):
            if not has_content(text):
                continue
            for window in windows(" " + text, _WINDOW_CHARACTERS):
                rows.append(row)
                cut.append(words_of(window))
                waiting += len(cut[-1])
                if waiting >= _WORDS_AT_ONCE:
                    self._add(sums, rows, cut)
                    rows, cut, waiting = [], [], 0
        if cut:
            self._add(sums, rows, cut)
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
        pooled = np.array(weights, np.float32) @ self._floats.of(np.array(numbers))
        vector: Vector = unit_rows(pooled[None, :])[0]
        return vector

    def word_vectors(self, words: Sequence[str]) -> Matrix:
        """The vector of each single word, for matching words of like meaning; same space as `embed`."""
        if len(words) > _FEW_WORDS:
            return self.embed(words)
        vectors = np.zeros((len(words), _DIMENSION), np.float32)
        for row, word in enumerate(words):
            if has_content(word):
                pieces = np.array(self._tokenizer.numbers(" " + word))
                vectors[row] = np.add.reduce(self._floats.of(pieces), axis=0)
        return unit_rows(vectors)

    def _add(self, sums: Matrix, rows: list[int], cut: list[list[str]]) -> None:
        """Add the vectors of the words of each text in `cut` to its row of `sums`. Each text is summed alone and in
        order, so its vector does not depend, to the last bit, on the texts beside it."""
        self._tokenizer.learn(cut)
        numbers = [self._tokenizer.numbers_of(words) for words in cut]
        tokens = np.fromiter(chain.from_iterable(numbers), np.intp)
        vectors = self._floats.with_all(tokens)
        start = 0
        for row, one in zip(rows, numbers, strict=True):
            end = start + len(one)
            sums[row] += np.add.reduce(vectors.take(tokens[start:end], axis=0), axis=0)
            start = end

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
    def _floats(self) -> _Floats:
        return _Floats(self._table)

    @cached_property
    def _table(self) -> npt.NDArray[np.float16]:
        return _map_table(file_in_wheel("wordllama", f"weights/{_MODEL}.safetensors", install=_INSTALL))


class _Floats:
    """The rows of a float16 table as float32, each converted when it is first asked for: numpy takes 3 ns a number, and
    texts use the same few thousand tokens again and again. Pages that nobody asked for take no memory."""

    def __init__(self, table: npt.NDArray[np.float16]) -> None:
        self._table = table
        self._rows: Matrix = np.empty(table.shape, np.float32)
        self._known = np.zeros(len(table), np.bool_)

    def with_all(self, numbers: npt.NDArray[np.intp]) -> Matrix:
        """The whole matrix, in which the rows of these numbers are right."""
        missing = numbers[~self._known.take(numbers)]
        if missing.size:
            missing = distinct(missing)
            self._rows[missing] = self._table[missing]
            self._known[missing] = True  # last: other threads read along
        return self._rows

    def of(self, numbers: npt.NDArray[np.intp]) -> Matrix:
        """The rows of these numbers."""
        return self.with_all(numbers).take(numbers, axis=0)


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
        mapped = np.memmap(path, dtype="<f2", mode="r", offset=offset, shape=(rows, columns))
        return np.asarray(mapped)  # a plain array over it: memmap takes ten microseconds more for each look
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EmbedderError(f"{path} is damaged or of another version ({error}). Run: {_INSTALL}") from error
