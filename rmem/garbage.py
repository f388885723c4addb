"""How often Python searches for garbage: by default after every 700 objects, also where all of them stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from .forks import new_lock

_RARELY = 100_000  # objects
_lock = new_lock()
_callers = 0
_usual = gc.get_threshold()


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Search for garbage after 100,000 new objects, in all threads, until the last caller is done."""
    global _callers, _usual
    with _lock:
        if not _callers:
            _usual = gc.get_threshold()
            if 0 < _usual[0] < _RARELY:  # 0: the program collects none
                gc.set_threshold(_RARELY, *_usual[1:])
        _callers += 1
    try:
        yield
    finally:
        with _lock:
            _callers -= 1
            if not _callers:
                gc.set_threshold(*_usual)
