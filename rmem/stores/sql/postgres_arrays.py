"""Arrays of numbers for PostgreSQL, from numpy: psycopg would convert their elements one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import pq
from psycopg.abc import Buffer, DumperKey
from psycopg.adapt import Dumper, PyFormat


class Array:
    """A value of the type integer[], bigint[], float4[] or float8[], by the type of its numbers."""

    __slots__ = ("array",)

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array


class _ArrayDumper(Dumper):
    format = pq.Format.BINARY

    def get_key(self, obj: Array, format: PyFormat) -> DumperKey:
        return (self.cls, obj.array.dtype.type)

    def upgrade(self, obj: Array, format: PyFormat) -> _ArrayDumper:
        return _DUMPERS[obj.array.dtype.type](self.cls)

    def dump(self, obj: Array) -> Buffer:
        array, kind = obj.array, _ELEMENTS[obj.array.dtype.type]
        if not array.size:
            return np.array([0, 0, kind.oid], dtype=">i4").tobytes()
        head = [array.ndim, 0, kind.oid, *(number for length in array.shape for number in (length, 1))]
        cells = np.empty(array.size, dtype=[("length", ">i4"), ("value", array.dtype.newbyteorder(">"))])
        cells["length"] = array.itemsize
        cells["value"] = array.ravel()
        return np.array(head, dtype=">i4").tobytes() + cells.tobytes()


_ELEMENTS = {
    np.int32: psycopg.adapters.types["int4"],
    np.int64: psycopg.adapters.types["int8"],
    np.float32: psycopg.adapters.types["float4"],
    np.float64: psycopg.adapters.types["float8"],
}
_DUMPERS: dict[Any, type[_ArrayDumper]] = {
    element: type(f"_{kind.name}Dumper", (_ArrayDumper,), {"oid": kind.array_oid})
    for element, kind in _ELEMENTS.items()
}


VectorDumper = _DUMPERS[np.float32]
"""For COPY, which chooses by the type of the column."""


def register(raw: psycopg.Connection[Any]) -> None:
    """Let a connection take arrays as parameters."""
    raw.adapters.register_dumper(Array, _ArrayDumper)
