"""Keeping recalled text inside a number of tokens, without a model's tokenizer."""

from __future__ import annotations

import re

_PIECES = re.compile(r"\w+|[^\w\s]")


def estimate_tokens(text: str) -> int:
    """About what a language model's tokenizer would count, on the safe side: words of up to six letters are
    one token, longer ones one more for every further four letters, other scripts one for each character."""
    tokens = 0
    for piece in _PIECES.findall(text):
        tokens += (
            1 if len(piece) <= 6 and piece.isascii() else len(piece) if not piece.isascii() else (len(piece) + 5) // 4
        )
    return tokens
