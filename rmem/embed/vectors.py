"""Shared by all embedders: cut long texts, check answers, scale vectors to unit length."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rmem.embed.base import Matrix
from rmem.errors import EmbedderError

_WORDS = re.compile(r"[^\W_]+(?:['’]\w+)?")


def has_content(text: str) -> bool:
    """Whether a text is not blank; the vector of a blank text is all zeros."""
    return bool(text) and not text.isspace()


def windows(text: str, size: int) -> Iterator[str]:
    """Split a text into pieces of at most `size` characters, before a space if there is one."""
    start = 0
    while len(text) - start > size:
        cut = text.rfind(" ", start + 1, start + size)
        if cut < 0:
            cut = start + size
        yield text[start:cut]
        start = cut
    yield text[start:]


def weighted_words(text: str, weigh: Callable[[str], float]) -> Iterator[tuple[re.Match[str], float]]:
    """Find the words of a question, each with its weight."""
    for word in _WORDS.finditer(text):
        yield word, weigh(word[0].lower().replace("’", "'").removesuffix("'s"))


def unit_rows(rows: Matrix) -> Matrix:
    """Scale every row to length one, in place; rows of zeros stay zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths == 0] = 1
    rows /= lengths[:, None]
    return rows


def check_rows(answer: Any, *, count: int, dimension: int | None, source: str) -> Matrix:
    """Check the answer of an external embedder and scale it to unit rows; EmbedderError if it is malformed."""
    try:
        rows = np.array(answer, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbedderError(
            f"{source} must return one list of numbers of equal length for each text: {error}"
        ) from None
    if rows.ndim != 2 or len(rows) != count:
        raise EmbedderError(f"{source} must return {count} vectors, got an array of shape {rows.shape}")
    if rows.shape[1] != (dimension or rows.shape[1]) or not rows.shape[1]:
        raise EmbedderError(
            f"{source} must return vectors of {dimension or 'at least one'} numbers, got {rows.shape[1]}"
        )
    if not np.isfinite(rows).all():
        raise EmbedderError(f"{source} returned NaN or infinity in a vector")
    return unit_rows(rows)
