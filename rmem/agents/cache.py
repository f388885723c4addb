"""Cache answers: `QueryCache` for the API, and `cacheable` for functions of your own.

An entry lives until it expires, is evicted as the least recently used, or its group (an agent) is written to. Copies
are stored and copies are returned, so results may be changed freely."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import inspect
import pickle
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from functools import wraps
from types import MethodType, NoneType
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
from cachetools import TTLCache

from .. import checks
from ..forks import new_lock

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

_PLAIN = frozenset((str, bytes, bool, int, NoneType))


class QueryCache:
    """`cache.fetch(key_of(search, "wood", 5), lambda: search("wood", 5), group="agent-1")`.

    A TTL of 0 turns it off. Threads that want the same answer at the same time wait for one computation; an answer
    whose group is invalidated while it is computed is returned but not cached. Exceptions are never cached.
    """

    def __init__(self, ttl: float = 60.0, size: int = 1000, *, timer: Callable[[], float] = time.monotonic) -> None:
        self._size = checks.whole("size", size, low=1)
        self._timer = timer
        self._lock = new_lock()
        self._generations: weakref.WeakValueDictionary[Hashable, _Generation] = weakref.WeakValueDictionary()
        self._running: dict[Hashable, _Computation] = {}
        self._hits = self._misses = 0
        self._restart(_ttl(ttl))

    def _restart(self, ttl: float) -> None:
        self._ttl = ttl
        self._entries: TTLCache[Hashable, _Entry] = TTLCache(self._size, ttl, timer=self._timer)
        for generation in self._generations.values():
            generation.over = True
        self._generations.clear()

    @property
    def ttl(self) -> float:
        return self._ttl

    def fetch(self, key: Hashable | None, compute: Callable[[], Result], *, group: Hashable = None) -> Result:
        """Return the cached answer, or compute it. With the key None, for arguments without a key, nothing is
        cached."""
        while True:
            found = self._find_or_start(key, group, threading.get_ident())
            if isinstance(found, _Entry):
                try:
                    return cast(Result, found.value())
                except Exception:  # an object that can be pickled but not unpickled: compute again
                    key = None
                    continue
            if not found.ours:
                found.done.result()
                continue
            try:
                result = compute()
                self._store(found, result)
                return result
            finally:
                self._finish(found)

    async def fetch_async(
        self, key: Hashable | None, compute: Callable[[], Awaitable[Result]], *, group: Hashable = None
    ) -> Result:
        """Like `fetch`, for a coroutine function; waiting does not block the event loop."""
        while True:
            found = self._find_or_start(key, group, asyncio.current_task())
            if isinstance(found, _Entry):
                try:
                    return cast(Result, found.value())
                except Exception:  # an object that can be pickled but not unpickled: compute again
                    key = None
                    continue
            if not found.ours:
                # The computation may run in another loop; and one cancelled waiter must not cancel the others.
                await asyncio.shield(asyncio.wrap_future(found.done))
                continue
            try:
                result = await compute()
                self._store(found, result)
                return result
            finally:
                self._finish(found)

    def _find_or_start(self, key: Hashable | None, group: Hashable, who: object) -> _Entry | _Computation:
        """Return the cached entry, or a computation: a new one to run, or another thread's to wait for."""
        place = (group, key)
        with self._lock:
            if key is None or not self._ttl:
                self._misses += 1
                return _Computation(place, _Generation(over=True), who)
            generation = self._generations.get(group)
            if generation is None:
                generation = self._generations[group] = _Generation()
            entry = self._entries.get(place)
            computation = self._running.get(place)
            if entry is not None and not entry.generation.over:
                self._hits += 1
                return entry
            if computation is not None and not computation.generation.over:
                if computation.who != who:
                    return computation.has_waiters()
                return _Computation(place, _Generation(over=True), who)  # a recursive call: waiting would deadlock
            self._misses += 1
            computation = self._running[place] = _Computation(place, generation, who)
            return computation

    def _store(self, computation: _Computation, result: object) -> None:
        if computation.generation.over:
            return
        entry = _Entry.of(computation.generation, result)
        with self._lock:
            if entry is not None and not computation.generation.over:
                self._entries[computation.place] = entry

    def _finish(self, computation: _Computation) -> None:
        with self._lock:
            if self._running.get(computation.place) is computation:
                del self._running[computation.place]
        computation.done.set_result(None)

    def invalidate(self, group: Hashable) -> None:
        """Drop the answers of a group, and those being computed for it, in constant time."""
        with self._lock:
            generation = self._generations.pop(group, None) if self._ttl else None
            if generation is not None:
                generation.over = True

    def clear(self) -> None:
        with self._lock:
            self._restart(self._ttl)

    def set_ttl(self, ttl: float) -> None:
        """Set the TTL in seconds; 0 turns the cache off. Clears all answers if it changes."""
        seconds = _ttl(ttl)
        with self._lock:
            if seconds != self._ttl:
                self._restart(seconds)

    def statistics(self) -> dict[str, float]:
        with self._lock:
            self._entries.expire()
            requests = self._hits + self._misses
            return {
                "hits": self._hits,
                "misses": self._misses,
                "hit_ratio": self._hits / requests if requests else 0.0,
                "size": sum(not entry.generation.over for entry in self._entries.values()),
                "max_size": self._size,
                "ttl": self._ttl,
            }


