"""Search values by their words without an index: in a dictionary, or in what Redis holds now."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from ..forks import new_lock
from ..index.analyser import Word, analyse, question_words


class _Known(NamedTuple):
    text: str
    lowered: str
    terms: frozenset[int]


class WordSearch:
    """Ranks texts for a query. A text that holds the query as it stands scores 1.0, as in the guide; any other scores
    its share of the query's words, rare words counting more, which is below 1. Texts without any are left out.

    Texts are analysed once: what was asked about before is compared with what is there now."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._holding: dict[int, set[str]] = defaultdict(set)  # the keys of the texts that hold a term
        self._lock = new_lock()

    def rank(self, query: str, texts: Mapping[str, str], count: int) -> list[tuple[str, float]]:
        """(key, score) of the best of {key: text}, best first; equal ones stay in their order."""
        if not query.strip():
            return []
        lowered = query.lower()
        with self._lock:
            self._follow(texts)
            shares = self._shares(_telling(query), len(texts))
            whole = {key for key in texts if lowered in self._known[key].lowered}
        found = [(key, 1.0 if key in whole else shares[key]) for key in texts if key in whole or key in shares]
        found.sort(key=lambda hit: -hit[1])
        return found[:count]

    def _shares(self, words: list[Word], size: int) -> dict[str, float]:
        found = [set().union(*(self._holding.get(term, ()) for term in word.hashes)) for word in words]
        weights = [math.log(1 + (size - len(keys) + 0.5) / (len(keys) + 0.5)) for keys in found]
        total = sum(weights)
        shares: dict[str, float] = defaultdict(float)
        for keys, weight in zip(found, weights, strict=True):
            for key in keys:
                shares[key] += 0.99 * weight / total
        return shares

    def _follow(self, texts: Mapping[str, str]) -> None:
        for key in self._known.keys() - texts.keys():
            self._drop(key)
        for key, text in texts.items():
            known = self._known.get(key)
            if known is None or known.text != text:
                if known is not None:
                    self._drop(key)
                terms = frozenset(analyse(text).hashes.tolist())
                self._known[key] = _Known(text, text.lower(), terms)
                for term in terms:
                    self._holding[term].add(key)

    def _drop(self, key: str) -> None:
        for term in self._known.pop(key).terms:
            self._holding[term].discard(key)
            if not self._holding[term]:
                del self._holding[term]


def _telling(query: str) -> list[Word]:
    words = question_words(query)
    return [word for word in words if not word.stop] or list(words)


def shares_words(text: str, query: str) -> bool:
    """Whether a text holds any word of a query."""
    terms = set(analyse(text).hashes.tolist())
    return any(not terms.isdisjoint(word.hashes) for word in question_words(query))
