"""The base class of the key-value stores: checks of arguments, and everything that follows from four methods."""

from __future__ import annotations

import copy
import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import checks
from ..closing import Closing
from ..errors import InputError
from ..models import Memory
from ..stores.base import MemoryStore

if TYPE_CHECKING:
    from ..privacy.policy import PrivacyPolicy

MAX_KEY = 512  # characters; "namespace/key" must fit into the id of a memory
MAX_NAMESPACE = 60
Hits = list[tuple[str, Any, float]]


class Entry(NamedTuple):
    """A checked key, value and meta, none of which the caller can still change."""

    key: str
    value: Any
    meta: dict[str, Any]

    @property
    def text(self) -> str:
        return text_of(self.value)


def check_entry(key: object, value: object, meta: object = None) -> Entry:
    """Check the arguments of `add`; an InputError names the wrong one."""
    key = checks.name("key", key, maximum=MAX_KEY)
    if value is None:
        raise InputError("value must not be None, which is what get() answers for a missing key", field="value")
    if not isinstance(value, str):
        value = checks.json_object("add", {"value": value})["value"]
    elif value.strip():
        checks.text("value", value)
    return Entry(key, value, {} if meta is None else checks.json_object("meta", meta))


def check_entries(items: Mapping[str, Any] | Iterable[Sequence[Any]]) -> list[Entry]:
    """Check the items of `add_many`: {key: value}, or a mix of (key, value) and (key, value, meta)."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise checks.refuse("items", "a mapping, or a list of (key, value) or (key, value, meta)", items)
    found: dict[str, Entry] = {}
    for at, item in enumerate(items.items() if isinstance(items, Mapping) else items):
        if not isinstance(item, list | tuple) or not 2 <= len(item) <= 3:
            raise checks.refuse(f"items[{at}]", "(key, value) or (key, value, meta)", item)
        try:
            entry = check_entry(*item)
        except InputError as error:
            raise type(error)(f"items[{at}]: {error}", field=error.field) from None
        found[entry.key] = entry  # the last value of a key wins, as in a loop of `add`
    return list(found.values())


def text_of(value: Any) -> str:
    """Return the text by which a value is searched: itself, or its JSON. Never blank."""
    if isinstance(value, str) and value.strip():
        return value
    return json.dumps(value, ensure_ascii=False)


def copy_value(value: Any) -> Any:
    """Return a copy of a mutable value, and others as they are."""
    return value if isinstance(value, str | int | float) else copy.deepcopy(value)


def check_query(query: object, top_k: object) -> int:
    if not isinstance(query, str):
        raise checks.refuse("query", "a text", query)
    return checks.whole("top_k", top_k, low=1)


def is_storable_key(key: object) -> bool:
    """Whether a store could hold this key: one with a lone surrogate cannot be stored."""
    if not isinstance(key, str):
        raise checks.refuse("key", "a text", key)
    return key.isascii() or key.encode("utf-8", "replace").decode() == key


def apply_policy(policy: PrivacyPolicy, entry: Entry) -> Entry:
    """Apply a privacy policy to value and meta; refuse a key that contains a secret."""
    is_text = isinstance(entry.value, str)
    contents = {"meta": entry.meta} if is_text else {"meta": entry.meta, "value": entry.value}
    cleaned = policy.apply(Memory(entry.key, "values", 0, 0.0, contents, text=entry.value if is_text else "-"))
    return Entry(entry.key, cleaned.text if is_text else cleaned.contents["value"], cleaned.contents["meta"])


class KeyedStore(Closing, MemoryStore[Any]):
    """Values by key. Search uses the text of a value, or the JSON of one that is not a text.

    with SqliteStore("notes.db") as store:
        store.add("capital", "Paris is the capital of France", meta={"source": "atlas"})
        store.search("French capital")

    Values are copied when added and when read. `privacy` is a PrivacyPolicy or "default", as in Brain, applied to
    values and meta before they are stored. Safe to use from many threads.
    """

    privacy: PrivacyPolicy | None = None

    @abstractmethod
    def _put(self, entries: Sequence[Entry]) -> None:
        """Store entries of distinct keys, all or none."""

    @abstractmethod
    def _get_many(self, keys: Sequence[str]) -> list[Entry | None]:
        """Return the entries of these keys, in this order; None for a missing one."""

    @abstractmethod
    def _forget(self, key: str) -> bool:
        """Remove an entry; return whether there was one."""

    @abstractmethod
    def _keys(self) -> list[str]:
        """Return all keys, oldest first; a replaced value keeps its place."""

    def add(self, key: str, value: Any, meta: dict[str, Any] | None = None) -> None:
        """Store a value; replace the value and meta of an existing key."""
        self._put(self._apply_privacy([check_entry(key, value, meta)]))

    def add_many(self, items: Mapping[str, Any] | Iterable[Sequence[Any]]) -> int:
        """Store many values, all or none: {key: value}, (key, value) or (key, value, meta). Return how many."""
        entries = self._apply_privacy(check_entries(items))
        if entries:
            self._put(entries)
        return len(entries)

    def _apply_privacy(self, entries: list[Entry]) -> list[Entry]:
        return entries if self.privacy is None else [apply_policy(self.privacy, entry) for entry in entries]

    def get(self, key: str) -> Any:
        found = self._find(key)
        return None if found is None else found.value

    def forget(self, key: str) -> bool:
        return is_storable_key(key) and self._forget(key)

    def meta_of(self, key: str) -> dict[str, Any] | None:
        """Return the meta of a value: {} if it has none, None if there is no such key."""
        found = self._find(key)
        return None if found is None else found.meta

    def _find(self, key: str) -> Entry | None:
        return self._get_many([key])[0] if is_storable_key(key) else None

    @property
    def data(self) -> dict[str, Any]:
        """Return a copy of all values by key."""
        return {entry.key: entry.value for entry in self._all()}

    @property
    def meta(self) -> dict[str, dict[str, Any]]:
        """Return a copy of the meta of all values that have any, by key."""
        return {entry.key: entry.meta for entry in self._all() if entry.meta}

    def _all(self) -> list[Entry]:
        return [entry for entry in self._get_many(self._keys()) if entry is not None]

    def __len__(self) -> int:
        return len(self._keys())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._find(key) is not None

    def __iter__(self) -> Iterator[str]:
        """Keys, oldest first."""
        return iter(self._keys())

    def __bool__(self) -> bool:
        return True  # `if memory.vector:` asks whether there is a store, not whether it holds something
