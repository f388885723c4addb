"""A key-value store in Redis, whose values may expire. Each value is a key with Redis's own expiry, so that it ends on
time for every reader; a sorted set keeps their order. All keys of a namespace lie in one slot of a cluster.

A search reads every value of the namespace. That suits a cache of some thousand values; for more, SqliteStore has an
index."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from .. import checks
from ..errors import StoreError
from ..privacy.choice import PrivacySpec, policy_of
from ..stores.redis_link import RedisAddress, RedisLink, script
from .base import (
    MAX_NAMESPACE,
    Entry,
    Hits,
    KeyedStore,
    check_entries,
    check_entry,
    check_query,
    is_storable_key,
    text_of,
)
from .word_search import WordSearch

_BATCH = 1000  # keys in one command
Ttl = float | Literal["default"] | None

# KEYS: order, counter, values…   ARGV: for each value its name, TTL in ms (0: does not expire) and content
_PUT = """
for at = 3, #KEYS do
  local name, ttl, value = ARGV[3 * at - 8], tonumber(ARGV[3 * at - 7]), ARGV[3 * at - 6]
  if redis.call('EXISTS', KEYS[at]) == 0 or not redis.call('ZSCORE', KEYS[1], name) then
    redis.call('ZADD', KEYS[1], redis.call('INCR', KEYS[2]), name)
  end
  if ttl > 0 then redis.call('SET', KEYS[at], value, 'PX', ttl) else redis.call('SET', KEYS[at], value) end
end
"""
# A stored value begins with its TTL, so that `refresh_on_read` can set it again.
_READ = """
local found = {}
for at, key in ipairs(KEYS) do
  local value = redis.call('GET', key)
  found[at] = value
  if value then
    local ttl = tonumber(string.match(value, '^%d+'))
    if ttl > 0 then redis.call('PEXPIRE', key, ttl) end
  end
end
return found
"""
_FORGET = """
redis.call('ZREM', KEYS[1], ARGV[1])
return redis.call('DEL', KEYS[2])
"""
# Remove expired names from the order, unless a value was stored again meanwhile.
_SWEEP = """
for at = 2, #KEYS do
  if redis.call('EXISTS', KEYS[at]) == 0 then redis.call('ZREM', KEYS[1], ARGV[at - 1]) end
