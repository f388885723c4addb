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
    whose group is invalidated while it is computed is returned but not kept. Exceptions are never kept.
    """

    def __init__(self, ttl: float = 60.0, size: int = 1000, *, timer: Callable[[], float] = time.monotonic) -> None:
        self._size = checks.whole("size", size, low=1)
        self._timer = timer
        self._lock = new_lock()
        self._lives: weakref.WeakValueDictionary[Hashable, _Life] = weakref.WeakValueDictionary()
        self._flights: dict[Hashable, _Flight] = {}
        self._hits = self._misses = 0
        self._restart(_ttl(ttl))

    def _restart(self, ttl: float) -> None:
        self._ttl = ttl
        self._entries: TTLCache[Hashable, _Entry] = TTLCache(self._size, ttl, timer=self._timer)
        for life in self._lives.values():
            life.over = True
        self._lives.clear()

    @property
    def ttl(self) -> float:
        return self._ttl

    def fetch(self, key: Hashable | None, compute: Callable[[], Result], *, group: Hashable = None) -> Result:
        """The kept answer, or a computed one. The key None is one that could not be made: nothing is kept."""
        while True:
            found = self._look(key, group, threading.get_ident())
            if isinstance(found, _Entry):
                try:
                    return cast(Result, found.value())
                except Exception:  # some objects can be pickled but not unpickled; then it is computed
                    key = None
                    continue
            if not found.ours:
                found.landed.result()
                continue
            try:
                result = compute()
                self._keep(found, result)
                return result
            finally:
                self._land(found)

    async def fetch_async(
        self, key: Hashable | None, compute: Callable[[], Awaitable[Result]], *, group: Hashable = None
    ) -> Result:
        """`fetch` for a coroutine function; those who wait do not block their loop."""
        while True:
            found = self._look(key, group, asyncio.current_task())
            if isinstance(found, _Entry):
                try:
                    return cast(Result, found.value())
                except Exception:  # some objects can be pickled but not unpickled; then it is computed
                    key = None
                    continue
            if not found.ours:
                # Whoever computes may be in another loop; and one who gives up waiting must not end the wait of all.
                await asyncio.shield(asyncio.wrap_future(found.landed))
                continue
            try:
                result = await compute()
                self._keep(found, result)
                return result
            finally:
                self._land(found)

    def _look(self, key: Hashable | None, group: Hashable, who: object) -> _Entry | _Flight:
        """The entry if there is one, else a flight: ours to fly, or another's to wait for."""
        place = (group, key)
        with self._lock:
            if key is None or not self._ttl:
                self._misses += 1
                return _Flight(place, _Life(over=True), who)
            life = self._lives.get(group)
            if life is None:
                life = self._lives[group] = _Life()
            entry = self._entries.get(place)
            flight = self._flights.get(place)
            if entry is not None and not entry.life.over:
                self._hits += 1
                return entry
            if flight is not None and not flight.life.over:
                if flight.who != who:
                    return flight.waited_for()
                return _Flight(place, _Life(over=True), who)  # it calls itself: waiting would never end
            self._misses += 1
            flight = self._flights[place] = _Flight(place, life, who)
            return flight

    def _keep(self, flight: _Flight, result: object) -> None:
        if flight.life.over:
            return
        entry = _Entry.of(flight.life, result)
        with self._lock:
            if entry is not None and not flight.life.over:
                self._entries[flight.place] = entry

    def _land(self, flight: _Flight) -> None:
        with self._lock:
            if self._flights.get(flight.place) is flight:
                del self._flights[flight.place]
        flight.landed.set_result(None)

    def invalidate(self, group: Hashable) -> None:
        """Forget the answers of a group, and those being computed for it. Costs the same however many there are."""
        with self._lock:
            life = self._lives.pop(group, None) if self._ttl else None
            if life is not None:
                life.over = True

    def clear(self) -> None:
        with self._lock:
            self._restart(self._ttl)

    def set_ttl(self, ttl: float) -> None:
        """A new time to live, in seconds; 0 turns the cache off. Answers kept under another one are forgotten."""
        seconds = _ttl(ttl)
        with self._lock:
            if seconds != self._ttl:
                self._restart(seconds)

    def statistics(self) -> dict[str, float]:
        with self._lock:
            self._entries.expire()
            asked = self._hits + self._misses
            return {
                "hits": self._hits,
                "misses": self._misses,
                "hit_ratio": self._hits / asked if asked else 0.0,
                "size": sum(not entry.life.over for entry in self._entries.values()),
                "max_size": self._size,
                "ttl": self._ttl,
            }


