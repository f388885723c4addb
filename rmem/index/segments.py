"""Segments: spans of the recall index packed into named arrays, to be kept in the store as a cache.

A segment covers the live rows with first_seq ≤ seq ≤ last_seq. It is trusted only if its format, its analyser
and every array's size and checksum are as expected; otherwise it counts as missing and is rebuilt from rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from .analyser import VERSION as ANALYSER
from .arrays import distinct
from .bits import VectorColumns
from .columns import NUMBERS
from .postings import Block
from .recall_index import RecallIndex
from .vocabulary import PackedWords

FORMAT = 2  # raise with every change of the arrays of a segment
TARGET_RATIO = 4  # a new segment absorbs older ones up to this many times its size
MAX_ROWS = 262_144
SPARE_ROWS = 1024  # reserved on loading for rows that are added later
CODES, WORD_CODES = "vectors.codes", "words.codes"
_HEADER = f'{{"format": {FORMAT}, "analyser": {ANALYSER}, "arrays": '
_WORD_ARRAYS = ("hashes", "codes", "scales", "signs", "centre")


class BadSegment(Exception):
    """A segment that is damaged or of another version; its rows are read instead."""


@dataclass(slots=True)
class Segment:
    """The rows first_seq to last_seq of an index, as named arrays and lists of names."""

    first_seq: int
    last_seq: int
    rows: int
    changes: int  # the last entry of the change log that it includes
    arrays: dict[str, npt.NDArray[Any]]
    names: dict[str, list[Any]] = field(default_factory=dict)


def checksum(array: npt.NDArray[Any]) -> str:
    """Return the exclusive or of all 64-bit words, which any single flipped bit changes, and a CRC of the sums of 4 KiB
    blocks, which notices blocks in the wrong place. Fast enough for every load; tells damage, not malice."""
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = raw[: raw.size // 8 * 8].view(np.uint64)
    mixed = int(np.bitwise_xor.reduce(whole, initial=np.uint64(0)))
    blocks = whole[: whole.size // 512 * 512].reshape(-1, 512)
    sums = np.append(np.add.reduce(blocks, axis=1, dtype=np.uint64), whole[blocks.size :])
    return f"{mixed:x}.{crc32(sums.tobytes() + raw[whole.size * 8 :].tobytes()):x}"


def _seal(segment: Segment, arrays: str, names: str) -> int:
    """Compute the checksum over everything but the arrays, from the JSON of what they are and of the names."""
    numbers = FORMAT, ANALYSER, segment.first_seq, segment.last_seq, segment.rows, segment.changes
    return crc32(f"[{', '.join(map(str, numbers))}, {names}, {arrays}]".encode())


def header(segment: Segment) -> str:
    """Return the header that the store keeps with the arrays."""
    arrays = json.dumps(
        {name: [array.dtype.str, list(array.shape), checksum(array)] for name, array in segment.arrays.items()}
    )
    names = json.dumps(segment.names)
    seal = _seal(segment, arrays, names)
    return f'{_HEADER}{arrays}, "names": {names}, "seal": {seal}}}'


def read(
    first_seq: int,
    last_seq: int,
    rows: int,
    changes: int,
    head: str,
    blobs: Mapping[str, bytes],
    sound: Callable[[Segment], bool] | None = None,
    wanted: Callable[[str], bool] | None = None,
) -> Segment:
    """A segment from what the store kept; BadSegment if anything is not as it was written, or its parts do not fit each
    other, which `sound` tells (by default those of a span of memories). `wanted` selects arrays by name."""
    try:
        if not head.startswith(_HEADER):
            raise BadSegment("written by another version")
        described, _, seal = head[len(_HEADER) : -1].rpartition(', "seal": ')
        arrays, _, names = described.rpartition(', "names": ')
        segment = Segment(first_seq, last_seq, rows, changes, {}, json.loads(names))
        if int(seal) != _seal(segment, arrays, names):
            raise BadSegment("its description is damaged")
        for name, (kind, shape, expected) in json.loads(arrays).items():
            if wanted is not None and not wanted(name):
                continue
            array = np.frombuffer(blobs[name], dtype=np.dtype(kind)).reshape(shape)
            if checksum(array) != expected:
                raise BadSegment(f"array {name} is damaged")
            segment.arrays[name] = array
        if not (sound or _is_sound)(segment):
            raise BadSegment("its parts do not fit each other")
        return segment
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise BadSegment(f"unreadable: {error}") from error


def _is_sound(segment: Segment) -> bool:
    """Whether the arrays of a segment of memories are consistent."""
    arrays, rows = segment.arrays, segment.rows
    sound = all(arrays[name].shape == (rows,) for name in NUMBERS)
    seqs = arrays["seq"]
    sound &= not rows or (segment.first_seq <= int(seqs[0]) and int(seqs[-1]) <= segment.last_seq)
    sound &= bool((seqs[1:] > seqs[:-1]).all())
    for name in ("group", "kind", "actor"):
        sound &= not rows or 0 <= int(arrays[name].min()) <= int(arrays[name].max()) < len(segment.names[name])
    if "position" in arrays:
        sound &= arrays["position"].shape == (rows, 3)
    sound &= all(sound_postings(arrays, name, rows) for name in ("terms", "marks", "numbers"))
    sound &= "vectors.scales" not in arrays or sound_vectors(arrays, "vectors", rows)
    if "words.text" in arrays:
        text = arrays["words.text"].tobytes()
        words = text.count(b"\n") + 1 if text else 0
        held = [f"words.{part}" for part in ("hashes", "codes", "scales") if f"words.{part}" in arrays]
        sound &= all(arrays[name].shape[0] == words for name in held)
    return bool(sound)


def sound_postings(arrays: Mapping[str, npt.NDArray[Any]], name: str, rows: int) -> bool:
    """Whether the arrays of a block are consistent, and with a number of rows."""
    terms, offsets, held = (arrays[f"{name}.{part}"] for part in ("terms", "offsets", "rows"))
    sound = offsets.size == terms.size + 1 and int(offsets[0]) == 0 and int(offsets[-1]) == held.size
    sound &= held.size == arrays[f"{name}.counts"].size and (not held.size or int(held.max()) < rows)
    return bool(sound and (offsets[1:] >= offsets[:-1]).all())


def sound_vectors(arrays: Mapping[str, npt.NDArray[Any]], name: str, rows: int) -> bool:
    """Whether the arrays of packed vectors are consistent, and with a number of rows."""
    sound = f"{name}.codes" not in arrays or arrays[f"{name}.codes"].shape[0] == rows
    sound &= arrays[f"{name}.scales"].shape == (rows,)
    return sound and (f"{name}.signs" not in arrays or arrays[f"{name}.signs"].shape[1] == rows)


def pack(index: RecallIndex, first_seq: int, last_seq: int, changes: int) -> Segment:
    """Pack the live rows of a span of the index into a segment."""
    columns = index.columns
    first = int(np.searchsorted(columns["seq"], first_seq))
    end = int(np.searchsorted(columns["seq"], last_seq, side="right"))
    alive = columns["alive"][first:end]
    kept = np.flatnonzero(alive) + first
    keep = np.full(end - first, -1, np.int64)
    keep[kept - first] = np.arange(kept.size)
    arrays: dict[str, npt.NDArray[Any]] = {name: columns[name][kept] for name in NUMBERS}
    names: dict[str, list[Any]] = {}
    for name, dictionary in (("group", columns.groups), ("kind", columns.kinds), ("actor", columns.actors)):
        used = distinct(arrays[name])
        arrays[name] = np.searchsorted(used, arrays[name]).astype(np.int32)
        names[name] = [dictionary.names[code] for code in used.tolist()]
    if columns.position is not None and not np.isnan(columns.position[kept]).all():
        arrays["position"] = columns.position[kept]
    for name, postings in (("terms", index.postings), ("marks", index.attribute_hashes), ("numbers", index.numbers)):
        block = postings.cut(keep, first, end)
        arrays |= {f"{name}.{part}": getattr(block, part) for part in ("terms", "offsets", "rows", "counts")}
    if index.vectors is not None:
        arrays[CODES] = index.vectors.codes[kept]
        arrays["vectors.scales"] = index.vectors.scales[kept]
        if index.vectors.centre is not None:
            arrays["vectors.signs"] = np.stack([word[kept] for word in index.vectors.words])
            arrays["vectors.centre"] = index.vectors.centre
    words = index.vocabulary.pack(arrays["terms.terms"])
    arrays["words.text"] = np.frombuffer("\n".join(words.words).encode(), np.uint8)
    for part in _WORD_ARRAYS:
        if getattr(words, part) is not None:
            arrays[f"words.{part}"] = getattr(words, part)
    return Segment(first_seq, last_seq, int(kept.size), changes, arrays, names)


def compact_copy(index: RecallIndex) -> RecallIndex:
    """Return a copy of an index without its dead rows."""
    fresh = RecallIndex(index.word_vectors)
    absorb(fresh, pack(index, 0, index.last_seq, 0))
    return fresh


def absorb(index: RecallIndex, segment: Segment) -> None:
    """Append a segment whose rows are newer than all in the index."""
    first, arrays = index.size, segment.arrays
    columns = index.columns
    coded: dict[str, Any] = {name: arrays[name] for name in NUMBERS}
    for name, dictionary in (("group", columns.groups), ("kind", columns.kinds), ("actor", columns.actors)):
        spelled = segment.names[name]
        codes = dictionary.codes([tuple(value) for value in spelled] if name == "group" else spelled)  # type: ignore[misc]
        coded[name] = np.array(codes, np.int32)[arrays[name]] if segment.rows else arrays[name]
    _absorb_vectors(index, segment, first)
    for name, postings in (("terms", index.postings), ("marks", index.attribute_hashes), ("numbers", index.numbers)):
        rows = arrays[f"{name}.rows"]
        postings.add_block(
            Block(
                arrays[f"{name}.terms"],
                arrays[f"{name}.offsets"],
                rows if first == 0 else rows + np.uint32(first),
                arrays[f"{name}.counts"],
            ),
            join=False,
        )
    if "words.text" in arrays:
        text = arrays["words.text"].tobytes().decode()
        parts = {part: arrays.get(f"words.{part}") for part in _WORD_ARRAYS}
        words = text.split("\n") if text else []
        index.vocabulary.add_packed(PackedWords(words=words, **parts))  # type: ignore[arg-type]
    columns.append_arrays(coded, arrays.get("position"), join=False)


def dimension_of(segment: Segment) -> int | None:
    """Return the number of dimensions of the vectors of a segment; None if it has none."""
    codes = segment.arrays.get(CODES, segment.arrays.get("vectors.centre"))
    return None if codes is None else int(codes.shape[-1])


def _absorb_vectors(index: RecallIndex, segment: Segment, first: int) -> None:
    codes, dimension = segment.arrays.get(CODES), dimension_of(segment)
    if dimension is None:
        if index.vectors is not None:
            index.vectors.append(np.zeros((segment.rows, index.vectors.dimension), np.float32))
        return
    if index.vectors is None:
        index.vectors = VectorColumns(dimension)
        if first:
            index.vectors.append(np.zeros((first, dimension), np.float32))
        if index.columns.room > segment.rows + SPARE_ROWS:  # more segments will follow
            index.vectors.reserve(index.columns.room)
    index.vectors.append_codes(
        codes,
        segment.arrays["vectors.scales"],
        segment.arrays.get("vectors.signs"),
        segment.arrays.get("vectors.centre"),
    )


def count_to_absorb(sizes: Iterable[int], fresh: int) -> int:
    """Return how many of the newest segments (sizes oldest first) a new one of `fresh` rows should absorb."""
    taken, total = 0, fresh
    for size in reversed(list(sizes)):
        if size > TARGET_RATIO * total or size + total > MAX_ROWS:
            break
        taken, total = taken + 1, total + size
    return taken
