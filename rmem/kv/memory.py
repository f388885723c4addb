"""A key-value store in a dictionary: the default."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ..forks import new_rlock
from ..privacy.choice import PrivacySpec, policy_of
from .base import Entry, Hits, KeyedStore, checked_query, own, text_of
from .word_search import WordSearch


class InMemoryStore(KeyedStore):
    """`store.data` and `store.meta` are the dictionaries themselves, as in the guide: what is put there is found."""

    def __init__(self, *, privacy: PrivacySpec = None) -> None:
        self.privacy = policy_of(privacy)
        self._data: dict[str, Any] = {}
        self._meta: dict[str, dict[str, Any]] = defaultdict(dict)
        self._lock = new_rlock()
        self._words = WordSearch()

    @property
    def data(self) -> dict[str, Any]:
        return self._data

    @property
    def meta(self) -> dict[str, dict[str, Any]]:
        return self._meta

    def _put(self, given: Sequence[Entry]) -> None:
        with self._lock:
            for one in given:
                self.data[one.key] = one.value
                self.meta.pop(one.key, None)
                if one.meta:
                    self.meta[one.key] = one.meta

    def _get_many(self, keys: Sequence[str]) -> list[Entry | None]:
        with self._lock:
            return [
                Entry(key, own(self.data[key]), own(self.meta.get(key, {}))) if key in self.data else None
                for key in keys
            ]

    def _keys(self) -> list[str]:
        with self._lock:
            return list(self.data)

    def search(self, query: str, top_k: int = 5) -> Hits:
        """Values that hold the query, then those that hold some of its words."""
        count = checked_query(query, top_k)
        with self._lock:
            held = dict(self.data)
        ranked = self._words.rank(query, {key: text_of(value) for key, value in held.items()}, count)
        return [(key, own(held[key]), score) for key, score in ranked]

    def _forget(self, key: str) -> bool:
        with self._lock:
            self.meta.pop(key, None)
            return self.data.pop(key, None) is not None