@dataclass(slots=True, weakref_slot=True, eq=False)
class _Life:
    """What a group's entries and computations have in common until the group is invalidated. The cache refers to it
    weakly, so groups that are no longer asked about cost nothing."""

    over: bool = False


@dataclass(slots=True, eq=False)
class _Flight:
    """A computation under way, which others may wait for."""

    place: Hashable
    life: _Life
    who: object
    ours: bool = True
    landed: Future[None] = field(default_factory=Future)

    def waited_for(self) -> _Flight:
        return _Flight(self.place, self.life, self.who, False, self.landed)


class _Entry(NamedTuple):
    life: _Life
    kept: Any
    pickled: bool

    @classmethod
    def of(cls, life: _Life, result: object) -> _Entry | None:
        """A copy of the result, or None when it cannot be copied. Unpickling copies ten times as fast as deepcopy."""
        for pickled, copied in ((True, pickle.dumps), (False, copy.deepcopy)):
            try:
                return cls(life, copied(result), pickled)
            except Exception:  # an object may refuse with any error at all; then it is not kept
                continue
        return None

    def value(self) -> Any:
        return pickle.loads(self.kept) if self.pickled else copy.deepcopy(self.kept)


def _ttl(value: object) -> float:
    return checks.number("ttl", value, low=0)


def cacheable(
    ttl: float = 60.0, *, size: int = 1000
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Keep what a function returns, for `ttl` seconds and at most `size` results.

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
        except ValueError:  # some built-in functions have none
            signature = None
        has_self = signature is not None and next(iter(signature.parameters), None) == "self"

        def key(args: tuple[Any, ...], options: dict[str, Any]) -> Hashable | None:
            if signature is None:
                return key_of(function, args, options)
            try:
                bound = signature.bind(*args, **options)
            except TypeError:
                return None  # the function itself says best what is wrong with its arguments
            bound.apply_defaults()  # one call written in two ways has one key
            if has_self:
                bound.arguments["self"] = _Identity(bound.arguments["self"])
            return key_of(function, bound.arguments)

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def kept(*args: Arguments.args, **options: Arguments.kwargs) -> Any:
                return await cache.fetch_async(key(args, options), lambda: function(*args, **options))
        else:

            @wraps(function)
            def kept(*args: Arguments.args, **options: Arguments.kwargs) -> Any:
                return cache.fetch(key(args, options), lambda: function(*args, **options))

        kept.cache = cache  # type: ignore[attr-defined]
        return cast(Callable[Arguments, Result], kept)

    return decorate


def key_of(*parts: object) -> Hashable | None:
    """Something that is equal for equal parts, of equal types: 1, 1.0 and True differ. None if there is no such thing.

    Objects without an equality of their own are told apart by identity, and are not kept alive.
    """
    try:
        return tuple(map(_frozen, parts))
    except Exception:  # an object may refuse with any error at all; then there is no key
        return None


def _frozen(value: object) -> Hashable:
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if isinstance(value, float):
        return kind, value.hex()  # NaN is itself, and -0.0 is not 0.0
    if isinstance(value, complex | Decimal | datetime):
        return kind, repr(value)  # equal ones may still differ: in digits, in the zone
    if isinstance(value, Mapping):
        return kind, frozenset((_frozen(key), _frozen(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return kind, tuple(map(_frozen, value))
    if isinstance(value, set | frozenset):
        return kind, frozenset(map(_frozen, value))
    if isinstance(value, np.ma.MaskedArray):
        return kind, _frozen(value.data), _frozen(np.ma.getmaskarray(value))
    if isinstance(value, np.ndarray | np.generic):
        body = _frozen(value.tolist()) if value.dtype.hasobject else hashlib.blake2b(value.tobytes()).digest()
        return kind, str(value.dtype), value.shape, body
    if isinstance(value, MethodType):
        return kind, _frozen(value.__func__), _Identity(value.__self__)
    if isinstance(value, _Identity):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return kind, tuple(_frozen(getattr(value, f.name)) for f in fields(value))
    if kind.__hash__ is object.__hash__:
        return _Identity(value)
    hash(value)
    return kind, value


class _Identity:
    """An object as a key: equal to itself only, whatever its `__eq__` says, and held weakly where that is possible."""

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
