"""Read columns from an Arrow stream of a client. Refuse what expands: compressed batches, dictionary and run-end types,
columns that share their bytes, and more values than a body may have."""

from __future__ import annotations

import struct
from typing import Any

from fastapi import HTTPException

from ..errors import InputError
from ..tables.streams import pyarrow

_BYTES_OF_A_VALUE = 4
"""At least, on average: each becomes a Python object, however few bits it was sent in."""


def columns_of(body: bytes, most_bytes: int) -> dict[str, list[Any]]:
    """Return the columns of an Arrow IPC stream as Python values, if they are not more than `most_bytes` can hold."""
    pa = pyarrow()
    try:
        _refuse_compressed(pa, body)
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            names = list(reader.schema.names)
            for field in reader.schema:
                _plain(pa, field.name, field.type)
            if len(set(names)) < len(names):
                raise InputError("the columns of an Arrow stream must have different names", field="body")
            table = reader.read_all()
        table.validate(full=True)  # lengths and offsets are the sender's until they are compared with the data
        _check_size(pa, table, most_bytes)
        return {name: table.column(name).to_pylist() for name in names}
    except InputError:
        raise
    except (pa.ArrowException, ValueError, TypeError, OSError, OverflowError, struct.error) as error:
        raise InputError(f"the body must be an Arrow stream: {error}", field="body") from None


def _check_size(pa: Any, table: Any, most_bytes: int) -> None:
    """Check the size of a table before it is converted to Python values."""
    if table.nbytes > most_bytes:
        raise HTTPException(
            413, f"an Arrow stream may hold at most {most_bytes:,} bytes, this one holds {table.nbytes:,}"
        )
    most = most_bytes // _BYTES_OF_A_VALUE
    count = sum(_count(pa, chunk) for column in table.columns for chunk in column.chunks)
    if count > most:
        message = f"an Arrow stream may hold at most {most:,} values, this one holds {count:,}"
        raise HTTPException(413, f"{message}; send less at once")


def _count(pa: Any, array: Any) -> int:
    """Return how many values an array has, with those inside of lists."""
    kinds, type = pa.types, array.type
    nested = kinds.is_list(type) or kinds.is_large_list(type) or kinds.is_fixed_size_list(type)
    return len(array) + (_count(pa, array.flatten()) if nested else 0)


def _plain(pa: Any, name: str, type: Any) -> None:
    kinds = pa.types
    if kinds.is_fixed_size_list(type) and not type.list_size:
        raise InputError(f"column {name!r} of an Arrow stream must not hold lists of the fixed size 0", field=name)
    if kinds.is_list(type) or kinds.is_large_list(type) or kinds.is_fixed_size_list(type):
        _plain(pa, name, type.value_type)
        return
    fine = (
        kinds.is_boolean, kinds.is_integer, kinds.is_floating, kinds.is_decimal, kinds.is_date, kinds.is_time,
        kinds.is_timestamp, kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary,
    )  # fmt: skip
    if not any(is_one(type) for is_one in fine):
        raise InputError(f"column {name!r} of an Arrow stream must not be of type {type}", field=name)


def _refuse_compressed(pa: Any, body: bytes) -> None:
    """Look at each message before its body is unpacked."""
    with pa.BufferReader(pa.py_buffer(body)) as source:
        while True:
            try:
                message = pa.ipc.read_message(source)
            except EOFError:
                return
            if message.type == "dictionary":
                raise InputError("an Arrow stream must not hold dictionaries", field="body")
            if message.type == "record batch" and _is_compressed(message.metadata.to_pybytes()):
                raise InputError("an Arrow stream must not be compressed", field="body")


def _is_compressed(metadata: bytes) -> bool:
    """Whether the flatbuffer Message holds a RecordBatch with a `compression` (its fourth field)."""
    root = struct.unpack_from("<I", metadata, 0)[0]
    header = _field(metadata, root, 2)
    if header is None:
        return False
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    return _field(metadata, batch, 3) is not None


def _field(data: bytes, table: int, number: int) -> int | None:
    """Return where a field of a flatbuffer table lies; None where it is not set."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    place = 4 + 2 * number
    if vtable < 0 or place >= struct.unpack_from("<H", data, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", data, vtable + place)[0]
    return table + offset if offset else None
