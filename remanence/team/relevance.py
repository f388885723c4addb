"""How relevant a hit is to a prompt, between 0 and 1, so that a bar can keep the rest out. Scores of recall order the
hits of one question; this compares across questions and across stores.

It is a logistic curve over three things: how many telling words of the prompt the memory holds, the cosine, and the
share of the prompt's telling words that these are. How telling a word is follows from how many memories hold it, as if
there were a hundred more without it: among a handful of memories about one bug every word would otherwise seem common.
The numbers come from a regression on the prompts of `rmem eval team` (docs/decisions/0017-telling-unasked.md)."""

from __future__ import annotations

import math

from ..index.bm25 import idf
from ..recall.explain import Explanation

_BASE, _TELLING, _COSINE, _COVERED = -6.06, 3.85, 2.4, 4.31
_OTHERS = 100  # memories that we imagine beside those there are
_RELATED = 0.5  # what a related word counts


def relevance(explained: Explanation) -> float:
    """From the explanation of a hit."""
    rows = explained.rows
    rarest = idf(rows + _OTHERS, 0)
    weights = {word: idf(rows + _OTHERS, _holding(rows, told)) / rarest for word, told in explained.asked.items()}
    exact = {match.word for match in explained.words if match.word == match.matched}
    related = {match.word for match in explained.words} - exact
    said = sum(weights.get(word, 0.0) for word in exact)
    telling = math.log1p(said + _RELATED * sum(weights.get(word, 0.0) for word in related))
    covered = said / (sum(weights.values()) or 1.0)
    cosine = explained.cosine or 0.0
    return 1 / (1 + math.exp(-(_BASE + _TELLING * telling + _COSINE * cosine + _COVERED * covered)))


def _holding(rows: int, told: float) -> int:
    """How many of the rows hold a word, from its idf among them."""
    odds = math.exp(told) - 1
    return max(0, round((rows + 0.5 - 0.5 * odds) / (1 + odds)))
