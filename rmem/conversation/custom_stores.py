"""Stores of your own behind EnhancedAgentMemory: `memory.long_term = …`, `memory.working = …`, `memory.vector = …`. Any
object with `add`, `get`, `search` and `forget` will do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from .. import checks
from ..forks import new_lock
from ..kv.base import Hits, check_query, text_of
from ..stores.base import MemoryStore
from ..stores.value_records import keeps_values, store_expected
from .long_term import PREFIXES

_FURTHER = 4  # times as many are asked for where only some kinds count


def check_store(field: str, store: object) -> MemoryStore[Any]:
    """Check that a store can replace the one called `field`; InputError if not."""
    if not keeps_values(store):
        raise checks.refuse(field, store_expected(store), store)
    return store


class LongTermValues:
    """The long-term memory in a store of four methods: texts under `exp_0`, `msg_0`, `tool_0` …."""

    def __init__(self, store: MemoryStore[Any], taken: Callable[[str], bool]) -> None:
        """`taken` says which other keys are in use."""
        self.store = store
        self._taken = taken
        self._next: dict[str, int] = defaultdict(int)
        self._lock = new_lock()

    def new_key(self, kind: str) -> str:
        """Return a free key. Processes that add to one store at the same instant may get the same one: four methods
        cannot prevent it."""
        prefix = PREFIXES[kind]
        with self._lock:
            number = self._next[prefix] or self._first_free(prefix)
            while self._holds(f"{prefix}_{number}"):
                number += 1
            self._next[prefix] = number + 1
            return f"{prefix}_{number}"

    def _holds(self, key: str) -> bool:
        return self._taken(key) or self.store.get(key) is not None

    def _first_free(self, prefix: str) -> int:
        """Find about how many keys there are by doubling and halving."""
        high = 1
        while self._holds(f"{prefix}_{high - 1}"):
            high *= 2
        low = high // 2
        while low < high - 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._holds(f"{prefix}_{middle - 1}") else (low, middle)
        return low

    def search(self, query: str, k: int, kinds: Sequence[str]) -> Hits:
        """Return the best of some kinds, as the store ranks them."""
        check_query(query, k)
        wanted = tuple(f"{PREFIXES[kind]}_" for kind in kinds)
        found = self.store.search(query, _FURTHER * k)
        return [(key, text_of(value), float(score)) for key, value, score in found if key.startswith(wanted)][:k]


@runtime_checkable
class _Listed(Protocol):
    """A store with a `data` attribute, as in the guide."""

    @property
    def data(self) -> Mapping[str, Any]: ...


class WorkingValues:
    """Messages and tool calls in a store of four methods, oldest first. Nothing is removed automatically."""

    def __init__(self, store: MemoryStore[Any]) -> None:
        self.store = store
        self._keys: list[str] = []

    def add(self, key: str, text: str) -> None:
        self.store.add(key, text)
        self._keys.append(key)

    @property
    def texts(self) -> dict[str, str]:
        """Return all of `store.data` if there is one, as in the guide; else what this process added."""
        if isinstance(self.store, _Listed):
            data: Mapping[str, Any] = self.store.data
        else:
            data = {key: self.store.get(key) for key in list(self._keys)}
        return {key: text_of(value) for key, value in list(data.items()) if value is not None}

    def empty(self) -> None:
        for key in self.texts:
            self.store.forget(key)
        self._keys.clear()
