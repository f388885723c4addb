"""Columns from an Arrow stream that somebody sent. What could be made larger than it arrived is refused: compressed
batches, and types whose values are written once and meant many times."""

from __future__ import annotations

import struct
from typing import Any

from ..errors import InputError
from ..tables.streams import pyarrow


def columns_of(body: bytes) -> dict[str, list[Any]]:
    """The columns of an Arrow IPC stream as Python values."""
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
        return {name: table.column(name).to_pylist() for name in names}
    except InputError:
        raise
    except (pa.ArrowException, ValueError, TypeError, OSError, OverflowError, struct.error) as error:
        raise InputError(f"the body must be an Arrow stream: {error}", field="body") from None


def _plain(pa: Any, name: str, type: Any) -> None:
    kinds = pa.types
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
    """Where a field of a flatbuffer table lies; None where it is not set."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    place = 4 + 2 * number
    if vtable < 0 or place >= struct.unpack_from("<H", data, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", data, vtable + place)[0]
    return table + offset if offset else None
