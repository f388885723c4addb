"""Compress memories that have left short-term memory: the body as a zstd frame, the vector with fewer bits.

Bodies are restored byte for byte. States of one agent are alike, so a dictionary trained on a few hundred of them makes
each several times smaller; dictionaries are kept in the store. A vector keeps its direction in coarser steps: 8 bits
for each number in intermediate memory, 2 bits in long-term memory. Fewer dimensions instead would make unrelated
vectors look alike: 16 of 256 leave an error of 0.25 in a cosine, 2 bits one of 0.03."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import StoreCorruptError
from ..forks import new_lock
from ..models import Embeddings, Memory

if TYPE_CHECKING:
    from ..crypto.vault import Vault
    from .zstd import ZstdCompressor, ZstdDict

Vector = npt.NDArray[np.float32]

QuantizedVector = npt.NDArray[Any]

LEVELS = {"stm": 0, "im": 1, "ltm": 2}  # how much the memories of a tier are packed
TRAIN_FROM, SAMPLES = 500, 1000  # memories that are worth a dictionary, and how many it is made from
_BOUNDS = np.array([-0.9816, 0.0, 0.9816], np.float32)  # the best four steps for normally distributed numbers
_STEPS = np.array([-1.510, -0.4528, 0.4528, 1.510], np.float32)
_SHIFTS = np.array([0, 2, 4, 6], np.uint8)
_DICTIONARY = 16_384
_ZSTD_LEVEL = 9

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode


def decode_json(written: str) -> Any:
    """Parse JSON that this package wrote, without spaces around it; `json.loads` takes half as long again."""
    value, end = _decode(written)
    if end != len(written):
        raise ValueError(f"more than JSON, from character {end} on")
    return value


StoredContents = dict[str, Any] | list[dict[str, Any]]
"""Contents as stored beside the text of a memory: without their "text" if it is the same; with None if they have no
"text"; in a list if their "text" is None."""


def to_stored_contents(text: str, contents: dict[str, Any]) -> StoredContents:
    """Drop the text of contents if it repeats that of the memory."""
    if "text" not in contents:
        return {**contents, "text": None}
    if contents["text"] is None:
        return [contents]
    return {key: value for key, value in contents.items() if key != "text"} if contents["text"] == text else contents


def from_stored_contents(text: str, written: StoredContents) -> dict[str, Any]:
    """Reverse `to_stored_contents`; may change `written` in place."""
    if isinstance(written, list):
        return written[0]
    if "text" not in written:
        return {"text": text, **written}
    if written["text"] is None:
        del written["text"]
    return written


class Codec:
    """Packs and unpacks bodies. `fetch` gives the dictionaries of the store; `vault` opens what is encrypted."""

    def __init__(self, fetch: Callable[[], Iterable[bytes]], vault: Vault) -> None:
        self._fetch = fetch
        self.vault = vault
        self._lock = new_lock()  # a compressor serves one thread at a time
        self._known: dict[int, ZstdDict] = {}
        self._compressor: ZstdCompressor | None = None
        self._number: int | None = None  # of the dictionary that the compressor uses

    def use_dictionary(self, number: int, data: Callable[[], bytes]) -> None:
        """Pack with the dictionary of this number from now on, 0 for none; `data` reads it. Both must come from the
        transaction that writes: another one may lack a dictionary, or see one that is about to be deleted."""
        with self._lock:
            if number != self._number:
                dictionary = _dictionary(data()) if number else None
                if dictionary is not None:
                    self._known[number] = dictionary
                self._compressor = _compressor(dictionary)
                self._number = number

    def pack(self, text: str, contents: StoredContents) -> bytes:
        """Return a text and its contents as one frame."""
        from .zstd import compress

        body = _encode([text, contents]).encode()
        with self._lock:
            if self._compressor is None:
                self._compressor = _compressor(self._load_dictionaries())
            return compress(self._compressor, body)

    def unpack(self, packed: bytes) -> tuple[str, StoredContents]:
        """Return the text and contents that were packed."""
        from . import zstd

        try:
            number = zstd.get_frame_info(packed).dictionary_id
            body = zstd.decompress(packed, self._dictionary_by(number) if number else None)
            text, contents = decode_json(body.decode())
        except (zstd.ZstdError, ValueError, TypeError) as error:
            raise StoreCorruptError(f"a packed memory cannot be read: {error}") from error
        return text, contents

    def _dictionary_by(self, number: int) -> ZstdDict:
        found = self._known.get(number)
        if found is None:
            with self._lock:
                self._load_dictionaries()
                found = self._known.get(number)
        if found is None:
            raise StoreCorruptError(f"the dictionary {number} of a packed memory is missing")
        return found

    def _load_dictionaries(self) -> ZstdDict | None:
        """Read all dictionaries; return the one to pack with, or None."""
        found = None
        for data in self._fetch():
            found = _dictionary(data) if data else None
            if found is not None:
                self._known[found.dict_id] = found
        return found

    @property
    def has_dictionary(self) -> bool:
        with self._lock:
            if not self._known:
                self._load_dictionaries()
            return bool(self._known)


def _compressor(dictionary: ZstdDict | None) -> ZstdCompressor:
    from .zstd import ZstdCompressor

    return ZstdCompressor(level=_ZSTD_LEVEL, zstd_dict=dictionary)


def _dictionary(data: bytes) -> ZstdDict:
    from .zstd import ZstdDict

    try:
        return ZstdDict(data)
    except ValueError as error:
        raise StoreCorruptError(f"a dictionary of packed memories is damaged: {error}") from error


def dictionary_number(data: bytes) -> int:
    """Return the number by which packed bodies name a dictionary; 0 for an empty one. It is in its bytes 4 to 7."""
    return int.from_bytes(data[4:8], "little") if len(data) >= 8 else 0


def dictionary_of(packed: bytes) -> int:
    """Return the number of the dictionary that a body was packed with; 0 for none, -1 if it is not a packed body."""
    from .zstd import ZstdError, get_frame_info

    try:
        return get_frame_info(packed).dictionary_id
    except ZstdError:
        return -1


def train(bodies: Sequence[tuple[str, dict[str, Any]]]) -> bytes | None:
    """Train a dictionary for bodies like these; None if they have too little in common."""
    from .zstd import ZstdError, train_dict

    try:
        return train_dict([_encode(list(body)).encode() for body in bodies], _DICTIONARY).dict_content
    except (ZstdError, ValueError):
        return None


def quantize_vector(vector: Vector, level: int) -> QuantizedVector:
    """Quantize a vector to 8 bits per number (level 1) or 2 bits, four numbers to a byte (level 2)."""
    if level == 0:
        return vector
    if level == 1:
        peak = float(np.abs(vector).max(initial=0.0))
        return np.rint(vector * (127 / peak) if peak else vector).astype(np.int8)
    deviation = float(np.sqrt(np.mean(vector * vector))) if vector.size else 0.0
    codes = np.searchsorted(_BOUNDS * np.float32(deviation), vector).astype(np.uint8)
    if codes.size % 4:
        codes = np.append(codes, np.zeros(-codes.size % 4, np.uint8))
    packed: QuantizedVector = np.bitwise_or.reduce(codes.reshape(-1, 4) << _SHIFTS, axis=1)
    return packed


def dequantize_vector(short: QuantizedVector, level: int, dimension: int) -> Vector:
    """Restore a quantized vector: its direction is right within about 0.3 (level 1) or 20 degrees (level 2)."""
    if level == 0:
        return short
    if level == 1:
        wide = short.astype(np.float32)
    else:
        codes = (short.astype(np.uint8)[:, None] >> _SHIFTS) & 3
        wide = _STEPS[codes.reshape(-1)[:dimension]]
    length = float(np.sqrt(wide @ wide))
    result: Vector = wide / np.float32(length) if length else wide
    return result


def quantized_bytes(dimension: int, level: int) -> int:
    """Return the number of bytes that a vector takes at a level."""
    return (4 * dimension, dimension, -(-dimension // 4))[level]


def move_to_tier(memory: Memory, tier: str, full: Vector | None = None, dimension: int | None = None) -> Memory:
    """Return a copy of a memory for another tier, its vector quantized for it. A move to a hotter tier needs
    its `full` vector again; without it the quantized one is restored, if the dimension is known."""
    level, now = LEVELS[tier], memory.bookkeeping.compression_level
    if full is None:
        full = memory.embeddings.full_vector
    held = tier_vector(memory)
    vector: QuantizedVector | None = None
    if full is not None:
        vector = quantize_vector(full, level)
    elif level == now:
        vector = held
    elif held is not None and level > now:
        vector = quantize_vector(dequantize_vector(held, now, held.size), level)
    elif held is not None and dimension is not None:
        vector = quantize_vector(dequantize_vector(held, now, dimension), level)
    moved = memory.copied()
    moved.tier = tier
    moved.bookkeeping = replace(memory.bookkeeping, compression_level=level)
    moved.embeddings = embeddings_at(level, vector)
    return moved


def embeddings_at(level: int, vector: QuantizedVector | None) -> Embeddings:
    """Return embeddings with a vector in the field of its level."""
    if level == 0:
        return Embeddings(full_vector=vector)
    return Embeddings(compressed_vector=vector) if level == 1 else Embeddings(abstract_vector=vector)


def tier_vector(memory: Memory) -> QuantizedVector | None:
    """Return the vector of a memory as stored in its tier."""
    held, level = memory.embeddings, memory.bookkeeping.compression_level
    if level == 0:
        return held.full_vector
    if held.full_vector is not None:
        return quantize_vector(held.full_vector, level)
    return held.compressed_vector if level == 1 else held.abstract_vector


def full_vector(memory: Memory, dimension: int | None) -> Vector | None:
    """Return the full vector of a memory, restored from the quantized one if necessary."""
    held = tier_vector(memory)
    level = memory.bookkeeping.compression_level
    if held is None or level == 0 or memory.embeddings.full_vector is not None:
        return memory.embeddings.full_vector
    return dequantize_vector(held, level, held.size * (4 if level == 2 else 1) if dimension is None else dimension)
