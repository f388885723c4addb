"""Store values as memories of a RecordStore: each is one row, indexed by its words, that Brain and `rmem` see as
well."""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from .. import checks
from ..filters import Filter
from ..models import Bookkeeping, Memory
from ..stores.base import RecordStore
from .base import MAX_NAMESPACE, Entry, Hits, KeyedStore, check_query
from .word_search import shares_words


class RecordValues(KeyedStore):
    """The values of one namespace: memories of the agent of that name, of some types, whose id is `namespace/key`.
    A namespace with a slash is replaced by a hash, so that "a/b" and "c" do not collide with "a" and "b/c"."""

    types: tuple[str, ...] = ("value",)

    def __init__(self, records: RecordStore, namespace: str = "default") -> None:
        self.records = records
        self.namespace = checks.name("namespace", namespace, maximum=MAX_NAMESPACE)
        self.prefix = f"{self.namespace}/"
        self.where = Filter.of({"agent": self.namespace, "type": list(self.types)})
        if "/" in self.namespace or self.namespace.startswith("%"):
            self.prefix = f"%{blake2b(self.namespace.encode(), digest_size=16).hexdigest()}/"
            self._rename(f"{self.namespace}/")

    def _rename(self, prefix: str) -> None:
        """Give values that an older version stored under the prefix `prefix` their current ids."""
        old = [memory for memory in self.records.select(self.where) if memory.memory_id.startswith(prefix)]
        renamed = [memory.copied() for memory in old]
        for memory in renamed:
            memory.memory_id = self.id_of(memory.memory_id.removeprefix(prefix))
        if old:
            self.records.put(renamed)
            self.records.forget_many([memory.memory_id for memory in old])

    def _put(self, entries: Sequence[Entry]) -> None:
        now = time.time()
        memories = [self._memory(entry, now) for entry in entries]
        for memory, old in zip(memories, self.records.get_many([m.memory_id for m in memories]), strict=True):
            if old is not None and self._is_ours(old):  # a replaced value keeps its place in the order
                memory.step_number, memory.timestamp = old.step_number, old.timestamp
        self._keep(memories)

    def _keep(self, memories: Sequence[Memory]) -> None:
        self.records.put(memories)

    def _memory(self, entry: Entry, now: float) -> Memory:
        contents: dict[str, Any] = {"text": entry.text}
        if entry.value != entry.text:
            contents["value"] = entry.value
        if entry.meta:
            contents["meta"] = entry.meta
        return Memory(
            memory_id=self.id_of(entry.key),
            agent_id=self.namespace,
            step_number=-1,
            timestamp=now,
            contents=contents,
            bookkeeping=Bookkeeping(creation_time=now, last_access_time=now, memory_type=self.types[0]),
            text=entry.text,
        )

    def id_of(self, key: str) -> str:
        """Return the id of the memory that holds the value of a key."""
        return self.prefix + key

    def key_of(self, memory: Memory) -> str:
        return memory.memory_id.removeprefix(self.prefix)

    def entry_of(self, memory: Memory) -> Entry:
        contents = memory.contents
        return Entry(self.key_of(memory), contents.get("value", memory.text), contents.get("meta", {}))

    def _is_ours(self, memory: Memory) -> bool:
        return memory.agent_id == self.namespace and memory.type in self.types

    def _get_many(self, keys: Sequence[str]) -> list[Entry | None]:
        found = self.records.get_many([self.id_of(key) for key in keys])
        return [self.entry_of(memory) if memory is not None and self._is_ours(memory) else None for memory in found]

    def _all(self) -> list[Entry]:
        return [self.entry_of(memory) for memory in self.records.select(self.where, order="step")]

    def _keys(self) -> list[str]:
        return [entry.key for entry in self._all()]

    def __len__(self) -> int:
        return self.records.count(self.where)

    def search(self, query: str, top_k: int = 5) -> Hits:
        """Rank values by BM25."""
        count = check_query(query, top_k)
        limit = count
        while True:
            matched = self.records.match(query, self.where, k=limit)
            # A memory also matches by its date, which means nothing for a value.
            hits = [(memory, score) for memory, score in matched if shares_words(memory.text, query)]
            if len(hits) >= count or len(matched) < limit:
                break
            limit *= 4
        return [(entry.key, entry.value, score) for entry, score in ((self.entry_of(m), s) for m, s in hits[:count])]

    def _forget(self, key: str) -> bool:
        return key in self and self.records.forget(self.id_of(key))

    def close(self) -> None:
        self.records.close()
