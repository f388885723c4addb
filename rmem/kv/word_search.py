"""Search texts by their words without a stored index, for the stores in memory and in Redis."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from ..forks import new_lock
from ..index.analyser import Word, analyse, question_words


class _AnalysedText(NamedTuple):
    text: str
    lowered: str
    terms: frozenset[int]


class WordSearch:
    """Ranks texts for a query. A text that contains the whole query scores 1.0, as in the guide; others score the share
    of the query's words that they contain, weighted by rarity, below 1. Texts without any of them are left out.

    A text is analysed once and again only if it changes."""

    def __init__(self) -> None:
        self._texts: dict[str, _AnalysedText] = {}
        self._keys_of_term: dict[int, set[str]] = defaultdict(set)  # term -> keys of the texts that contain it
        self._lock = new_lock()

    def rank(self, query: str, texts: Mapping[str, str], count: int) -> list[tuple[str, float]]:
        """Return (key, score) of the best of {key: text}, best first; ties keep their order."""
        if not query.strip():
            return []
        lower_query = query.lower()
        with self._lock:
            self._update(texts)
            shares = self._word_shares(_content_words(query), len(texts))
            exact = {key for key in texts if lower_query in self._texts[key].lowered}
        found = [(key, 1.0 if key in exact else shares[key]) for key in texts if key in exact or key in shares]
        found.sort(key=lambda hit: -hit[1])
        return found[:count]

    def _word_shares(self, words: list[Word], size: int) -> dict[str, float]:
        found = [set().union(*(self._keys_of_term.get(term, ()) for term in word.hashes)) for word in words]
        weights = [math.log(1 + (size - len(keys) + 0.5) / (len(keys) + 0.5)) for keys in found]
        total = sum(weights)
        shares: dict[str, float] = defaultdict(float)
        for keys, weight in zip(found, weights, strict=True):
            for key in keys:
                shares[key] += 0.99 * weight / total
        return shares

    def _update(self, texts: Mapping[str, str]) -> None:
        for key in self._texts.keys() - texts.keys():
            self._drop(key)
        for key, text in texts.items():
            known = self._texts.get(key)
            if known is None or known.text != text:
                if known is not None:
                    self._drop(key)
                terms = frozenset(analyse(text).hashes.tolist())
                self._texts[key] = _AnalysedText(text, text.lower(), terms)
                for term in terms:
                    self._keys_of_term[term].add(key)

    def _drop(self, key: str) -> None:
        for term in self._texts.pop(key).terms:
            self._keys_of_term[term].discard(key)
            if not self._keys_of_term[term]:
                del self._keys_of_term[term]


def _content_words(query: str) -> list[Word]:
    words = question_words(query)
    return [word for word in words if not word.stop] or list(words)


def shares_words(text: str, query: str) -> bool:
    """Whether a text contains any word of a query."""
    terms = set(analyse(text).hashes.tolist())
    return any(not terms.isdisjoint(word.hashes) for word in question_words(query))
