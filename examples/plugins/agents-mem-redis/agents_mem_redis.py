"""A store of four methods in one hash of Redis. Of Remanence it needs the interface alone, and even that only for type
checkers: any object with these four methods would do."""

from __future__ import annotations

import json
from typing import Any

import redis

from rmem import MemoryStore


class RedisStore(MemoryStore[str]):
    """`RedisStore("agents-mem-redis://localhost:6379/0")`. A search counts the words in common."""

    def __init__(self, address: str = "agents-mem-redis://localhost:6379/0", **options: Any) -> None:
        """`options` are those of the Brain that opens the address; none of them matters here."""
        self._redis = redis.Redis.from_url(address.removeprefix("agents-mem-"), decode_responses=True)
        self._name = "agents-mem"

    def add(self, key: str, value: str, meta: dict[str, Any] | None = None) -> None:
        self._redis.hset(self._name, key, json.dumps([value, meta or {}]))

    def _read(self, key: str) -> list[Any] | None:
        found = self._redis.hget(self._name, key)
        return None if found is None else json.loads(found)

    def get(self, key: str) -> str | None:
        found = self._read(key)
        return None if found is None else found[0]

    def meta_of(self, key: str) -> dict[str, Any] | None:
        found = self._read(key)
        return None if found is None else found[1]

    def search(self, query: str, top_k: int = 5) -> list[tuple[str, str, float]]:
        asked = set(query.lower().split())
        values = {key: json.loads(value)[0] for key, value in self._redis.hscan_iter(self._name)}
        hits = [(key, value, float(len(asked & set(value.lower().split())))) for key, value in values.items()]
        return sorted((hit for hit in hits if hit[2]), key=lambda hit: -hit[2])[:top_k]

    def forget(self, key: str) -> bool:
        return bool(self._redis.hdel(self._name, key))

    def close(self) -> None:
        self._redis.close()
