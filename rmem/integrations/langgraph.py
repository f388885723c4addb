"""LangGraph's `BaseStore` on a Brain: each item is a memory, and a search with a query is a recall.

from rmem.integrations.langgraph import BrainStore
graph = builder.compile(store=BrainStore("memories.db"))
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from ..annotations import Mode
from ..brain import Brain
from ..closing import Closing
from ..errors import ConfigError, NotFoundError
from ..extras import require
from ..filters import Filter
from ..models import Memory
from .common import MAX_HITS, id_of, iterate_memories, matches, open_brain, store_filter, to_text
from .embeddings import LangChainEmbedder

require("langgraph", "rmem.integrations.langgraph")

from langgraph.store.base import (  # noqa: E402
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    validate_op_namespace,
)

ITEM, UNINDEXED, PART = "langgraph_item", "langgraph_unindexed", "langgraph_part"
"""Types of memories: an item, an item that queries do not find, and a further text of an item with its own vector."""


class _ItemChanged(Exception):
    pass


class BrainStore(Closing, BaseStore):
    """Items of LangGraph in `brain`, a Brain or its address; sync and async.

    Without `index`, a search is a hybrid recall over all fields of an item, or over index["fields"]. With
    index["embed"], which needs an address, it is by the cosine of the nearest field alone, as in LangGraph's own
    stores; `mode="hybrid"` adds the words. Expired items are never returned; `sweep_ttl` deletes them, and
    a put does so every ttl["sweep_interval_minutes"].
    """

    supports_ttl = True

    def __init__(
        self,
        brain: Brain | str | Path | None = None,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        agent: str = "langgraph",
        mode: Mode | None = None,
    ) -> None:
        embed = None if index is None else index.get("embed")
        if embed is not None and isinstance(brain, Brain):
            raise ConfigError(
                "index['embed'] goes with an address; a Brain has an embedder of its own: "
                "Brain(address, embedder=LangChainEmbedder(…)), from rmem.integrations.embeddings"
            )
        self.index_config = index
        self.embeddings = None if embed is None else ensure_embeddings(embed)
        self.ttl_config = ttl
        self.agent = agent
        self._fields: list[str] | None = None if index is None else index.get("fields")
        self._mode: Mode = mode or ("hybrid" if embed is None else "vector")
        embedder = None
        if index is not None and self.embeddings is not None:
            embedder = LangChainEmbedder(self.embeddings, dimension=index.get("dims"))
        self.brain, self._owned = open_brain(brain, embedder)
        self._next_sweep = 0.0

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run all reads first, then write all puts in one transaction."""
        operations = list(ops)
        for op in operations:
            validate_op_namespace(op)
        results: list[Result] = [None] * len(operations)
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        gets = [(at, op) for at, op in enumerate(operations) if isinstance(op, GetOp)]
        for (at, _), item in zip(gets, self._get([op for _, op in gets]), strict=True):
            results[at] = item
        for at, op in enumerate(operations):
            if isinstance(op, SearchOp):
                results[at] = self._search(op)
            elif isinstance(op, ListNamespacesOp):
                results[at] = self._list_namespaces(op)
            elif isinstance(op, PutOp):
                puts[tuple(op.namespace), op.key] = op
            elif not isinstance(op, GetOp):
                raise ValueError(f"ops must be operations of LangGraph's store, got {type(op).__name__}")
        if puts:
            self._put(puts.values())
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run `batch` in a thread."""
        return await asyncio.to_thread(self.batch, ops)

    # Reading

    def _id_of(self, namespace: Iterable[str], key: str) -> str:
        return id_of("langgraph", self.agent, *namespace, key)

    def _where(self, *types: str, prefix: Iterable[str] = (), attributes: Mapping[str, Any] | None = None) -> Filter:
        path = {f"path.{at}": name for at, name in enumerate(prefix)}
        return Filter.of({"agent": self.agent, "type": types, "attributes": {**path, **(attributes or {})}})

    def _get(self, ops: list[GetOp]) -> list[Item | None]:
        found = self.brain.get_many([self._id_of(op.namespace, op.key) for op in ops]) if ops else []
        held = [memory if memory is not None and _is_live(memory) else None for memory in found]
        self._refresh(memory for memory, op in zip(held, ops, strict=True) if memory is not None and op.refresh_ttl)
        return [None if memory is None else Item(**_fields(memory)) for memory in held]

    def _search(self, op: SearchOp) -> list[SearchItem]:
        wanted = op.offset + op.limit
        attributes = store_filter(op.filter, "value")
        ranked = self._recall(op, wanted) if op.query and op.query.strip() else {}
        chosen: list[tuple[Memory, float | None]] = list(ranked.values())
        if len(chosen) < wanted:
            where = self._where(ITEM, UNINDEXED, prefix=op.namespace_prefix, attributes=attributes)
            rest = (m for m in iterate_memories(self.brain, where) if m.id not in ranked and _passes(m, op.filter))
            chosen += [(memory, None) for memory in islice(rest, wanted - len(chosen))]
        chosen = chosen[op.offset : wanted]
        if op.refresh_ttl:
            self._refresh(memory for memory, _ in chosen)
        return [SearchItem(**_fields(memory), score=score) for memory, score in chosen]

    def _recall(self, op: SearchOp, wanted: int) -> dict[str, tuple[Memory, float | None]]:
        """Return the best items by id. The Brain filters by namespace; the rest of a filter is applied here."""
        where = self._where(ITEM, PART, prefix=op.namespace_prefix)
        fetched = min(MAX_HITS, wanted)
        while True:
            hits = self.brain.recall(str(op.query), k=fetched, where=where, mode=self._mode)
            best: dict[str, float] = {}
            items = {hit.id: hit.memory for hit in hits if hit.memory.type == ITEM}
            for hit in hits:
                best.setdefault(hit.memory.contents.get("part_of", hit.id), hit.score)
            missing = [key for key in best if key not in items]
            items |= {memory.id: memory for memory in self.brain.get_many(missing) if memory is not None}
            passed = [key for key in best if key in items and _passes(items[key], op.filter)]
            if len(passed) >= wanted or len(hits) < fetched or fetched == MAX_HITS:
                return {key: (items[key], best[key]) for key in passed[:wanted]}
            fetched = min(MAX_HITS, 4 * fetched)

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """Read every item below the prefixes: namespaces exist only in their items."""
        conditions = op.match_conditions or ()
        plain = {
            f"path.{at}": name
            for condition in conditions
            if condition.match_type == "prefix"
            for at, name in enumerate(condition.path)
            if name != "*"
        }
        items = iterate_memories(self.brain, self._where(ITEM, UNINDEXED, attributes=plain))
        namespaces = {_namespace(item) for item in items if _is_live(item)}
        matching = {
            name[: op.max_depth] for name in namespaces if all(_fits(name, condition) for condition in conditions)
        }
        return sorted(matching)[op.offset : op.offset + op.limit]

    # Writing

    def _put(self, ops: Iterable[PutOp]) -> None:
        now = time.time()
        given = {self._id_of(op.namespace, op.key): op for op in ops}
        found = dict(zip(given, self.brain.get_many(given), strict=True))
        new: list[dict[str, Any]] = []
        obsolete: list[str] = []
        for key, op in given.items():
            held = found[key]
            before = 0 if held is None else held.contents.get("parts", 0)
            made = [] if op.value is None else self._memories(key, op, now, held)
            new += made
            if op.value is None and held is not None:
                obsolete.append(key)
            obsolete += [f"{key}/{at}" for at in range(max(0, len(made) - 1), before)]
        if len(new) == 1:
            self.brain.remember(**new[0])
        elif new:
            self.brain.remember_many(new)
        for key in obsolete:
            self.brain.forget(key)
        self._sweep_if_due(now)

    def _memories(self, key: str, op: PutOp, now: float, held: Memory | None) -> list[dict[str, Any]]:
        """Build the memories of an item: itself, and a part for each further text."""
        texts = self._texts(op)
        path = {str(at): name for at, name in enumerate(op.namespace)}
        metadata = {"path": path, "key": op.key, "value": op.value, "updated": now, "parts": max(0, len(texts) - 1)}
        if op.ttl is not None:
            metadata |= {"ttl": op.ttl, "expires": now + 60 * op.ttl}
        item = {
            "id": key,
            "agent": self.agent,
            "type": ITEM if texts else UNINDEXED,
            "text": texts[0] if texts else "/".join([*op.namespace, op.key]),
            "when": now if held is None or not _is_live(held) else held.timestamp,
            "metadata": metadata,
            "tags": {} if op.ttl is None else {"expires": "yes"},
        }
        parts = [
            {
                "id": f"{key}/{at}",
                "agent": self.agent,
                "type": PART,
                "text": text,
                "metadata": {"path": path, "part_of": key},
            }
            for at, text in enumerate(texts[1:])
        ]
        return [item, *parts]

    def _texts(self, op: PutOp) -> list[str]:
        """Return the texts by which an item is found, one for each vector; none with index=False."""
        if op.index is False:
            return []
        fields = self._fields if op.index is None else op.index
        if self._mode != "vector" and (fields is None or fields == ["$"]):
            return [text for text in [to_text(op.value)] if text.strip()]
        texts = [text for field in fields or ["$"] for text in get_text_at_path(op.value, field) if text.strip()]
        return texts if self._mode == "vector" else ["\n".join(texts)][: len(texts)]

    # Time to live

    def _refresh(self, memories: Iterable[Memory]) -> None:
        """Restart the time to live of items, unless they were written meanwhile."""
        for memory in memories:
            own = memory.metadata
            if "ttl" not in own:
                continue

            def unchanged(held: Memory, updated: float = own["updated"]) -> None:
                if held.contents.get("updated") != updated:
                    raise _ItemChanged

            try:
                expires = time.time() + 60 * own["ttl"]
                self.brain.update(memory.id, only_if=unchanged, metadata={**own, "expires": expires})
            except (_ItemChanged, NotFoundError):
                pass

    def sweep_ttl(self) -> int:
        """Delete expired items; return how many."""
        where = Filter.of(self._where(ITEM, UNINDEXED), tags={"expires": "yes"})
        expired = [memory for memory in self.brain.memories(where, limit=None) if not _is_live(memory)]
        for memory in expired:
            for at in range(memory.contents["parts"]):
                self.brain.forget(f"{memory.id}/{at}")
            self.brain.forget(memory.id)
        return len(expired)

    def _sweep_if_due(self, now: float) -> None:
        minutes = (self.ttl_config or {}).get("sweep_interval_minutes")
        if minutes is not None and now >= self._next_sweep:
            if self._next_sweep:
                self.sweep_ttl()
            self._next_sweep = now + 60 * minutes

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        if self._owned:
            self.brain.close()


def _is_live(memory: Memory) -> bool:
    return bool(memory.contents.get("expires", float("inf")) > time.time())


def _passes(memory: Memory, wanted: Mapping[str, Any] | None) -> bool:
    return _is_live(memory) and matches(memory.contents["value"], wanted or {})


def _namespace(memory: Memory) -> tuple[str, ...]:
    path = memory.contents["path"]
    return tuple(path[str(at)] for at in range(len(path)))


def _fields(memory: Memory) -> dict[str, Any]:
    own = memory.contents
    return {
        "namespace": _namespace(memory),
        "key": own["key"],
        "value": own["value"],
        "created_at": datetime.fromtimestamp(memory.timestamp, UTC),
        "updated_at": datetime.fromtimestamp(own["updated"], UTC),
    }


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", name) for name, wanted in zip(part, path, strict=True))