@dataclass(slots=True, weakref_slot=True, eq=False)
class _Generation:
    """Shared by the entries and computations of a group until it is invalidated. The cache refers to it weakly, so that
    groups that are no longer used cost nothing."""

    over: bool = False


@dataclass(slots=True, eq=False)
class _Computation:
    """A running computation, which other threads may wait for."""

    place: Hashable
    generation: _Generation
    who: object
    ours: bool = True
    done: Future[None] = field(default_factory=Future)

    def has_waiters(self) -> _Computation:
        return _Computation(self.place, self.generation, self.who, False, self.done)


class _Entry(NamedTuple):
    generation: _Generation
    kept: Any
    pickled: bool

    @classmethod
    def of(cls, generation: _Generation, result: object) -> _Entry | None:
        """Store a copy of the result; None if it cannot be copied. Pickle copies ten times as fast as deepcopy."""
        for pickled, copied in ((True, pickle.dumps), (False, copy.deepcopy)):
            try:
                return cls(generation, copied(result), pickled)
            except Exception:  # an object may raise anything; then it is not cached
                continue
        return None

    def value(self) -> Any:
        return pickle.loads(self.kept) if self.pickled else copy.deepcopy(self.kept)


def _ttl(value: object) -> float:
    return checks.number("ttl", value, low=0)


def cacheable(
    ttl: float = 60.0, *, size: int = 1000
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Cache the results of a function, for `ttl` seconds and at most `size` of them.

        @cacheable(ttl=60)
        def expensive(agent_id, query): ...

    Works for functions, methods and coroutine functions. The function's QueryCache is its attribute `cache`. A call
    with an argument that has no key, or a result that cannot be copied, is computed each time.
    """
    _ttl(ttl)
    checks.whole("size", size, low=1)

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        if not callable(function):
            raise checks.refuse("function", "a function (put @cacheable below @classmethod)", function)
        cache = QueryCache(ttl, size)
        try:
            signature: inspect.Signature | None = inspect.signature(function)
        except ValueError:  # some built-in functions have no signature
            signature = None
        has_self = signature is not None and next(iter(signature.parameters), None) == "self"

        def key(args: tuple[Any, ...], options: dict[str, Any]) -> Hashable | None:
            if signature is None:
                return key_of(function, args, options)
            try:
                bound = signature.bind(*args, **options)
            except TypeError:
                return None  # the call itself raises the best error about its arguments
            bound.apply_defaults()  # equivalent calls have one key
            if has_self:
                bound.arguments["self"] = _Identity(bound.arguments["self"])
            return key_of(function, bound.arguments)

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def cached(*args: Arguments.args, **options: Arguments.kwargs) -> Any:
                return await cache.fetch_async(key(args, options), lambda: function(*args, **options))
        else:

            @wraps(function)
            def cached(*args: Arguments.args, **options: Arguments.kwargs) -> Any:
                return cache.fetch(key(args, options), lambda: function(*args, **options))

        cached.cache = cache  # type: ignore[attr-defined]
        return cast(Callable[Arguments, Result], cached)

    return decorate


def key_of(*parts: object) -> Hashable | None:
    """Return a key that is equal for equal parts of equal types (1, 1.0 and True differ); None if there is none.

    Objects that do not define equality are compared by identity, and are not kept alive.
    """
    try:
        return tuple(map(_hashable, parts))
    except Exception:  # an object may raise anything; then there is no key
        return None


def _hashable(value: object) -> Hashable:
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if isinstance(value, float):
        return kind, value.hex()  # NaN equals itself, and -0.0 differs from 0.0
    if isinstance(value, complex | Decimal | datetime):
        return kind, repr(value)  # equal values may still differ in digits or time zone
    if isinstance(value, Mapping):
        return kind, frozenset((_hashable(key), _hashable(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return kind, tuple(map(_hashable, value))
    if isinstance(value, set | frozenset):
        return kind, frozenset(map(_hashable, value))
    if isinstance(value, np.ma.MaskedArray):
        return kind, _hashable(value.data), _hashable(np.ma.getmaskarray(value))
    if isinstance(value, np.ndarray | np.generic):
        body = _hashable(value.tolist()) if value.dtype.hasobject else hashlib.blake2b(value.tobytes()).digest()
        return kind, str(value.dtype), value.shape, body
    if isinstance(value, MethodType):
        return kind, _hashable(value.__func__), _Identity(value.__self__)
    if isinstance(value, _Identity):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return kind, tuple(_hashable(getattr(value, f.name)) for f in fields(value))
    if kind.__hash__ is object.__hash__:
        return _Identity(value)
    hash(value)
    return kind, value


class _Identity:
    """An object as a key: equal only to itself, whatever its `__eq__` says, and referenced weakly if possible."""

    __slots__ = ("_hash", "_refer")

    def __init__(self, value: object) -> None:
        self._hash = hash((type(value), id(value)))
        try:
            self._refer: Callable[[], object] = weakref.ref(value)
        except TypeError:
            self._refer = lambda: value

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, _Identity):
            return NotImplemented
        mine = self._refer()
        return mine is not None and mine is other._refer()
