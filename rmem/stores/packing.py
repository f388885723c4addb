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

Short = npt.NDArray[Any]

LEVELS = {"stm": 0, "im": 1, "ltm": 2}  # how much the memories of a tier are packed
TRAIN_FROM, SAMPLES = 500, 1000  # memories that are worth a dictionary, and how many it is made from
_BOUNDS = np.array([-0.9816, 0.0, 0.9816], np.float32)  # the best four steps for normally distributed numbers
_STEPS = np.array([-1.510, -0.4528, 0.4528, 1.510], np.float32)
_SHIFTS = np.array([0, 2, 4, 6], np.uint8)
_DICTIONARY = 16_384
_ZSTD_LEVEL = 9

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode


def decoded(written: str) -> Any:
    """What JSON of ours says. `json.loads` takes half as long again, to allow for spaces around the value."""
    value, end = _decode(written)
    if end != len(written):
        raise ValueError(f"more than JSON, from character {end} on")
    return value


Written = dict[str, Any] | list[dict[str, Any]]
"""Contents beside a text that is written for itself: without it where it is theirs, with None for it where they have
none, and in a list where they hold just that None."""


def written_beside(text: str, contents: dict[str, Any]) -> Written:
    if "text" not in contents:
        return {**contents, "text": None}
    if contents["text"] is None:
        return [contents]
    return {key: value for key, value in contents.items() if key != "text"} if contents["text"] == text else contents


def read_beside(text: str, written: Written) -> dict[str, Any]:
    """The contents that were written beside a text; they may be changed in place."""
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

    def use(self, number: int, data: Callable[[], bytes]) -> None:
        """Write with the dictionary of a number, 0 for none; `data` is asked for it if it is another than before. Both
        come from the transaction that writes: what others read may lack a dictionary, or hold one that goes."""
        with self._lock:
            if number != self._number:
                dictionary = _dictionary(data()) if number else None
                if dictionary is not None:
                    self._known[number] = dictionary
                self._compressor = _compressor(dictionary)
                self._number = number

    def pack(self, text: str, contents: Written) -> bytes:
        """Return a text and its contents as one frame."""
        from .zstd import compress

        body = _encode([text, contents]).encode()
        with self._lock:
            if self._compressor is None:
                self._compressor = _compressor(self._learn())
            return compress(self._compressor, body)

    def unpack(self, packed: bytes) -> tuple[str, Written]:
        """Return the text and contents that were packed."""
        from . import zstd

        try:
            number = zstd.get_frame_info(packed).dictionary_id
            body = zstd.decompress(packed, self._dictionary_by(number) if number else None)
            text, contents = decoded(body.decode())
        except (zstd.ZstdError, ValueError, TypeError) as error:
            raise StoreCorruptError(f"a packed memory cannot be read: {error}") from error
        return text, contents

    def _dictionary_by(self, number: int) -> ZstdDict:
        found = self._known.get(number)
        if found is None:
            with self._lock:
                self._learn()
                found = self._known.get(number)
        if found is None:
            raise StoreCorruptError(f"the dictionary {number} of a packed memory is missing")
        return found

    def _learn(self) -> ZstdDict | None:
        """Read the dictionaries; the newest one, or None where nothing is to be written with one."""
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
                self._learn()
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
    """The number by which packed bodies name a dictionary; 0 for an empty one. It is in the first eight bytes."""
    return int.from_bytes(data[4:8], "little") if len(data) >= 8 else 0


def dictionary_of(packed: bytes) -> int:
    """The number of the dictionary that a body was packed with; 0 for none, -1 for what is no body."""
    from .zstd import ZstdError, get_frame_info

    try:
        return get_frame_info(packed).dictionary_id
    except ZstdError:
        return -1


def train(bodies: Sequence[tuple[str, dict[str, Any]]]) -> bytes | None:
    """Make a dictionary for bodies like these; None if they have too little in common."""
    from .zstd import ZstdError, train_dict

    try:
        return train_dict([_encode(list(body)).encode() for body in bodies], _DICTIONARY).dict_content
    except (ZstdError, ValueError):
        return None


def shorten(vector: Vector, level: int) -> Short:
    """The direction of a vector in 8-bit steps (level 1), or in four steps, four numbers to a byte (level 2)."""
    if level == 0:
        return vector
    if level == 1:
        peak = float(np.abs(vector).max(initial=0.0))
        return np.rint(vector * (127 / peak) if peak else vector).astype(np.int8)
    deviation = float(np.sqrt(np.mean(vector * vector))) if vector.size else 0.0
    codes = np.searchsorted(_BOUNDS * np.float32(deviation), vector).astype(np.uint8)
    if codes.size % 4:
        codes = np.append(codes, np.zeros(-codes.size % 4, np.uint8))
    packed: Short = np.bitwise_or.reduce(codes.reshape(-1, 4) << _SHIFTS, axis=1)
    return packed


def widen(short: Short, level: int, dimension: int) -> Vector:
    """A shortened vector at full length again: the same direction within about 0.3 (level 1) or 20 degrees."""
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


def short_bytes(dimension: int, level: int) -> int:
    """How many bytes a vector takes at a level."""
    return (4 * dimension, dimension, -(-dimension // 4))[level]


def placed(memory: Memory, tier: str, full: Vector | None = None, dimension: int | None = None) -> Memory:
    """A memory as it is kept in a tier. On its way up it needs its full vector again; without it, it gets the direction
    that its short one tells, if the dimension is known."""
    level, now = LEVELS[tier], memory.bookkeeping.compression_level
    if full is None:
        full = memory.embeddings.full_vector
    held = short_vector(memory)
    vector: Short | None = None
    if full is not None:
        vector = shorten(full, level)
    elif level == now:
        vector = held
    elif held is not None and level > now:
        vector = shorten(widen(held, now, held.size), level)
    elif held is not None and dimension is not None:
        vector = shorten(widen(held, now, dimension), level)
    moved = memory.copied()
    moved.tier = tier
    moved.bookkeeping = replace(memory.bookkeeping, compression_level=level)
    moved.embeddings = embeddings_at(level, vector)
    return moved


def embeddings_at(level: int, vector: Short | None) -> Embeddings:
    """The vector of a level in its place."""
    if level == 0:
        return Embeddings(full_vector=vector)
    return Embeddings(compressed_vector=vector) if level == 1 else Embeddings(abstract_vector=vector)


def short_vector(memory: Memory) -> Short | None:
    """The vector that a memory has at its level."""
    held, level = memory.embeddings, memory.bookkeeping.compression_level
    if level == 0:
        return held.full_vector
    if held.full_vector is not None:
        return shorten(held.full_vector, level)
    return held.compressed_vector if level == 1 else held.abstract_vector


def full_vector(memory: Memory, dimension: int | None) -> Vector | None:
    """The vector of a memory in the full space, as well as it is still known."""
    held = short_vector(memory)
    level = memory.bookkeeping.compression_level
    if held is None or level == 0 or memory.embeddings.full_vector is not None:
        return memory.embeddings.full_vector
    return widen(held, level, held.size * (4 if level == 2 else 1) if dimension is None else dimension)
