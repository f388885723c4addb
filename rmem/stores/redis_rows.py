"""Convert between a memory and its value in Redis: a head that the server writes, `original_seq step\\n`, and a body
that the client packs (counts, the fields as compressed JSON, what the index derives from them, and the vector). The id
is the field of the hash and the agent is part of the key, so neither is in the value."""

from __future__ import annotations

import json
import struct
from threading import local
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import StoreCorruptError
from ..fields import Field, compile_function
from ..index.analyser import PACKED_SIZE, Terms
from ..index.analyser import VERSION as ANALYSER
from ..index.numbers import Numbers
from ..index.text_features import TextFeatures
from ..models import BOOKKEEPING, FIELDS, TIERS, Memory, memory_maker
from .indexed import Derived, derive
from .packing import dequantize_vector, embeddings_at, from_stored_contents, tier_vector, to_stored_contents
from .redis_ids import encode

_FORMAT = 1
# format, analyser, level, text features (flags, specific); sizes of terms, attribute hashes, numbers and of the JSON
_COUNTS = struct.Struct("<BBBBBIIII")
_ZSTD_LEVEL = 3
# What small frames refer to instead of repeating it. Part of the format: changing it needs a new _FORMAT.
_COMMON = (
    b'"importance":0.,"reward":,"energy":,"status":"","result":{"success":true},"changes":{},"target":"",'
    b'"action":"move","direction":"north","observation":"","goal":"","name":"","type":"","value":,"score":,'
    b'null,null,[0.0,0.0],"november 2026","health":0.,"inventory":{"wood":5,"stone":2}},"position health inventory",'
    b'1700000000.0,0.5,"interaction","action","state",null,null,null,null,{},"","text":null,"position":[10,20],"'
)
_TYPES = tuple(np.dtype(kind) for kind in ("<f4", "i1", "u1"))  # of the numbers of a vector, by its level
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode


class RowHead(NamedTuple):
    """The head of a value, which the server wrote, and its body."""

    original_seq: int
    step: int
    body: bytes


class RedisRow(NamedTuple):
    """One memory as stored, without its access counts."""

    memory: Memory
    derived: Derived
    original_seq: int


class StoredRow(NamedTuple):
    """A row in Redis: its value, `count last` of its accesses, and the clock of its last change, if requested."""

    agent: str
    value: bytes
    access: bytes | None
    clock: float | None


class _Zstd(local):
    """The compressor of one thread, and the dictionary of all frames."""

    def __init__(self) -> None:
        from .zstd import ZstdCompressor, ZstdDict

        self.common = ZstdDict(_COMMON, is_raw=True)
        self.compressor = ZstdCompressor(level=_ZSTD_LEVEL, zstd_dict=self.common)


_cached: list[_Zstd] = []


def _zstd() -> _Zstd:
    if not _cached:
        _cached.append(_Zstd())
    return _cached[0]


_WORDS = 12  # the slot of the words of the terms
_slots = {field.stored.slot: field for field in (*FIELDS, *BOOKKEEPING) if field.stored.slot is not None}
_CELLS = [f"c{slot}" for slot in range(len(_slots) + 1)]
_TEXT, _CONTENTS, _CREATED = (
    next(slot for slot, field in _slots.items() if field.path == path)
    for path in ("text", "contents", "bookkeeping.creation_time")
)
_DEFAULTS = [_slots[slot].initial() if slot in _slots else "" for slot in range(len(_CELLS))]
_BESIDE = {
    "memory_id": "memory_id",
    "agent_id": "agent",
    "step_number": "step",
    "bookkeeping.compression_level": "level",
    "embeddings": "embeddings",
}


def _written(slot: int) -> str:
    """Return the expression that gives the value in a slot, of the memory `m`."""
    if slot == _WORDS:
        return "words"
    path = _slots[slot].path
    return {"tier": "TIERS.index(m.tier)", "contents": "to_stored_contents(m.text, m.contents)"}.get(path, f"m.{path}")


def _read(field: Field, cell: str) -> str:
    """Return the expression that gives a field from the value in its slot."""
    if field.path == "contents":
        return f"from_stored_contents(c{_TEXT}, {cell})"
    if field.kind == "tuple[float, ...]":
        return f"None if {cell} is None else tuple({cell})"
    return f"TIERS[{cell}]" if field.path == "tier" else cell


_values = compile_function(
    ["m", "words"],
    f"[{', '.join(map(_written, range(len(_CELLS))))}]",
    TIERS=TIERS,
    to_stored_contents=to_stored_contents,
)
_memory_from = memory_maker(
    [*_CELLS, *_BESIDE.values()],
    {field.path: _read(field, f"c{slot}") for slot, field in _slots.items()}
    | _BESIDE
    | {"bookkeeping.last_access_time": f"c{_CREATED}", "bookkeeping.retrieval_count": "0"},
    TIERS=TIERS,
    from_stored_contents=from_stored_contents,
)


def pack(memory: Memory, derived: Derived) -> bytes:
    """Return the body of a memory's value."""
    from .zstd import compress

    fields = _encode(_values(memory, "\n".join(derived.terms.words)))
    frame = compress(_zstd().compressor, fields.encode())
    terms, attribute_hashes, numbers, manner = derived.terms, derived.attribute_hashes, derived.numbers, derived.manner
    vector = tier_vector(memory)
    return b"".join(
        (
            _COUNTS.pack(
                _FORMAT,
                ANALYSER,
                memory.bookkeeping.compression_level,
                manner.flags,
                manner.specific,
                terms.size,
                len(attribute_hashes) // 8,
                numbers.size,
                len(frame),
            ),
            frame,
            terms.packed,
            attribute_hashes,
            numbers.packed,
            b""
            if vector is None
            else vector.astype(_TYPES[memory.bookkeeping.compression_level], copy=False).tobytes(),
        )
    )


