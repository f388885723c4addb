"""Convert any object to plain data that a memory can hold. Used for what agents happen to return, where a refusal would
lose the memory; what callers pass on purpose is checked instead."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, time
from enum import Enum
from typing import Any

import numpy as np

from .. import checks

_MAX_NUMBERS = 4096  # of an array; a larger one, such as an image, is only described
_MAX_DEPTH = 32
_MAX_PARTS = 20_000  # mappings, lists and objects in total: linked objects can be endless


@dataclass(slots=True)
class _Conversion:
    """State of one conversion: how many parts are left, and the objects on the current path."""

    left: int = _MAX_PARTS
    above: set[int] = field(default_factory=set)


def plain(value: object) -> Any:
    """Convert a value to mappings, lists, texts, numbers, booleans and None."""
    return _plain(value, 0, _Conversion())


def _plain(value: object, depth: int, copy: _Conversion) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Enum):
        return _plain(value.value, depth, copy)
    if isinstance(value, int):
        return int(value) if value.bit_length() <= checks.MAX_BITS else f"a whole number of {value.bit_length()} bits"
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, np.generic):
        return _plain(checks.from_numpy(value), depth, copy)
    if depth >= _MAX_DEPTH or copy.left <= 0 or id(value) in copy.above:
        return f"<{type(value).__name__}>"  # not its repr, which may be endless, too
    copy.left -= 1
    copy.above.add(id(value))
    try:
        return _parts(value, depth, copy)
    finally:
        copy.above.discard(id(value))


def _parts(value: object, depth: int, copy: _Conversion) -> Any:
    if isinstance(value, np.ndarray):
        return (
            _plain(checks.from_numpy(value), depth, copy)
            if value.size <= _MAX_NUMBERS
            else f"<array {value.dtype} {value.shape}>"
        )
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(item, depth + 1, copy) for key, item in value.items()}
    if isinstance(value, list | tuple | deque):
        return [_plain(item, depth + 1, copy) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item, depth + 1, copy) for item in value), key=repr)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, type):
        return value.__qualname__
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name), depth + 1, copy) for f in fields(value)}
    for method in ("as_dict", "model_dump"):
        if callable(getattr(value, method, None)):
            return _plain(getattr(value, method)(), depth + 1, copy)
    return _text(checks.shown(value))


def _text(value: str) -> str:
    if value.isascii() and "\x00" not in value:
        return str(value)
    return value.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
