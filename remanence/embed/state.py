"""Vectors of memories. A text is embedded as it is. A record (a state, an action: contents without a text of their
own) is embedded by its words and by its numbers, so that numbers near each other give vectors near each other.

A number becomes a vector of waves in its logarithm, with frequencies and phases drawn from its path: values within a
few per cent are almost the same, values a factor of ten apart have little in common, and other paths have nothing to
do with it. That holds from a thousandth to a million without knowing what is usual for a path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..index.numbers import Numbers, as_number, leaves, numbers_of

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
        records = [is_record(contents) for _, contents in memories]
        said = [
            words_of(contents) if record else text for record, (text, contents) in zip(records, memories, strict=True)
        ]
        kept = [self._words.get(words) if record else None for record, words in zip(records, said, strict=True)]
        fresh = list(dict.fromkeys(words for words, known in zip(said, kept, strict=True) if known is None))
        vectors = dict(zip(fresh, self.embedder.embed(fresh), strict=True)) if fresh else {}
        result = []
        for record, words, known, (_, contents) in zip(records, said, kept, memories, strict=True):
            vector = vectors[words] if known is None else known
            if record:
                if known is None:
                    if len(self._words) >= _WORDS_KEPT:
                        self._words.clear()
                    self._words[words] = vector
                vector = blended(vector, numbers_of(contents))
            result.append(vector)
        return result


def is_record(contents: Mapping[str, Any]) -> bool:
    return bool(contents) and "text" not in contents


def words_of(contents: Mapping[str, Any]) -> str:
    """The keys and the texts of a record, without its numbers."""
    return _described(contents, numbers=False)


def text_of(contents: Mapping[str, Any]) -> str:
    """A record as words: `action_type: trade; items_given wood: 2; outcome: success`. Numbers are rounded to three
    digits: nobody asks for more in words."""
    return _described(contents, numbers=True)


def _described(contents: Mapping[str, Any], *, numbers: bool) -> str:
    parts: list[str] = []
    last = None
    for path, value in leaves(contents):
        if numbers or as_number(value) is None:
            said = f"{value:.3g}" if isinstance(value, float) else str(value)
        else:
            said = ""
        list_path, named = _named(path)
        if parts and list_path == last:  # a further member of the same list
            if said:
                parts[-1] += f" {said}"
        else:
            parts.append(f"{named}: {said}" if said else named)
        last = list_path
    return "; ".join(parts)


@lru_cache(maxsize=4096)
def _named(path: str) -> tuple[str, str]:
    """A path without the number of a list's member, and how it is said."""
    list_path = path.split("[", 1)[0] if path.endswith("]") else path
    return list_path, list_path.replace(".", " ")


def blended(words: Vector, numbers: Numbers) -> Vector:
    """Words and numbers in one vector of unit length, each with half of it."""
    if not numbers.paths.size:
        return words
    values = numbers.values
    if not -_LARGEST <= min(tops := values.tolist()) <= max(tops) <= _LARGEST:
        values = np.clip(values, -_LARGEST, _LARGEST)
    scaled = np.arcsinh(values / _SMALLEST).astype(np.float32)
    paths = numbers.paths.tolist()
    waves = _wave(paths[:_TOGETHER], scaled[:_TOGETHER], words.size)
    for start in range(_TOGETHER, min(len(paths), _MOST_NUMBERS), _TOGETHER):
        waves += _wave(paths[start : start + _TOGETHER], scaled[start : start + _TOGETHER], words.size)
    length = float(np.sqrt(waves @ waves))
    if length:
        words = words + waves * np.float32(1 / length)
    length = float(np.sqrt(words @ words))
    result: Vector = words * np.float32(1 / length) if length else words
    return result


def _wave(paths: list[int], scaled: Vector, size: int) -> Vector:
    """The sum of the waves of some numbers."""
    frequencies, phases = _waves(tuple(paths), size)
    angles = frequencies * scaled[:, None]
    angles += phases
    result: Vector = np.cos(angles, out=angles).sum(axis=0)
    return result


@lru_cache(maxsize=256)
def _waves(paths: tuple[int, ...], size: int) -> tuple[Vector, Vector]:
    """The frequencies and phases of some paths, a line for each."""
    widths = np.resize(np.array(_WIDTHS), size)
    frequencies, phases = np.empty((len(paths), size), np.float32), np.empty((len(paths), size), np.float32)
    for at, path in enumerate(paths):
        drawn = np.random.Generator(np.random.PCG64(path))
        frequencies[at] = drawn.standard_normal(size) * widths
        phases[at] = drawn.random(size) * 2 * np.pi
    return frequencies, phases