def arguments(memory: Memory, derived: Derived, clock: float | None) -> tuple[Any, ...]:
    """Return the arguments of the script PUT for one memory; `clock` is the one that it must still have, if any."""
    kept = memory.bookkeeping
    accessed = kept.retrieval_count > 0 or kept.last_access_time > kept.creation_time
    return (
        encode(memory.memory_id),
        "" if memory.step_number < 0 else memory.step_number,
        int(memory.timestamp),
        "" if clock is None else clock,
        f"{kept.retrieval_count} {kept.last_access_time!r}" if accessed else "",
        pack(memory, derived),
    )


def split(value: bytes) -> RowHead:
    """Return the head that the server wrote, and the body."""
    head, _, body = value.partition(b"\n")
    original_seq, _, step = head.partition(b" ")
    try:
        return RowHead(int(original_seq), int(step), body)
    except ValueError as error:
        raise StoreCorruptError(
            "a value in Redis is not a memory; is its namespace used by another program?"
        ) from error


def unpack(agent: str, memory_id: str, value: bytes) -> RedisRow:
    """Return a memory with its derived data; derived again if the analyser has changed since."""
    head = split(value)
    fields, counts = _fields(memory_id, head.body)
    memory = _memory(agent, memory_id, head, fields, counts)
    return RedisRow(memory, _derived(head.body, counts, fields[_WORDS]) or derive(memory), head.original_seq)


def memory_of(agent: str, memory_id: str, value: bytes) -> Memory:
    """Return the memory without derived data, which is faster."""
    head = split(value)
    return _memory(agent, memory_id, head, *_fields(memory_id, head.body))


def to_memory(memory_id: str, held: StoredRow) -> Memory:
    return with_access(memory_of(held.agent, memory_id, held.value), held)


def with_access(memory: Memory, held: StoredRow) -> Memory:
    if held.access is not None:
        count, _, last = held.access.partition(b" ")
        memory.bookkeeping.retrieval_count = int(count)
        memory.bookkeeping.last_access_time = max(memory.bookkeeping.last_access_time, float(last))
    return memory


def text_of(memory_id: str, value: bytes) -> str:
    fields, _ = _fields(memory_id, split(value).body)
    return str(fields[_TEXT])


def vector_of(memory_id: str, value: bytes, dimension: int) -> npt.NDArray[np.float32] | None:
    """Return a memory's vector in the full space, read without its fields."""
    body = split(value).body
    counts = _counts(memory_id, body)
    vector = _vector(body, counts)
    return None if vector is None else dequantize_vector(vector, counts.level, dimension)


class _Counts(NamedTuple):
    analyser: int
    level: int
    manner: TextFeatures
    terms: int
    attribute_hashes: int
    numbers: int
    derived: int  # where the derived parts begin
    vector: int  # where the vector begins


def _counts(memory_id: str, body: bytes) -> _Counts:
    if len(body) < _COUNTS.size or body[0] != _FORMAT:
        raise StoreCorruptError(f"the row of {memory_id!r} in Redis is damaged or of a newer version of Remanence")
    _, analyser, level, flags, specific, terms, attribute_hashes, numbers, length = _COUNTS.unpack_from(body)
    derived = _COUNTS.size + length
    vector = derived + PACKED_SIZE * terms + 8 * attribute_hashes + 16 * numbers
    if len(body) < vector or level >= len(_TYPES) or (not level and (len(body) - vector) % 4):
        raise StoreCorruptError(f"the row of {memory_id!r} in Redis is damaged: {len(body)} bytes of {vector} or more")
    return _Counts(analyser, level, TextFeatures(flags, specific), terms, attribute_hashes, numbers, derived, vector)


def _fields(memory_id: str, body: bytes) -> tuple[list[Any], _Counts]:
    from .zstd import ZstdError, decompress

    counts = _counts(memory_id, body)
    try:
        return _decode(decompress(body[_COUNTS.size : counts.derived], _zstd().common).decode())[0], counts
    except (ZstdError, ValueError) as error:
        raise StoreCorruptError(f"the row of {memory_id!r} in Redis cannot be read: {error}") from error


def _memory(agent: str, memory_id: str, head: RowHead, fields: list[Any], counts: _Counts) -> Memory:
    if len(fields) != len(_CELLS):  # written by a version with fewer fields, or with more
        fields = [*fields, *_DEFAULTS[len(fields) :]][: len(_CELLS)]
    return _memory_from(
        *fields, memory_id, agent, head.step, counts.level, embeddings_at(counts.level, _vector(head.body, counts))
    )


def _vector(body: bytes, counts: _Counts) -> npt.NDArray[Any] | None:
    return np.frombuffer(body, _TYPES[counts.level], offset=counts.vector) if len(body) > counts.vector else None


def _derived(body: bytes, counts: _Counts, words: str) -> Derived | None:
    if counts.analyser != ANALYSER:
        return None
    attribute_hashes = counts.derived + PACKED_SIZE * counts.terms
    numbers = attribute_hashes + 8 * counts.attribute_hashes
    return Derived(
        terms=Terms(body[counts.derived : attribute_hashes], tuple(words.split("\n")) if words else ()),
        attribute_hashes=body[attribute_hashes:numbers],
        numbers=Numbers(body[numbers : numbers + 16 * counts.numbers]),
        manner=counts.manner,
    )
