"""Arrays of numbers for PostgreSQL, from numpy: psycopg would convert their elements one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.postgres import types


class Bigints:
    """A value of the type bigint[]."""

    type = types["int8"]

    def __init__(self, values: npt.NDArray[np.int64]) -> None:
        self.values = values


class Integers:
    """A value of the type integer[]."""

    type = types["int4"]

    def __init__(self, values: npt.NDArray[np.int32]) -> None:
        self.values = values


class _ArrayDumper(Dumper):
    format = psycopg.pq.Format.BINARY

    def __init__(self, cls: type[Bigints | Integers], context: AdaptContext | None = None) -> None:
        super().__init__(cls, context)
        self.oid = cls.type.array_oid  # not that of the class, or lists of numbers would come here too

    def dump(self, obj: Bigints | Integers) -> bytes:
        """One dimension, no NULL, the type, the length and the lower bound; then each element after its size."""
        values = obj.values
        elements = np.empty(len(values), [("size", ">i4"), ("value", values.dtype.newbyteorder(">"))])
        elements["size"], elements["value"] = values.itemsize, values
        return np.array([1, 0, obj.type.oid, len(values), 1], ">i4").tobytes() + elements.tobytes()


def register(raw: psycopg.Connection[Any]) -> None:
    """Let a connection take both as parameters."""
    raw.adapters.register_dumper(Bigints, _ArrayDumper)
    raw.adapters.register_dumper(Integers, _ArrayDumper)
