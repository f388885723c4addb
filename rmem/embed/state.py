"""Embed memories. A text is embedded as it is. A record (a state, an action: contents without a text of their own) is
embedded by its words and its numbers, so that close numbers give close vectors.

A number becomes a vector of waves in its logarithm, with frequencies and phases drawn from its path: values within a
few per cent are almost the same, values a factor of ten apart have little in common, and numbers of different paths are
unrelated. That holds from a thousandth to a million without knowing the usual range of a path."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..contents import is_record, laid_out, words_in
from ..index.numbers import numbers_at

if TYPE_CHECKING:
    from .base import Embedder

Vector = npt.NDArray[np.float32]

_SMALLEST, _LARGEST = 1e-3, 1e300  # smaller numbers give the same vector, and so do larger ones
_WIDTHS = (0.3, 1.0, 3.0)  # scales of the frequencies: a period of about 20, 6 and 2 units of the logarithm
_MAX_CACHED = 4096
_CHUNK, _MAX_NUMBERS = 64, 1024  # per product; and in all: more numbers are an array of data, not a state


class MemoryVectors:
    """Embeds memories with one embedder. Records of one kind have the same words, whose vectors are cached."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._words: dict[str, Vector] = {}

    def of(self, memories: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Vector]:
        """Return the vectors of (text, contents) pairs, in order."""
        if len(memories) == 1 and (lone := self._from_cache(memories[0][1])) is not None:
            return [lone]
        records = [laid_out(contents) if is_record(contents) else None for _, contents in memories]
        texts = [
            text if record is None else words_in(*record) for record, (text, _) in zip(records, memories, strict=True)
        ]
        known = {words: vector for words in texts if (vector := self._words.get(words)) is not None}
        if new_texts := [words for words in dict.fromkeys(texts) if words not in known]:
            known.update(zip(new_texts, self.embedder.embed(new_texts), strict=True))
        result = []
        for words, record in zip(texts, records, strict=True):
            vector = known[words]
            if record is not None:
                self._cache_words(words, vector)
                vector = blend(vector, *numbers_at(*record))
            result.append(vector)
        return result

    def _from_cache(self, contents: Mapping[str, Any]) -> Vector | None:
        """Return the vector of a record whose words are cached, as an agent's next state usually is; None otherwise."""
        if not is_record(contents):
            return None
        layout, values = laid_out(contents)
        vector = self._words.get(words_in(layout, values))
        return None if vector is None else blend(vector, *numbers_at(layout, values))

    def _cache_words(self, words: str, vector: Vector) -> None:
        if words not in self._words:
            if len(self._words) >= _MAX_CACHED:
                self._words.clear()
            self._words[words] = vector


def blend(words: Vector, paths: tuple[int, ...], values: list[float]) -> Vector:
    """Combine the vector of words and the numbers under hashed paths, with equal weight, to unit length."""
    if not paths:
        return words
    waves = _sum_waves(paths[:_CHUNK], values[:_CHUNK], words.size)
    for start in range(_CHUNK, min(len(paths), _MAX_NUMBERS), _CHUNK):
        waves += _sum_waves(paths[start : start + _CHUNK], values[start : start + _CHUNK], words.size)
    length = math.sqrt(waves @ waves)
    if length:
        waves *= 1 / length
    waves += words
    length = math.sqrt(waves @ waves)
    if length:
        waves *= 1 / length
    return waves


def _sum_waves(paths: tuple[int, ...], values: list[float], size: int) -> Vector:
    frequencies, phases, ones = _frequencies_of(paths, size)
    if max(values) > _LARGEST or min(values) < -_LARGEST:
        values = [max(-_LARGEST, min(value, _LARGEST)) for value in values]
    angles = frequencies * np.array([[math.asinh(value / _SMALLEST)] for value in values], np.float32)
    angles += phases
    np.cos(angles, angles)
    total: Vector = ones @ angles  # a product with ones: faster than np.sum, whose code is rarely in the cache
    return total


@lru_cache(maxsize=256)
def _frequencies_of(paths: tuple[int, ...], size: int) -> tuple[Vector, Vector, Vector]:
    """Return the frequencies and phases of some paths, a row for each, and a vector of ones."""
    widths = np.resize(np.array(_WIDTHS), size)
    frequencies, phases = np.empty((len(paths), size), np.float32), np.empty((len(paths), size), np.float32)
    for at, path in enumerate(paths):
        random = np.random.Generator(np.random.PCG64(path))
        frequencies[at] = random.standard_normal(size) * widths
        phases[at] = random.random(size) * 2 * np.pi
    return frequencies, phases, np.ones(len(paths), np.float32)
