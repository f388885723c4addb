"""A key-value store in a dictionary: the default."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ..forks import new_rlock
from ..privacy.choice import PrivacySpec, policy_of
from .base import Entry, Hits, KeyedStore, check_query, copy_value, text_of
from .word_search import WordSearch


class InMemoryStore(KeyedStore):
    """A store in a dictionary. As in the guide, `store.data` and `store.meta` are live: changes to them take effect."""

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

    def _put(self, entries: Sequence[Entry]) -> None:
        with self._lock:
            for entry in entries:
                self.data[entry.key] = entry.value
                self.meta.pop(entry.key, None)
                if entry.meta:
                    self.meta[entry.key] = entry.meta

    def _get_many(self, keys: Sequence[str]) -> list[Entry | None]:
        with self._lock:
            return [
                Entry(key, copy_value(self.data[key]), copy_value(self.meta.get(key, {}))) if key in self.data else None
                for key in keys
            ]

    def _keys(self) -> list[str]:
        with self._lock:
            return list(self.data)

    def search(self, query: str, top_k: int = 5) -> Hits:
        """Return values that contain the query, then those that contain some of its words."""
        count = check_query(query, top_k)
        with self._lock:
            values = dict(self.data)
        ranked = self._words.rank(query, {key: text_of(value) for key, value in values.items()}, count)
        return [(key, copy_value(values[key]), score) for key, score in ranked]

    def _forget(self, key: str) -> bool:
        with self._lock:
            self.meta.pop(key, None)
            return self.data.pop(key, None) is not None
