"""The default embedder: one fixed vector for each piece of a word, added up. No network, no model run, no GPU.

The table is our own, distilled from all-MiniLM-L6-v2 (`data/MODEL_CARD.md`; `training/` made it). The file is mapped,
not read: a process touches only the rows of the pieces that it meets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rmem.embed.base import Embedder, Matrix, Vector
from rmem.embed.vectors import has_content, unit_rows, weighted_words, windows
from rmem.embed.wordpiece import SPARE_ROWS, WordPieces, words_of
from rmem.errors import EmbedderError
from rmem.forks import cached_property
from rmem.index.arrays import distinct

_DIMENSION = 256
_DATA = Path(__file__).with_name("data")
_WINDOW_CHARACTERS = 4096  # longer texts are read in windows to save memory; every word counts
_ROWS_AT_ONCE = 16_384
_FEW_ROWS = 2048  # of a few texts, which are looked up together
_SHORT_LIFE = 64  # lookups of a process that asks one question: it does not keep converted rows
_FEW_WORDS = 32  # up to this many, embedding one by one is faster
RETIRED = frozenset({"static:l2_supercat_256"})  # names of earlier tables


class StaticEmbedder(Embedder):
    """Sum of the piece vectors of a text, each word weighted by the square root of its count, at unit length.

    >>> StaticEmbedder().embed(["the car broke down", ""]).shape
    (2, 256)
    """

    name = "static:minilm-256"

    @property
    def dimension(self) -> int:
        return _DIMENSION

    def embed(self, texts: Sequence[str]) -> Matrix:
        sums: Matrix = np.zeros((len(texts), _DIMENSION), dtype=np.float32)
        waiting: list[tuple[int, list[int], Vector | None]] = []
        size = 0
        for place, text in enumerate(texts):
            if has_content(text):
                rows, weights = self._rows_of(text)
                waiting.append((place, rows, weights))
                size += len(rows)
                if size >= _ROWS_AT_ONCE:
                    self._add(sums, waiting)
                    waiting, size = [], 0
        self._add(sums, waiting)
        return unit_rows(sums)

    def embed_query(self, text: str, weigh: Callable[[str], float] | None = None) -> Vector:
        if weigh is None or len(text) > _WINDOW_CHARACTERS:
            return super().embed_query(text)
        rows: list[int] = []
        weights: list[float] = []
        for word, weight in weighted_words(text, weigh):
            pieces = self._pieces.rows(words_of(word[0]))
            rows += pieces
            weights += [weight] * len(pieces)
        if not rows:
            return super().embed_query(text)
        pooled = np.einsum("i,ij->j", np.array(weights, np.float32), self._floats.of(np.array(rows)))
        vector: Vector = unit_rows(pooled[None, :])[0]
        return vector

    def word_vectors(self, words: Sequence[str]) -> Matrix:
        """Embed single words, to match words of similar meaning; in the same space as `embed`."""
        if len(words) > _FEW_WORDS:
            return self.embed(words)
        vectors = np.zeros((len(words), _DIMENSION), np.float32)
        for place, word in enumerate(words):
            if has_content(word):
                rows = np.array(self._pieces.rows(words_of(word)) or self._pieces.spare_rows(word))
                vectors[place] = np.add.reduce(self._floats.of(rows), axis=0)
        return unit_rows(vectors)

    def _rows_of(self, text: str) -> tuple[list[int], Vector | None]:
        """Return the rows of the distinct words of a text, and their weights; None if all weights are 1."""
        pieces = self._pieces
        if len(text) <= _WINDOW_CHARACTERS:
            words = words_of(text)
            if len(set(words)) == len(words):
                return pieces.rows(words) or pieces.spare_rows(text), None
            counts = Counter(words)
        else:
            counts = Counter()
            for window in windows(text, _WINDOW_CHARACTERS):
                counts.update(words_of(window))
        found = [*map(pieces.__getitem__, counts)]
        rows = [*chain.from_iterable(found)]
        if not rows:
            return pieces.spare_rows(text), None
        roots = np.sqrt(np.fromiter(counts.values(), np.float64, len(counts)))
        return rows, np.repeat(roots, [*map(len, found)]).astype(np.float32)

    def _add(self, sums: Matrix, waiting: Sequence[tuple[int, list[int], Vector | None]]) -> None:
        """Add the vectors of the rows of each text to its row of `sums`. Each text is summed alone and in order, so its
        vector does not depend, to the last bit, on the texts beside it."""
        if not waiting:
            return
        numbers = np.fromiter(chain.from_iterable(rows for _, rows, _ in waiting), np.intp)
        few = numbers.size <= _FEW_ROWS
        vectors = self._floats.of(numbers) if few else self._floats.convert(numbers)
        start = 0
        for place, rows, weights in waiting:
            end = start + len(rows)
            found = vectors[start:end] if few else vectors.take(numbers[start:end], axis=0)
            if weights is not None:
                found *= weights[:, None]
            sums[place] = np.add.reduce(found, axis=0)
            start = end

    @cached_property
    def _pieces(self) -> WordPieces:
        names = ("bert_vocab.txt", "static_vocab.txt")
        pieces = WordPieces("".join([(_DATA / name).read_text(encoding="utf-8") for name in names]))
        if pieces.size != len(self._table[0]):
            raise EmbedderError(
                f"the vocabulary in {_DATA} has {pieces.size - SPARE_ROWS} pieces, but the table has "
                f"{len(self._table[0])} rows, {SPARE_ROWS} of them spare: the files are of two versions. "
                "Install rmem again"
            )
        return pieces

    @cached_property
    def _floats(self) -> _FloatRows:
        return _FloatRows(*self._table)

    @cached_property
    def _table(self) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
        return load_table(_DATA)


class RetiredEmbedder(Embedder):
    """Placeholder for an embedder of an earlier version whose table no longer exists. It returns zero vectors, so that
    a store with its vectors is searched by words until `rmem reindex` embeds it again."""

    dimension = _DIMENSION

    def __init__(self, name: str) -> None:
        self.name = name

    def embed(self, texts: Sequence[str]) -> Matrix:
        return np.zeros((len(texts), _DIMENSION), np.float32)


class _FloatRows:
    """The rows of the table as float32, each converted on first use: texts use the same few thousand pieces again and
    again. The first lookups keep nothing, because the system clears more memory for a row than a short process uses."""

    def __init__(self, codes: npt.NDArray[np.int8], scales: npt.NDArray[np.float32]) -> None:
        self._codes, self._scales = codes, scales
        self._rows: Matrix = np.empty(codes.shape, np.float32)
        self._known = np.zeros(len(codes), np.bool_)
        self._lookups = 0

    def convert(self, numbers: npt.NDArray[np.intp]) -> Matrix:
        """Convert the rows of these numbers; return the whole matrix, of which only converted rows are valid."""
        missing = numbers[~self._known.take(numbers)]
        if missing.size:
            missing = distinct(missing)
            self._rows[missing] = self._codes[missing] * self._scales[missing, None]
            self._known[missing] = True  # last: other threads may read at the same time
        return self._rows

    def of(self, numbers: npt.NDArray[np.intp]) -> Matrix:
        """Return the rows of these numbers."""
        if self._lookups < _SHORT_LIFE:
            self._lookups += 1
            return self._codes[numbers] * self._scales[numbers, None]
        return self.convert(numbers).take(numbers, axis=0)


def load_table(folder: Path) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Return the int8 rows of the table, memory-mapped, and the scale of each."""
    path = folder / "static_codes.npy"
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        scales = np.load(folder / "static_scales.npy", allow_pickle=False)
        if mapped.dtype != np.int8 or mapped.shape != (len(scales), _DIMENSION) or scales.dtype != np.float32:
            raise ValueError(f"expected int8 rows of {_DIMENSION}, got {mapped.dtype} of the shape {mapped.shape}")
        return np.asarray(mapped), scales  # a plain array: indexing a memmap takes ten microseconds more
    except (OSError, ValueError, EOFError) as error:
        raise EmbedderError(f"{path} is damaged or of another version ({error}). Install rmem again") from error
