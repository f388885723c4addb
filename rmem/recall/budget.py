"""Fit texts into a number of tokens, estimated without a model's tokenizer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")

_PIECES = re.compile(r"\w+|[^\w\s]")
CUT = "…"  # one token; marks an omission


def estimate_tokens(text: str) -> int:
    """Estimate the tokens that a language model's tokenizer would count, rather too many than too few: words of up to
    six letters are one token, longer ones one more for every further four letters, other scripts one for each
    character."""
    return sum(map(_cost, _PIECES.findall(text)))


def _cost(piece: str) -> int:
    if not piece.isascii():
        return len(piece)
    return 1 if len(piece) <= 6 else (len(piece) + 5) // 4


def take_fitting(items: Iterable[Item], text: Callable[[Item], str], tokens: int) -> list[Item]:
    """Return items in their order, without those whose text no longer fits into `tokens` tokens."""
    kept, left = [], tokens
    for item in items:
        cost = estimate_tokens(text(item))
        if cost <= left:
            kept.append(item)
            left -= cost
    return kept


def shorten(text: str, tokens: int) -> str:
    """Return the text, or the parts of its beginning and end that fit into `tokens` tokens, with `…` in between."""
    if estimate_tokens(text) <= tokens:
        return text
    if tokens < 1:
        return ""
    head = _prefix_that_fits(text, (2 * tokens + 1) // 3 - 1)
    tail = _prefix_that_fits(text[::-1], tokens - 1 - estimate_tokens(head))[::-1]
    return " ".join(part for part in (head.strip(), CUT, tail.strip()) if part)


def _prefix_that_fits(text: str, tokens: int) -> str:
    """Return the start of a text that takes at most `tokens` tokens; the last word may be cut."""
    left = tokens
    for piece in _PIECES.finditer(text):
        cost = _cost(piece[0])
        if cost > left:
            # Cut inside a word only if it is long, such as a hash or a line of base64.
            room = max(0, 4 * left - 5 if piece[0].isascii() else left)
            return text[: piece.start() + (room if cost > 20 else 0)]
        left -= cost
    return text