end
"""


class RedisStore(KeyedStore):
    """`RedisStore(host="localhost", namespace="session-7", default_ttl=3600)`.

    `ttl`, in seconds, may be given with each `add`; `default_ttl` is for those without, and None means no expiry. With
    `refresh_on_read`, `get` and `search` restart the TTL of the values they return. The connection is made as
    RedisRecordStore makes it; while the server does not answer, calls raise StoreUnreachableError.

    Redis replicates after it has answered: what was written last may be lost when a master fails. With `copies=1`,
    `add` and `forget` return when so many replicas have the write, or raise StoreUnreachableError if not in time.
    """

    def __init__(
        self,
        *,
        namespace: str = "default",
        default_ttl: float | None = None,
        refresh_on_read: bool = False,
        host: str = "localhost",
        port: int = 6379,
        db: int = 0,
        username: str | None = None,
        password: str | None = None,
        tls: bool = False,
        ca: str | Path | None = None,
        cluster: bool = False,
        connect_timeout: float = 2.0,
        socket_timeout: float = 5.0,
        client: Any = None,
        privacy: PrivacySpec = None,
        copies: int = 0,
    ) -> None:
        self.privacy = policy_of(privacy)
        self.namespace = checks.name("namespace", namespace, maximum=MAX_NAMESPACE)
        self._default = _milliseconds("default_ttl", default_ttl)
        self._refresh = checks.flag("refresh_on_read", refresh_on_read)
        address = RedisAddress(host, port, db, username, password, tls, ca, cluster, connect_timeout, socket_timeout)
        self._link = RedisLink(address, client)
        # a brace would end the hash tag of Redis Cluster
        safe = namespace.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
        self._stem = f"values:{{{safe}}}:"
        self._order, self._counter = f"{self._stem}order", f"{self._stem}counter"
        self._copies = checks.whole("copies", copies)
        self._words = WordSearch()

    def __repr__(self) -> str:
        return f"RedisStore({self._link}, namespace={self.namespace!r})"

    def _redis_key(self, key: str) -> str:
        return f"{self._stem}value:{key}"

    # Writing

    def add(self, key: str, value: Any, meta: dict[str, Any] | None = None, *, ttl: Ttl = "default") -> None:
        """Store a value for `ttl` seconds (None: no expiry); replace the value and TTL of an existing key."""
        self._write(self._apply_privacy([check_entry(key, value, meta)]), self._milliseconds(ttl))

    def add_many(self, items: Mapping[str, Any] | Iterable[Sequence[Any]], *, ttl: Ttl = "default") -> int:
        """Store many values, all or none, each for `ttl` seconds; return how many."""
        entries = self._apply_privacy(check_entries(items))
        self._write(entries, self._milliseconds(ttl))
        return len(entries)

    def _put(self, entries: Sequence[Entry]) -> None:
        self._write(entries, self._default)

    def _write(self, entries: Sequence[Entry], ttl: int) -> None:
        if not entries:
            return
        arguments: list[Any] = []
        for entry in entries:
            arguments += [entry.key, ttl, f"{ttl}|{_encode(entry)}"]
        keys = [self._order, self._counter, *(self._redis_key(entry.key) for entry in entries)]
        self._link.run([script(_PUT, keys, *arguments)])
        self._confirm()

    def _confirm(self) -> None:
        if self._copies:
            self._link.confirm(f"{self._stem}confirmed", self._copies)

    def _milliseconds(self, ttl: Ttl) -> int:
        return self._default if ttl == "default" else _milliseconds("ttl", ttl)

    def expire(self, key: str, ttl: float | None) -> bool:
        """Set the TTL of a value in seconds (None: no expiry); return whether the key exists."""
        found = self._find(key)
        if found is None:
            return False
        self._write([found], _milliseconds("ttl", ttl))
        return True

    def _forget(self, key: str) -> bool:
        was_there = bool(self._link.run([script(_FORGET, [self._order, self._redis_key(key)], key)])[0])
        self._confirm()
        return was_there

    # Reading

    def ttl_of(self, key: str) -> float | None:
        """Return the remaining seconds of a value: infinity if it does not expire, None if the key does not exist."""
        (left,) = self._link.run([("PTTL", self._redis_key(key))]) if is_storable_key(key) else (-2,)
        return None if left == -2 else math.inf if left == -1 else left / 1000

    def get(self, key: str) -> Any:
        found = self._read([key], refresh=self._refresh)[0] if is_storable_key(key) else None
        return None if found is None else found.value

    def _get_many(self, keys: Sequence[str]) -> list[Entry | None]:
        return self._read(keys, refresh=False)

    def _read(self, keys: Sequence[str], *, refresh: bool) -> list[Entry | None]:
        found: list[Entry | None] = []
        for start in range(0, len(keys), _BATCH):
            part = keys[start : start + _BATCH]
            at = [self._redis_key(key) for key in part]
            command = script(_READ, at) if refresh else ("MGET", *at)
            (values,) = self._link.run([command])
            found += [self._decode(key, value) for key, value in zip(part, values, strict=True)]
        return found

    def _decode(self, key: str, value: bytes | None) -> Entry | None:
        if value is None:
            return None
        try:
            fields = json.loads(value.partition(b"|")[2])
            return Entry(key, fields["value"], fields.get("meta", {}))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"the value of {key!r} in {self!r} was not written by RedisStore: {error}") from error

    def _keys(self) -> list[str]:
        return [entry.key for entry in self._unexpired()]

    def _all(self) -> list[Entry]:
        return self._unexpired()

    def _unexpired(self) -> list[Entry]:
        (names,) = self._link.run([("ZRANGE", self._order, 0, -1)])
        keys = [name.decode() for name in names]
        found = self._read(keys, refresh=False)
        expired = [key for key, entry in zip(keys, found, strict=True) if entry is None]
        for start in range(0, len(expired), _BATCH):
            part = expired[start : start + _BATCH]
            self._link.run([script(_SWEEP, [self._order, *map(self._redis_key, part)], *part)])
        return [entry for entry in found if entry is not None]

    def search(self, query: str, top_k: int = 5) -> Hits:
        """Return unexpired values that contain the query, then those that contain some of its words."""
        count = check_query(query, top_k)
        entries = {entry.key: entry for entry in self._unexpired()}
        ranked = self._words.rank(query, {key: text_of(entry.value) for key, entry in entries.items()}, count)
        if self._refresh and ranked:
            self._read([key for key, _ in ranked], refresh=True)
        return [(key, entries[key].value, score) for key, score in ranked]

    def close(self) -> None:
        self._link.close()


def _encode(entry: Entry) -> str:
    return json.dumps({"value": entry.value, **({"meta": entry.meta} if entry.meta else {})}, ensure_ascii=False)


def _milliseconds(field: str, ttl: object) -> int:
    """Convert seconds to milliseconds; None (no expiry) becomes 0."""
    return 0 if ttl is None else max(1, round(1000 * checks.number(field, ttl, low=0.001, high=1e9)))
