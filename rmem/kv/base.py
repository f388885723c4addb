"""Shared by the key-value stores: what values they accept, and everything that follows from four methods."""

from __future__ import annotations

import copy
import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from .. import checks
from ..errors import InputError
from ..models import Memory
from ..stores.base import MemoryStore

if TYPE_CHECKING:
    from ..privacy.policy import PrivacyPolicy

MAX_KEY = 512  # characters; with the longest namespace it is still an id of a memory
MAX_NAMESPACE = 60
Hits = list[tuple[str, Any, float]]


class Entry(NamedTuple):
    """A key, its value and what was said about it, all checked and all our own."""

    key: str
    value: Any
    meta: dict[str, Any]

    @property
    def text(self) -> str:
        return text_of(self.value)


def entry(key: object, value: object, meta: object = None) -> Entry:
    """What `add` was given, or an InputError that names the argument."""
    key = checks.name("key", key, maximum=MAX_KEY)
    if value is None:
        raise InputError("value must not be None, which is what get() answers for a missing key", field="value")
    if not isinstance(value, str):
        value = checks.json_object("add", {"value": value})["value"]
    elif value.strip():
        checks.text("value", value)
    return Entry(key, value, {} if meta is None else checks.json_object("meta", meta))


def entries(items: Mapping[str, Any] | Iterable[Sequence[Any]]) -> list[Entry]:
    """What `add_many` was given: {key: value}, or (key, value) and (key, value, meta), mixed as you like."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise checks.refuse("items", "a mapping, or a list of (key, value) or (key, value, meta)", items)
    found: dict[str, Entry] = {}
    for at, item in enumerate(items.items() if isinstance(items, Mapping) else items):
        if not isinstance(item, list | tuple) or not 2 <= len(item) <= 3:
            raise checks.refuse(f"items[{at}]", "(key, value) or (key, value, meta)", item)
        try:
            one = entry(*item)
        except InputError as error:
            raise type(error)(f"items[{at}]: {error}", field=error.field) from None
        found[one.key] = one  # the last one of a key counts, as if they had been added one by one
    return list(found.values())


def text_of(value: Any) -> str:
    """The text by which a value is found: itself, or its JSON. Never blank."""
    if isinstance(value, str) and value.strip():
        return value
    return json.dumps(value, ensure_ascii=False)


def own(value: Any) -> Any:
    """A copy, for values that somebody could change."""
    return value if isinstance(value, str | int | float) else copy.deepcopy(value)


def checked_query(query: object, top_k: object) -> int:
    if not isinstance(query, str):
        raise checks.refuse("query", "a text", query)
    return checks.whole("top_k", top_k, low=1)


def possible(key: object) -> bool:
    """Whether a store could hold such a key at all; half a character is none."""
    if not isinstance(key, str):
        raise checks.refuse("key", "a text", key)
    return key.isascii() or key.encode("utf-8", "replace").decode() == key


def cleaned(policy: PrivacyPolicy, one: Entry) -> Entry:
    """An entry as a privacy policy lets it in; a key that holds a secret is refused."""
    said = isinstance(one.value, str)
    contents = {"meta": one.meta} if said else {"meta": one.meta, "value": one.value}
    kept = policy.apply(Memory(one.key, "values", 0, 0.0, contents, text=one.value if said else "-"))
    return Entry(one.key, kept.text if said else kept.contents["value"], kept.contents["meta"])


class KeyedStore(MemoryStore[Any]):
    """Values by key. Texts are what is searched; of other JSON values it is their JSON.

    with SqliteStore("notes.db") as store:
        store.add("capital", "Paris is the capital of France", meta={"source": "atlas"})
        store.search("French capital")

    What goes in and what comes out are copies, but for texts. `privacy` is that of Brain: a PrivacyPolicy or "default",
    applied to values and meta before anything is kept. Safe to use from many threads.
    """

    privacy: PrivacyPolicy | None = None

    @abstractmethod
    def _put(self, given: Sequence[Entry]) -> None:
        """Keep entries of distinct keys, all or none."""

    @abstractmethod
    def _get_many(self, keys: Sequence[str]) -> list[Entry | None]:
        """The entries of these keys, in this order."""

    @abstractmethod
    def _forget(self, key: str) -> bool:
        """Remove an entry; whether there was one."""

    @abstractmethod
    def _keys(self) -> list[str]:
        """All keys, oldest first; a replaced value keeps its place."""

    def add(self, key: str, value: Any, meta: dict[str, Any] | None = None) -> None:
        """Keep a value; one with the same key is replaced, and what was said about it too."""
        self._put(self._admitted([entry(key, value, meta)]))

    def add_many(self, items: Mapping[str, Any] | Iterable[Sequence[Any]]) -> int:
        """Keep many values at once, all or none: {key: value}, or (key, value) and (key, value, meta). How many."""
        given = self._admitted(entries(items))
        if given:
            self._put(given)
        return len(given)

    def _admitted(self, given: list[Entry]) -> list[Entry]:
        return given if self.privacy is None else [cleaned(self.privacy, one) for one in given]

    def get(self, key: str) -> Any:
        found = self._find(key)
        return None if found is None else found.value

    def forget(self, key: str) -> bool:
        return possible(key) and self._forget(key)

    def meta_of(self, key: str) -> dict[str, Any] | None:
        """What was said about a value: empty if nothing was, None if there is no such key."""
        found = self._find(key)
        return None if found is None else found.meta

    def _find(self, key: str) -> Entry | None:
        return self._get_many([key])[0] if possible(key) else None

    @property
    def data(self) -> dict[str, Any]:
        """All values by key, as they are now."""
        return {one.key: one.value for one in self._all()}

    @property
    def meta(self) -> dict[str, dict[str, Any]]:
        """What was said about values, by key, as it is now."""
        return {one.key: one.meta for one in self._all() if one.meta}

    def _all(self) -> list[Entry]:
        return [one for one in self._get_many(self._keys()) if one is not None]

    def __len__(self) -> int:
        return len(self._keys())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._find(key) is not None

    def __iter__(self) -> Iterator[str]:
        """Keys, oldest first."""
        return iter(self._keys())

    def __bool__(self) -> bool:
        return True  # `if memory.vector:` asks whether there is a store, not whether it holds something

    def close(self) -> None:
        """Let go of every resource. Closing twice is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
