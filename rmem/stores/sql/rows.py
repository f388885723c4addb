"""Convert between a memory and its row in an SQL store, with the statements that read and write rows."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ...crypto.vault import sealed_fields
from ...errors import StoreCorruptError, StoreError
from ...fields import Field, compile_function
from ...index.analyser import PACKED_SIZE, Terms
from ...index.numbers import NO_NUMBERS, Numbers
from ...index.recall_index import IndexRow
from ...index.text_features import TextFeatures
from ...models import BOOKKEEPING, FIELDS, Memory, memory_maker
from ..indexed import Derived
from ..packing import (
    LEVELS,
    Codec,
    decode_json,
    dequantize_vector,
    embeddings_at,
    from_stored_contents,
    quantized_bytes,
    tier_vector,
    to_stored_contents,
)
from . import encrypted_rows
from .connection import Connection
from .encrypted_rows import Seal

log = logging.getLogger(__name__)
_TOGETHER = 500  # rows that one statement reads

_PLAIN = tuple(field for field in (*FIELDS, *BOOKKEEPING) if field.stored.column is not None)
BODY = ("tags", "text", "contents", "vector", "packed", "unpacked", "sealed", "key_version")
MEMORY = (*(str(field.stored.column) for field in _PLAIN), *BODY)
_INDEX = (
    "seq", "born", "agent", "session", "type", "actor", "tier", "step", "time", "importance", "position", "flags",
    "specific", "words", "terms", "marks", "numbers", "vector", "level",
)  # fmt: skip
DERIVED = ("flags", "specific", "words", "terms", "marks", "numbers")
COLUMNS = ("seq", *MEMORY, "born", *DERIVED)
KIND = ("analyser", "dimension", "embedder", "embedder_spec")
"""The metadata keys of the analyser and the embedder of a store."""

INSERT = f"INSERT INTO memories ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
READ = (
    f"SELECT m.seq, {', '.join('m.' + name for name in MEMORY)}, a.last, a.count "
    "FROM memories m LEFT JOIN access a ON a.born = m.born"
)
READ_INDEX = f"SELECT {', '.join(_INDEX)} FROM memories WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"


READ_TEXT = "SELECT seq, id, text, packed, sealed, key_version FROM memories"

# json.dumps would make an encoder for every row; contents were copied when they were checked, so they have no cycles.
_json = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def to_row(
    memory: Memory, derived: Derived, seq: int, original_seq: int, codec: Codec, seal: Seal | None = None
) -> tuple[Any, ...]:
    """Return the values of COLUMNS."""
    return seq, *memory_values(memory, codec, seal), original_seq, *derived_values(derived)


def memory_values(memory: Memory, codec: Codec, seal: Seal | None = None) -> tuple[Any, ...]:
    """Return the values of MEMORY."""
    return *_plain_values(memory), *body_values(memory, codec, seal)


def body_values(memory: Memory, codec: Codec, seal: Seal | None = None) -> tuple[Any, ...]:
    """Return the columns of BODY."""
    contents, level = to_stored_contents(memory.text, memory.contents), memory.bookkeeping.compression_level
    vector = stored_vector(tier_vector(memory), level)
    text, tags, sealed = memory.text, memory.tags, None
    if seal is not None:
        text, contents, tags, hidden = encrypted_rows.split(text, contents, tags, seal, level, codec)
        sealed = codec.vault.seal(memory.memory_id, hidden, seal.version)
    tags_json = _json(tags) if tags else None
    version = None if seal is None else seal.version
    if not level or not (text or contents):
        return tags_json, text, _json(contents) if contents else None, vector, None, None, sealed, version
    packed = codec.pack(text, contents)
    size = len(text.encode()) + len(_json(contents).encode())
    return tags_json, "", None, vector, packed, size, sealed, version


def derived_values(derived: Derived) -> tuple[int, int, str, bytes, bytes, bytes | None]:
    """Return the columns of DERIVED."""
    return (
        derived.manner.flags,
        derived.manner.specific,
        "\n".join(derived.terms.words),
        derived.terms.packed,
        derived.attribute_hashes,
        derived.numbers.packed or None,
    )


def to_memory(row: tuple[Any, ...], codec: Codec) -> Memory:
    """Convert a row of READ to a memory; StoreCorruptError if it is damaged."""
    plain, memory_id = row[1:_END], row[1]
    tags, text, contents, vector, packed, _, sealed, version, accessed, count = row[_END:]
    opened = None
    try:
        if sealed is not None or version is not None:
            if sealed is None:
                raise StoreCorruptError(
                    f"the encrypted fields of memory {memory_id!r} are gone; restore it from a backup"
                )
            opened = codec.vault.open(memory_id, sealed, version)
        text, body = body_of(text, contents, packed, codec, opened)
        level = plain[_LEVEL]
        if plain[_TIER] not in LEVELS or not isinstance(text, str) or level not in (0, 1, 2):
            raise StoreCorruptError(f"memory {memory_id!r} is damaged; restore it from a backup")
        short = None if vector is None or len(vector) % _TYPES[level].itemsize else np.frombuffer(vector, _TYPES[level])
        return _memory_from(
            *plain,
            plain[_CREATED] if accessed is None else accessed,
            count or 0,
            body,
            text,
            encrypted_rows.tags_of(opened) if opened and "tags" in opened else decode_json(tags) if tags else {},
            embeddings_at(level, short),
        )
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise StoreCorruptError(f"memory {memory_id!r} is damaged ({error}); restore it from a backup") from error


def _position(stored: str) -> tuple[float, ...]:
    return tuple(map(float, stored[1:-1].split(",")))


_END = 1 + len(_PLAIN)
_CELLS = [f"c{at}" for at in range(len(_PLAIN))]
_BESIDE = {
    "bookkeeping.last_access_time": "last",
    "bookkeeping.retrieval_count": "count",
    "contents": "contents",
    "text": "text",
    "tags": "tags",
    "embeddings": "embeddings",
}
_POINT = "tuple[float, ...]"
_SOUND = {"str": "type({0}) is str", "int": "type({0}) is int", "float": "(type({0}) is float or type({0}) is int)"}
_paths = [field.path for field in _PLAIN]
_LEVEL, _TIER = _paths.index("bookkeeping.compression_level"), _paths.index("tier")
_CREATED = _paths.index("bookkeeping.creation_time")


def _written(field: Field) -> str:
    """Return the expression for the cell of a field of the memory `m`."""
    return (
        f"None if m.{field.path} is None else str(list(m.{field.path}))" if field.kind == _POINT else f"m.{field.path}"
    )


def _checked(field: Field, cell: str) -> str:
    """Return the expression that checks the type of a cell, which may be wrong in a damaged file."""
    sound = _SOUND.get(field.kind, _SOUND["str"]).format(cell)
    return f"({cell} is None or {sound})" if field.nullable else sound


def _damaged(memory_id: object) -> NoReturn:
    raise StoreCorruptError(f"memory {memory_id!r} holds damaged cells; restore it from a backup")


_plain_values = compile_function(["m"], f"({', '.join(map(_written, _PLAIN))})")
_memory_from = memory_maker(
    [*_CELLS, *_BESIDE.values()],
    {
        field.path: f"None if not {cell} else _position({cell})" if field.kind == _POINT else cell
        for field, cell in zip(_PLAIN, _CELLS, strict=True)
    }
    | _BESIDE,
    only_if=f"{' and '.join(map(_checked, _PLAIN, _CELLS))} else _damaged(c0)",
    _position=_position,
    _damaged=_damaged,
)


def _check_cells(
    seq: Any,
    agent: Any,
    session: Any,
    kind: Any,
    actor: Any,
    tier: Any,
    step: Any,
    time: Any,
    importance: Any,
) -> None:
    """Refuse a row whose cells have other types than those written, as in a damaged file."""
    if not (
        isinstance(seq, int)
        and isinstance(agent, str)
        and (session is None or isinstance(session, str))
        and isinstance(kind, str)
        and (actor is None or isinstance(actor, str))
        and tier in LEVELS
        and isinstance(step, int)
        and isinstance(time, float | int)
        and isinstance(importance, float | int)
    ):
        raise StoreCorruptError(f"row {seq} holds damaged cells; `rmem doctor` tells which memory it is")


def readable(row: tuple[Any, ...], codec: Codec) -> Memory | None:
    """Convert a row of READ to a memory; None if it is damaged or cannot be decrypted."""
    try:
        return to_memory(row, codec)
    except StoreError as error:
        log.warning("memory %r was passed over: %s", row[1], error)
        return None


def seal_of(row: tuple[Any, ...]) -> Seal | None:
    """Return the seal of a row of READ; None if it is not encrypted."""
    return None if row[_SEALED] is None else Seal(row[_SEALED + 1], sealed_fields(row[_SEALED]))


_SEALED = 1 + MEMORY.index("sealed")


def body_of(
    text: str, contents: str | None, packed: bytes | None, codec: Codec, opened: Mapping[str, bytes] | None = None
) -> tuple[str, dict[str, Any]]:
    """Return text and contents of a memory from its columns and its decrypted values."""
    if packed is not None:
        text, body = codec.unpack(packed)
    else:
        body = decode_json(contents) if contents else {}
    if opened is not None:
        text = encrypted_rows.decode_body(opened["text"], codec)[0] if "text" in opened else text
        body = encrypted_rows.decode_body(opened["contents"], codec)[1] if "contents" in opened else body
    return text, from_stored_contents(text, body)


def text_of(row: tuple[Any, ...], codec: Codec) -> str:
    """Return the text of a row of READ_TEXT; "" if it cannot be decrypted."""
    _, memory_id, text, packed, sealed, version = row
    if sealed is None:
        return text if packed is None else codec.unpack(packed)[0]
    try:
        opened = codec.vault.open(memory_id, sealed, version)
    except StoreError as error:
        log.warning("memory %r was passed over: %s", memory_id, error)
        return ""
    return body_of(text, None, packed, codec, opened)[0]


def to_index_row(row: tuple[Any, ...], dimension: int | None) -> IndexRow:
    """Convert a row of READ_INDEX to a row of the index."""
    (
        seq, original_seq, agent, session, kind, actor, tier, step, time, importance, position, flags,
        specific, words, terms, attribute_hashes, numbers, vector, level,
    ) = row  # fmt: skip
    _check_cells(seq, agent, session, kind, actor, tier, step, time, importance)
    sound = (
        isinstance(original_seq, int)
        and isinstance(flags, int)
        and isinstance(specific, int)
        and isinstance(words, str)
    )
    sound = sound and 0 <= flags <= 255 and 0 <= specific <= 255
    sound = sound and level in (0, 1, 2)
    sound = sound and len(terms) % PACKED_SIZE == len(attribute_hashes) % 8 == len(numbers or b"") % 16 == 0
    if not sound or (words.count("\n") + 1 if words else 0) != len(terms) // PACKED_SIZE:
        raise StoreCorruptError(f"row {seq} holds damaged terms; `rmem doctor --repair` derives them again")
    return IndexRow(
        seq=seq,
        original_seq=original_seq,
        agent=agent,
        session=session,
        kind=kind,
        actor=actor,
        tier=tier,
        time=time,
        step=step,
        importance=importance,
        position=_position(position) if position else None,
        manner=TextFeatures(flags, specific),
        terms=terms_of(terms, words),
        attribute_hashes=attribute_hashes,
        numbers=Numbers(numbers) if numbers else NO_NUMBERS,
        vector=vector_of(vector, level, dimension),
    )


def vector_of(stored: bytes | None, level: int, dimension: int | None) -> npt.NDArray[np.float32] | None:
    """Return the uncompressed vector of a row; None if its dimension is not that of the store."""
    if stored is None or (dimension is not None and len(stored) != quantized_bytes(dimension, level)):
        return None
    short = np.frombuffer(stored, _TYPES[level])
    return dequantize_vector(short, level, dimension if dimension is not None else short.size)


def moved_vectors(
    connection: Connection, moves: Iterable[tuple[int, str]], dimension: int | None
) -> dict[int, npt.NDArray[np.float32] | None]:
    """Return the vectors of moved rows, as compressed in their present tiers, without removed rows."""
    seqs = sorted({seq for seq, _ in moves})
    found: dict[int, npt.NDArray[np.float32] | None] = {}
    for start in range(0, len(seqs), _TOGETHER):
        part = seqs[start : start + _TOGETHER]
        sql = f"SELECT seq, vector, level FROM memories WHERE seq IN ({', '.join('?' * len(part))})"
        for seq, vector, level in connection.execute(sql, part):
            fits = isinstance(vector, bytes) and level in LEVELS.values()
            found[seq] = vector_of(vector, level, dimension) if fits else None
    return found


def stored_vector(short: npt.NDArray[Any] | None, level: int) -> bytes | None:
    """Return the bytes of a vector that is quantized for a level."""
    return None if short is None else short.astype(_TYPES[level], copy=False).tobytes()


_TYPES = tuple(np.dtype(kind) for kind in ("<f4", "i1", "u1"))  # of the numbers of a vector, by its level


def terms_of(packed: bytes, words: str) -> Terms:
    return Terms(packed, tuple(words.split("\n")) if words else ())
