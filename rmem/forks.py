"""Make open stores survive a fork: locks that are free in the child, and hooks around `os.fork`.

A child inherits memory but no threads, so a lock that another thread held stays locked for ever, and a shared
connection breaks for both. Locks made here are free in every child; watched objects are notified."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

_locks: WeakValueDictionary[int, Any] = WeakValueDictionary()
_watched: WeakValueDictionary[int, Forking] = WeakValueDictionary()
_notified: list[Forking] = []  # keeps them alive between the two hooks of a fork


class Forking:
    """Base of objects with fork hooks. `watch(self)` subscribes; the hooks do nothing unless overridden."""

    def before_fork(self) -> None:
        """Called in the forking thread. Must not raise and must not wait for long."""

    def after_fork_in_parent(self) -> None:
        """Called in the forking thread, also when the fork failed."""

    def after_fork_in_child(self) -> None:
        """Called in the only thread of the child, after its locks were freed."""


def watch(what: Forking) -> None:
    """Call the hooks of `what` at every fork as long as it lives."""
    _watched[id(what)] = what


def new_lock() -> threading.Lock:
    """Return a lock that is free in a forked child even if the parent held it."""
    lock = threading.Lock()
    _locks[id(lock)] = lock
    return lock


def new_rlock() -> threading.RLock:
    """Return such a lock that one thread may take twice."""
    lock = threading.RLock()
    _locks[id(lock)] = lock
    return lock


class cached_property(functools.cached_property[T]):
    """The one of functools, whose lock (Python 3.11 has one) is free in a forked child."""

    def __init__(self, func: Callable[[Any], T]) -> None:
        super().__init__(func)
        lock = getattr(self, "lock", None)
        if lock is not None:
            _locks[id(lock)] = lock


def _finish_imports() -> None:
    """Wait for the modules that other threads are importing: a child would wait for their locks for ever."""
    for _ in range(10):  # a module may import others, and an import of this thread never ends here
        started = [name for name, module in list(sys.modules.items()) if _is_importing(module)]
        if not started:
            return
        for name in started:
            importlib.import_module(name)


def _is_importing(module: object) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _alive(watched: WeakValueDictionary[int, Any]) -> list[Any]:
    """Return the live objects of a weak set; other threads may be adding more."""
    return [found for reference in watched.valuerefs() if (found := reference()) is not None]


def _before() -> None:
    _notified[:] = _alive(_watched)
    for listener in _notified:
        listener.before_fork()
    _finish_imports()  # last, because the others take time


def _in_parent() -> None:
    notified = list(_notified)
    _notified.clear()
    for listener in reversed(notified):
        listener.after_fork_in_parent()


def _in_child() -> None:
    notified = list(_notified)
    _notified.clear()
    for lock in _alive(_locks):
        lock._at_fork_reinit()
    for listener in reversed(notified):
        listener.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
