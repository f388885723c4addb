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

_SMALLEST, _LARGEST = 1e-3, 1e300  # numbers below the one look alike, and so do those above the other
_WIDTHS = (0.3, 1.0, 3.0)  # frequencies: one wave in about twenty, six and two logarithms
_WORDS_KEPT = 4096
_TOGETHER, _MOST_NUMBERS = 64, 1024  # more numbers than that are an array of data, not a state


class MemoryVectors:
    """The vectors that one embedder gives to memories. Records of one kind share their words, which are kept."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._words: dict[str, Vector] = {}

    def of(self, memories: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Vector]:
        """The vectors of (text, contents), in this order."""
        if len(memories) == 1 and (lone := self._of_known_words(memories[0][1])) is not None:
            return [lone]
        records = [laid_out(contents) if is_record(contents) else None for _, contents in memories]
        said = [
            text if record is None else words_in(*record) for record, (text, _) in zip(records, memories, strict=True)
        ]
        known = {words: vector for words in said if (vector := self._words.get(words)) is not None}
        if fresh := [words for words in dict.fromkeys(said) if words not in known]:
            known.update(zip(fresh, self.embedder.embed(fresh), strict=True))
        result = []
        for words, record in zip(said, records, strict=True):
            vector = known[words]
            if record is not None:
                self._keep(words, vector)
                vector = blended(vector, *numbers_at(*record))
            result.append(vector)
        return result

    def _of_known_words(self, contents: Mapping[str, Any]) -> Vector | None:
        """The vector of a record whose words were embedded before, as those of an agent's next state were."""
        if not is_record(contents):
            return None
        layout, values = laid_out(contents)
        vector = self._words.get(words_in(layout, values))
        return None if vector is None else blended(vector, *numbers_at(layout, values))

    def _keep(self, words: str, vector: Vector) -> None:
        if words not in self._words:
            if len(self._words) >= _WORDS_KEPT:
                self._words.clear()
            self._words[words] = vector


def blended(words: Vector, paths: tuple[int, ...], values: list[float]) -> Vector:
    """Words and the numbers under hashed paths in one vector of unit length, each with half of it."""
    if not paths:
        return words
    waves = _wave(paths[:_TOGETHER], values[:_TOGETHER], words.size)
    for start in range(_TOGETHER, min(len(paths), _MOST_NUMBERS), _TOGETHER):
        waves += _wave(paths[start : start + _TOGETHER], values[start : start + _TOGETHER], words.size)
    length = math.sqrt(waves @ waves)
    if length:
        waves *= 1 / length
    waves += words
    length = math.sqrt(waves @ waves)
    if length:
        waves *= 1 / length
    return waves


def _wave(paths: tuple[int, ...], values: list[float], size: int) -> Vector:
    """The sum of the waves of some numbers."""
    frequencies, phases, each = _waves(paths, size)
    if max(values) > _LARGEST or min(values) < -_LARGEST:
        values = [max(-_LARGEST, min(value, _LARGEST)) for value in values]
    angles = frequencies * np.array([[math.asinh(value / _SMALLEST)] for value in values], np.float32)
    angles += phases
    np.cos(angles, angles)
    summed: Vector = each @ angles  # a product, as those below: less code to wake up than for a sum
    return summed


@lru_cache(maxsize=256)
def _waves(paths: tuple[int, ...], size: int) -> tuple[Vector, Vector, Vector]:
    """The frequencies and phases of some paths, a line for each; and a one for each."""
    widths = np.resize(np.array(_WIDTHS), size)
    frequencies, phases = np.empty((len(paths), size), np.float32), np.empty((len(paths), size), np.float32)
    for at, path in enumerate(paths):
        drawn = np.random.Generator(np.random.PCG64(path))
        frequencies[at] = drawn.standard_normal(size) * widths
        phases[at] = drawn.random(size) * 2 * np.pi
    return frequencies, phases, np.ones(len(paths), np.float32)
