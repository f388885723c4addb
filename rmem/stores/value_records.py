"""ValueRecords: use a store with only `add`, `get`, `search` and `forget` as a RecordStore. Other methods raise an
error."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

from ..errors import ConfigError
from ..filters import Filter
from ..index.filtered_rows import FilteredRows
from ..models import Embeddings, Hit, Memory
from .base import Edit, MemoryStore, Order, RecordStore, StoreStats
from .vectors import Vector

if TYPE_CHECKING:
    from ..recall.pipeline import RecallRequest

METHODS = ("add", "get", "search", "forget")


def keeps_values(store: object) -> TypeGuard[MemoryStore[Any]]:
    """Whether an object has the four methods, whatever its class."""
    return not isinstance(store, type) and all(callable(getattr(store, name, None)) for name in METHODS)


def store_expected(store: object) -> str:
    """Say what a store must be, and how what was given differs: it lacks methods, or is a class."""
    lacking = [name for name in METHODS if not callable(getattr(store, name, None))]
    if isinstance(store, type):
        hint = "" if lacking else f" (the object, not its class: {store.__name__}(…))"
    else:
        hint = "" if len(lacking) == len(METHODS) else f" ({type(store).__name__} has no {', '.join(lacking)})"
    return f"a store with the methods {', '.join(METHODS)}{hint}"


def as_records(store: MemoryStore[Any]) -> RecordStore:
    """Return the store itself if it is a RecordStore, else a ValueRecords of it."""
    return store if isinstance(store, RecordStore) else ValueRecords(store)


class ValueRecords(RecordStore):
    """Memories in a store of values by key: the text is the value, the other fields its meta.

    `remember`, `get`, `update`, `forget(id)` and `recall` work; a recall is the store's own search. Other fields than
    the text are returned if the store has `meta_of(key)`. An update reads and writes without a lock. The other methods
    raise a ConfigError that names them.
    """

    def __init__(self, values: MemoryStore[Any]) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"ValueRecords({self.values!r})"

    @property
    def kind(self) -> str:
        return type(self.values).__name__

    # Supported

    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        import secrets

        kept = [memory.copied() for memory in memories]
        for memory in kept:
            memory.memory_id = memory.memory_id or f"{memory.agent_id}-{secrets.token_hex(8)}"
            memory.step_number = max(0, memory.step_number)
            memory.embeddings = Embeddings()
            fields = memory.to_dict()
            del fields["embeddings"]
            self.values.add(memory.memory_id, memory.text, {"memory": fields})
        return kept

    def get_many(self, keys: Sequence[str]) -> list[Memory | None]:
        return [self._memory(key, self.values.get(key)) for key in keys]

    def _memory(self, key: str, value: Any) -> Memory | None:
        if value is None:
            return None
        tell: Callable[[str], Any] | None = getattr(self.values, "meta_of", None)
        fields = (tell(key) or {}).get("memory") if tell is not None else None
        if isinstance(fields, dict):
            return Memory.from_dict(fields)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return Memory(key, "default", 0, 0.0, {"text": text}, text=text)

    def edit(self, memory_id: str, edit: Edit) -> Memory | None:
        old = self.get(memory_id)
        edited = edit(old)
        if edited is None:
            return old
        if edited.memory is None:
            self.values.forget(memory_id)
            return None
        edited.memory.memory_id = memory_id
        return self.put([edited.memory])[0]

    def forget_many(self, keys: Sequence[str]) -> int:
        return sum(bool(self.values.forget(key)) for key in keys)

    def search(self, query: str, top_k: int = 5) -> list[tuple[str, Memory, float]]:
        found = (
            (key, self._memory(key, value), float(score)) for key, value, score in self.values.search(query, top_k)
        )
        return [(key, memory, score) for key, memory, score in found if memory is not None]

    def match(self, query: str, where: Filter | None = None, k: int = 10) -> list[tuple[Memory, float]]:
        if where:
            self._refuse("a filter")
        return [(memory, score) for _, memory, score in self.search(query, k)]

    def answer(self, request: RecallRequest) -> list[Hit]:
        """Return the hits of a recall, as the store's own search ranks them."""
        unsupported = {
            "where, since and until": bool(request.where),
            "a vector": request.vector is not None,
            f"mode={request.mode!r}": request.mode != "hybrid",
            "must and must_not": bool(request.question.must or request.question.must_not),
            "explain": request.explain,
            "min_relevance": request.min_relevance > 0,
            "token_budget": request.token_budget is not None,
        }
        for what, given in unsupported.items():
            if given:
                self._refuse(f"a recall with {what}")
        return [Hit(memory, score) for _, memory, score in self.search(request.text, request.k)]

    def touch(self, keys: Sequence[str], when: float) -> None:
        """Do nothing: such a store has no access counts."""

    def get_meta(self, key: str) -> str | None:
        return None

    def close(self) -> None:
        close: Callable[[], object] | None = getattr(self.values, "close", None)
        if close is not None:
            close()

    # Unsupported

    def _refuse(self, what: str) -> NoReturn:
        raise ConfigError(
            f"{self.kind} cannot do this: {what} needs a RecordStore, and this store has only "
            f"{', '.join(METHODS)}. remember, get, update, recall and forget by id work; for the rest give Brain a "
            "file, postgresql://…, redis://… or a RecordStore"
        )

    def select(
        self, where: Filter | None = None, *, order: Order = "oldest", limit: int | None = None, offset: int = 0
    ) -> list[Memory]:
        self._refuse("listing memories")

    def count(self, where: Filter | None = None) -> int:
        self._refuse("counting memories")

    def nearest(self, vector: Vector, where: Filter | None = None, k: int = 10) -> list[tuple[Memory, float]]:
        self._refuse("searching by a vector")

    def filtered_rows(self, where: Filter) -> FilteredRows:
        self._refuse("reading rows")

    def memories_at(self, seqs: Sequence[int]) -> list[tuple[int, Memory]]:
        self._refuse("reading rows")

    def stats(self) -> StoreStats:
        self._refuse("statistics")

    def set_meta(self, key: str, value: str) -> None:
        self._refuse("feedback and other notes about the store")
