"""The async face: one generic wrapper that runs a synchronous object's methods in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Generic, Self, TypeVar

from .brain import Brain

Wrapped = TypeVar("Wrapped")


class AsyncFace(Generic[Wrapped]):
    """Every method of the wrapped object, awaited: `await face.recall("…")` is `sync.recall("…")` in a thread."""

    def __init__(self, sync: Wrapped) -> None:
        self.sync = sync

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.sync, name)
        return _awaited(found) if callable(found) else found

    def __reduce__(self) -> tuple[Any, ...]:
        return _faced, (type(self), self.sync)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.sync)})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.sync.close)  # type: ignore[attr-defined]


def _faced(kind: type[AsyncFace[Any]], sync: object) -> AsyncFace[Any]:
    face = kind.__new__(kind)
    AsyncFace.__init__(face, sync)
    return face


def _awaited(method: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    @wraps(method)
    async def call(*args: Any, **options: Any) -> Any:
        return await asyncio.to_thread(method, *args, **options)

    return call


class AsyncBrain(AsyncFace[Brain]):
    """`async with AsyncBrain() as brain: hits = await brain.recall("…")`; the arguments are Brain's."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(Brain(*args, **options))
