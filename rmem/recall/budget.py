"""Keeping text inside a number of tokens, without a model's tokenizer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")

_PIECES = re.compile(r"\w+|[^\w\s]")
CUT = "…"  # one token, where something was left out


def estimate_tokens(text: str) -> int:
    """About what a language model's tokenizer would count, on the safe side: words of up to six letters are
    one token, longer ones one more for every further four letters, other scripts one for each character."""
    return sum(map(_cost, _PIECES.findall(text)))


def _cost(piece: str) -> int:
    if not piece.isascii():
        return len(piece)
    return 1 if len(piece) <= 6 else (len(piece) + 5) // 4


def fitting(items: Iterable[Item], text: Callable[[Item], str], tokens: int) -> list[Item]:
    """Items in their order, without those whose text no longer fits into so many tokens."""
    kept, left = [], tokens
    for item in items:
        cost = estimate_tokens(text(item))
        if cost <= left:
            kept.append(item)
            left -= cost
    return kept


def shorten(text: str, tokens: int) -> str:
    """The text, or as much of its beginning and end as fits into so many tokens, `…` in between."""
    if estimate_tokens(text) <= tokens:
        return text
    if tokens < 1:
        return ""
    head = _beginning(text, (2 * tokens + 1) // 3 - 1)
    tail = _beginning(text[::-1], tokens - 1 - estimate_tokens(head))[::-1]
    return " ".join(part for part in (head.strip(), CUT, tail.strip()) if part)


def _beginning(text: str, tokens: int) -> str:
    """As much of a text as costs no more than so many tokens; of its last word no more than a beginning."""
    left = tokens
    for piece in _PIECES.finditer(text):
        cost = _cost(piece[0])
        if cost > left:
            # Half a word is worth having only if the word is long, as a hash or a line of base64 is.
            room = max(0, 4 * left - 5 if piece[0].isascii() else left)
            return text[: piece.start() + (room if cost > 20 else 0)]
        left -= cost
    return text
