"""Power cuts: reconstruct what a disk could hold if the power had failed at some moment of a recorded round.

The shim logs each write and each sync. At a cut, a write is certainly on the disk if a sync of its file began after it
and had ended; of every other write each page is kept or lost at random. Truncation and removal of a file take effect at
once, as on a journaling file system."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HEAD = struct.Struct("=3Q4I")  # struct head of shim.c
_MAGIC = struct.pack("=Q", 0x7061A5C0FFEE1D)
_WRITE, _SYNC_BEGIN, _SYNC_END, _TRUNCATE, _UNLINK = range(1, 6)
_SUFFIX = {1: "", 2: "-wal"}  # enum file of shim.c
_SECTOR = 4096


class Record(NamedTuple):
    time: int
    offset: int
    kind: int
    file: int
    pid: int
    data: bytes


def read_log(path: Path) -> Iterator[Record]:
    """Yield the records of a log. One whose process died while writing it is skipped: its call did not happen."""
    log, at = path.read_bytes() if path.exists() else b"", 0
    while 0 <= at <= len(log) - _HEAD.size:
        _, time, offset, kind, file, length, pid = _HEAD.unpack_from(log, at)
        start = at + _HEAD.size
        end = start + (length if kind == _WRITE else 0)
        if end == len(log) or log[end : end + len(_MAGIC)] == _MAGIC:
            yield Record(time, offset, kind, file, pid, log[start:end])
            at = end
        else:
            at = log.find(_MAGIC, start)


class Disk:
    """The synced bytes of one file, and the writes since then."""

    def __init__(self, synced: bytes) -> None:
        self.synced = bytearray(synced)
        self.pending: list[Record] = []
        self._begun: dict[tuple[int, int], int] = {}  # sync → how many writes it covers

    def apply(self, record: Record) -> None:
        sync = (record.pid, record.offset)
        if record.kind == _WRITE:
            self.pending.append(record)
        elif record.kind == _SYNC_BEGIN:
            self._begun[sync] = len(self.pending)
        elif record.kind == _SYNC_END:
            covered = self._begun.pop(sync, 0)
            for write in self.pending[:covered]:
                _apply(self.synced, write.offset, write.data)
            del self.pending[:covered]
            self._begun = {key: max(0, count - covered) for key, count in self._begun.items()}
        else:  # a truncation makes all earlier writes durable
            for write in self.pending:
                _apply(self.synced, write.offset, write.data)
            del self.synced[record.offset if record.kind == _TRUNCATE else 0 :]
            self.pending.clear()
            self._begun.clear()

    def after_cut(self, rng: random.Random) -> bytes:
        """Return what could be on the disk after a cut."""
        image, kept = bytearray(self.synced), rng.choice((0.0, 0.5, 0.5, 1.0))
        for write in self.pending:
            start = 0
            while start < len(write.data):
                size = _SECTOR - (write.offset + start) % _SECTOR
                if rng.random() < kept:
                    _apply(image, write.offset + start, write.data[start : start + size])
                start += size
        return bytes(image)


def _apply(image: bytearray, offset: int, data: bytes) -> None:
    if len(image) < offset:
        image.extend(bytes(offset - len(image)))
    image[offset : offset + len(data)] = data


def cuts(base: Path, log: Path, target: Path, number: int, rng: random.Random) -> Iterator[tuple[int, Path]]:
    """Yield (time, store) of power cuts: `base` is a copy of the store when `log` began; the stores are written to
    `target`."""
    records = list(read_log(log))
    moments = sorted(rng.sample(range(len(records)), min(number, len(records))))
    disks = {file: Disk(_bytes(Path(f"{base}{suffix}"))) for file, suffix in _SUFFIX.items()}
    for at, record in enumerate(records):
        if moments and at == moments[0]:
            moments.pop(0)
            store = target / f"cut-{at}.db"
            for file, suffix in _SUFFIX.items():
                Path(f"{store}{suffix}").write_bytes(disks[file].after_cut(rng))
            yield record.time, store
        disks[record.file].apply(record)


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
