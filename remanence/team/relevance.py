"""How relevant a hit is to a prompt, between 0 and 1, so that a bar can keep the rest out. Scores of recall order the
hits of one question; this compares across questions.

It is a logistic curve over three things: how many telling words are matched (BM25 in units of a word that nobody else
says), the cosine, and the share of the prompt's words, weighed by how telling they are, that the memory answers. The
four numbers come from a regression on the prompts of `rmem eval team`; in five-fold cross-validation the bar of 0.3
gave a precision of 0.94 and a recall of 0.84 (docs/decisions/0017-telling-unasked.md)."""

from __future__ import annotations

import math

from ..index.bm25 import idf
from ..recall.explain import Explanation

_BASE, _TELLING, _COSINE, _COVERED = -5.8, 4.4, 1.8, 2.3


def relevance(explained: Explanation) -> float:
    """From the explanation of a hit."""
    rarest = idf(explained.rows, 0)
    whole = sum(explained.asked.values())
    answered = {match.word for match in explained.words if match.word == match.matched}
    covered = sum(weight for word, weight in explained.asked.items() if word in answered) / whole if whole else 0.0
    telling = math.log1p(explained.bm25 / rarest) if rarest else 0.0
    return 1 / (1 + math.exp(-(_BASE + _TELLING * telling + _COSINE * (explained.cosine or 0.0) + _COVERED * covered)))
