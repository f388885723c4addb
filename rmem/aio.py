"""Async versions of synchronous classes: the methods run in threads and are awaited.

`AsyncFace` wraps any object. `AsyncBrain` names each method of Brain once, so that type checkers see the same
arguments; a test compares the two."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from .annotations import MemoryOrId, Where
from .brain import Brain
from .recall.settings import RecallSettings
from .stores.base import Progress, RecordStore

if TYPE_CHECKING:
    from .graph.aio import AsyncGraph

Wrapped = TypeVar("Wrapped")
Params = ParamSpec("Params")
Result = TypeVar("Result")


class _Awaited(Generic[Params, Result]):
    """Descriptor for an awaitable method: `recall = _Awaited(Brain.recall)` has the arguments of Brain.recall."""

    def __init__(self, method: Callable[Concatenate[Any, Params], Result]) -> None:
        self.__doc__ = method.__doc__
        self.__wrapped__ = method

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, face: None, owner: type) -> Self: ...

    @overload
    def __get__(self, face: _AsyncWrapper[Any], owner: type) -> Callable[Params, Coroutine[Any, Any, Result]]: ...

    def __get__(self, face: _AsyncWrapper[Any] | None, owner: type) -> Any:
        return self if face is None else _in_thread(getattr(face.sync, self._name))


def _in_thread(method: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    @wraps(method)
    async def call(*args: Any, **options: Any) -> Any:
        return await asyncio.to_thread(method, *args, **options)

    return call


class _AsyncWrapper(Generic[Wrapped]):
    """Base of the async wrappers: holds the wrapped object, closes it, and pickles with it."""

    def __init__(self, sync: Wrapped) -> None:
        self.sync = sync

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.sync)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.sync.close)  # type: ignore[attr-defined]


def _rebuild(kind: type[_AsyncWrapper[Any]], sync: object) -> _AsyncWrapper[Any]:
    face = kind.__new__(kind)
    _AsyncWrapper.__init__(face, sync)
    return face


def _with_arguments_of(
    other: Callable[Concatenate[Any, Params], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, Params], None]]:
    """Decorator for an `__init__` that takes the arguments of another."""
    return wraps(other)


class AsyncFace(_AsyncWrapper[Wrapped]):
    """Wraps any object: `await wrapper.recall("…")` runs `sync.recall("…")` in a thread."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.sync, name)
        return _in_thread(found) if callable(found) else found

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.sync)})


class AsyncBrain(_AsyncWrapper[Brain]):
    """`async with AsyncBrain() as brain: hits = await brain.recall("…")`; the arguments are Brain's."""

    @_with_arguments_of(Brain.__init__)
    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(Brain(*given, **options))

    @property
    def address(self) -> str:
        return self.sync.address

    @property
    def settings(self) -> RecallSettings:
        return self.sync.settings

    @property
    def store(self) -> RecordStore:
        return self.sync.store

    @property
    def embedder(self) -> str:
        return self.sync.embedder

    @property
    def graph(self) -> AsyncGraph:
        """The facts in memories, as a graph."""
        from .graph.aio import AsyncGraph

        return AsyncGraph(self.sync.graph)

    remember = _Awaited(Brain.remember)
    remember_many = _Awaited(Brain.remember_many)
    recall = _Awaited(Brain.recall)
    get = _Awaited(Brain.get)
    get_many = _Awaited(Brain.get_many)
    memories = _Awaited(Brain.memories)
    count = _Awaited(Brain.count)
    update = _Awaited(Brain.update)
    edit = _Awaited(Brain.edit)
    prune = _Awaited(Brain.prune)
    restore = _Awaited(Brain.restore)
    pin = _Awaited(Brain.pin)
    decay_importance = _Awaited(Brain.decay_importance)
    feedback = _Awaited(Brain.feedback)
    stats = _Awaited(Brain.stats)
    vector_of = _Awaited(Brain.vector_of)
    put = _Awaited(Brain.put)
    keep = _Awaited(Brain.keep)
    cleaned = _Awaited(Brain.cleaned)
    close = _Awaited(Brain.close)

    @overload
    async def forget(self, memory_id: MemoryOrId) -> bool: ...

    @overload
    async def forget(self, *, where: Where, dry_run: bool = False) -> list[str]: ...

    @overload
    async def forget(
        self, *, subject: str, dry_run: bool = False, on_progress: Progress | None = None
    ) -> list[str]: ...

    async def forget(self, *args: Any, **options: Any) -> bool | list[str]:
        """Remove memories permanently; see Brain.forget."""
        gone: bool | list[str] = await asyncio.to_thread(self.sync.forget, *args, **options)
        return gone
