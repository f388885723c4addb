"""Finding values by their words where there is no index: in a dictionary, or in what Redis holds just now."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from threading import Lock

from ..index.analyser import Word, analyse, question_words

_REMEMBERED = 100_000  # texts whose words are kept


class WordSearch:
    """Ranks texts for a query. A text that holds the query as it stands scores 1.0, as in the guide; any other scores
    its share of the query's words, rare words counting more, which is below 1. Texts without any are left out."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, frozenset[int]]] = {}
        self._lock = Lock()

    def rank(self, query: str, items: Iterable[tuple[str, str]], count: int) -> list[tuple[str, float]]:
        """(key, score) of the best of (key, text), best first; equal ones stay in their order."""
        if not query.strip():
            return []
        lowered, words, given = query.lower(), _telling(query), list(items)
        held = [self._held(key, text, words) for key, text in given]
        holding = [sum(at in one for one in held) for at in range(len(words))]
        weights = [math.log(1 + (len(given) - n + 0.5) / (n + 0.5)) for n in holding]
        total = sum(weights) or 1.0
        found = []
        for (key, text), one in zip(given, held, strict=True):
            if lowered in text.lower():
                found.append((key, 1.0))
            elif one:
                found.append((key, min(sum(weights[at] for at in one) / total, 0.99)))
        found.sort(key=lambda hit: -hit[1])
        return found[:count]

    def _held(self, key: str, text: str, words: Sequence[Word]) -> set[int]:
        """Which of the words a text holds, by position."""
        terms = self._terms(key, text) if words else frozenset()
        return {at for at, word in enumerate(words) if not terms.isdisjoint(word.hashes)}

    def _terms(self, key: str, text: str) -> frozenset[int]:
        known = self._known.get(key)
        if known is not None and known[0] == text:
            return known[1]
        terms = frozenset(analyse(text).hashes.tolist())
        with self._lock:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = text, terms
        return terms


def _telling(query: str) -> list[Word]:
    words = question_words(query)
    return [word for word in words if not word.stop] or list(words)


def shares_words(text: str, query: str) -> bool:
    """Whether a text holds any word of a query."""
    terms = set(analyse(text).hashes.tolist())
    return any(not terms.isdisjoint(word.hashes) for word in question_words(query))
