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
from ..stores.redis_link import Link, RedisAddress, script
from .base import MAX_NAMESPACE, Entry, Hits, KeyedStore, checked_query, entries, entry, possible, text_of
from .word_search import WordSearch

_AT_ONCE = 1000  # keys in one command
Ttl = float | Literal["default"] | None

# KEYS: order, counter, values…   ARGV: then name, ttl in ms (0: for ever) and value of each
_PUT = """
for at = 3, #KEYS do
  local name, ttl, value = ARGV[3 * at - 8], tonumber(ARGV[3 * at - 7]), ARGV[3 * at - 6]
  if redis.call('EXISTS', KEYS[at]) == 0 or not redis.call('ZSCORE', KEYS[1], name) then
    redis.call('ZADD', KEYS[1], redis.call('INCR', KEYS[2]), name)
  end
  if ttl > 0 then redis.call('SET', KEYS[at], value, 'PX', ttl) else redis.call('SET', KEYS[at], value) end
end
"""
# A value begins with its ttl, so that a reader can give it that time again.
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
# Names whose values have expired leave the order, unless they are back.
_SWEEP = """
for at = 2, #KEYS do
  if redis.call('EXISTS', KEYS[at]) == 0 then redis.call('ZREM', KEYS[1], ARGV[at - 1]) end
end
"""


class RedisStore(KeyedStore):
    """`RedisStore(host="localhost", namespace="session-7", default_ttl=3600)`.

    `ttl`, in seconds, may be given with each `add`; `default_ttl` is for those without, and None is for ever. With
    `refresh_on_read`, a value that `get` or `search` hands out has its whole time before it again. The connection is
    made as RedisRecordStore makes it; while the server does not answer, calls raise StoreUnreachableError.

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
        self._link = Link(address, client)
        safe = namespace.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")  # braces would end the hash tag
        self._stem = f"values:{{{safe}}}:"
        self._order, self._counter = f"{self._stem}order", f"{self._stem}counter"
        self._copies = checks.whole("copies", copies)
        self._words = WordSearch()

    def __repr__(self) -> str:
        return f"RedisStore({self._link}, namespace={self.namespace!r})"

    def _at(self, key: str) -> str:
        return f"{self._stem}value:{key}"

    # Writing

    def add(self, key: str, value: Any, meta: dict[str, Any] | None = None, *, ttl: Ttl = "default") -> None:
        """Keep a value for `ttl` seconds (None: for ever); one with the same key is replaced, its time with it."""
        self._write(self._admitted([entry(key, value, meta)]), self._milliseconds(ttl))

    def add_many(self, items: Mapping[str, Any] | Iterable[Sequence[Any]], *, ttl: Ttl = "default") -> int:
        """Keep many values at once, all or none, for `ttl` seconds each."""
        given = self._admitted(entries(items))
        self._write(given, self._milliseconds(ttl))
        return len(given)

    def _put(self, given: Sequence[Entry]) -> None:
        self._write(given, self._default)

    def _write(self, given: Sequence[Entry], ttl: int) -> None:
        if not given:
            return
        arguments: list[Any] = []
        for one in given:
            arguments += [one.key, ttl, f"{ttl}|{_packed(one)}"]
        keys = [self._order, self._counter, *(self._at(one.key) for one in given)]
        self._link.run([script(_PUT, keys, *arguments)])
        self._confirm()

    def _confirm(self) -> None:
        if self._copies:
            self._link.confirm(f"{self._stem}confirmed", self._copies)

    def _milliseconds(self, ttl: Ttl) -> int:
        return self._default if ttl == "default" else _milliseconds("ttl", ttl)

    def expire(self, key: str, ttl: float | None) -> bool:
        """Give a value another time to live (None: for ever); whether there was one."""
        found = self._find(key)
        if found is None:
            return False
        self._write([found], _milliseconds("ttl", ttl))
        return True

    def _forget(self, key: str) -> bool:
        was_there = bool(self._link.run([script(_FORGET, [self._order, self._at(key)], key)])[0])
        self._confirm()
        return was_there

    # Reading

    def ttl_of(self, key: str) -> float | None:
        """Seconds that a value has still to live: infinity if it does not expire, None if there is none."""
        (left,) = self._link.run([("PTTL", self._at(key))]) if possible(key) else (-2,)
        return None if left == -2 else math.inf if left == -1 else left / 1000

    def get(self, key: str) -> Any:
        found = self._read([key], refresh=self._refresh)[0] if possible(key) else None
        return None if found is None else found.value

    def _get_many(self, keys: Sequence[str]) -> list[Entry | None]:
        return self._read(keys, refresh=False)

    def _read(self, keys: Sequence[str], *, refresh: bool) -> list[Entry | None]:
        found: list[Entry | None] = []
        for start in range(0, len(keys), _AT_ONCE):
            part = keys[start : start + _AT_ONCE]
            at = [self._at(key) for key in part]
            command = script(_READ, at) if refresh else ("MGET", *at)
            (values,) = self._link.run([command])
            found += [self._unpacked(key, value) for key, value in zip(part, values, strict=True)]
        return found

    def _unpacked(self, key: str, value: bytes | None) -> Entry | None:
        if value is None:
            return None
        try:
            held = json.loads(value.partition(b"|")[2])
            return Entry(key, held["value"], held.get("meta", {}))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"the value of {key!r} in {self!r} was not written by RedisStore: {error}") from error

    def _keys(self) -> list[str]:
        return [one.key for one in self._alive()]

    def _all(self) -> list[Entry]:
        return self._alive()

    def _alive(self) -> list[Entry]:
        (named,) = self._link.run([("ZRANGE", self._order, 0, -1)])
        keys = [name.decode() for name in named]
        found = self._read(keys, refresh=False)
        gone = [key for key, one in zip(keys, found, strict=True) if one is None]
        for start in range(0, len(gone), _AT_ONCE):
            part = gone[start : start + _AT_ONCE]
            self._link.run([script(_SWEEP, [self._order, *map(self._at, part)], *part)])
        return [one for one in found if one is not None]

    def search(self, query: str, top_k: int = 5) -> Hits:
        """Values that hold the query, then those that hold some of its words, of what is alive."""
        count = checked_query(query, top_k)
        held = {one.key: one for one in self._alive()}
        ranked = self._words.rank(query, {key: text_of(one.value) for key, one in held.items()}, count)
        if self._refresh and ranked:
            self._read([key for key, _ in ranked], refresh=True)
        return [(key, held[key].value, score) for key, score in ranked]

    def close(self) -> None:
        self._link.close()


def _packed(one: Entry) -> str:
    return json.dumps({"value": one.value, **({"meta": one.meta} if one.meta else {})}, ensure_ascii=False)


def _milliseconds(field: str, ttl: object) -> int:
    """0 is for ever."""
    return 0 if ttl is None else max(1, round(1000 * checks.number(field, ttl, low=0.001, high=1e9)))
