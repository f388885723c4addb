"""Faults of the disk: compile the shim that intercepts calls of SQLite, and switch its faults on and off at run
time."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
KINDS = ("write EIO", "write ENOSPC", "short write", "sync EIO", "read EIO", "truncate EIO")  # enum fault of shim.c
_VICTIMS = 16
_SWITCHES = struct.Struct(f"=4I{_VICTIMS}i")  # the head of struct control
_HITS = struct.Struct(f"={len(KINDS)}Q")


def compile_shim(folder: Path) -> Path | str:
    """Compile the shim into `folder`; return its path, or a text that says why it cannot be compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if sys.platform != "linux":
        return f"the shim needs Linux, this is {sys.platform}"
    if compiler is None:
        return "there is no C compiler (cc, gcc or clang) on the PATH"
    built = folder / "shim.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(built), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return built if done.returncode == 0 else f"{compiler} could not compile {SOURCE.name}: {done.stderr.strip()}"


class Control:
    """The shared page of switches that the shim reads in every process before each call."""

    def __init__(self, path: Path, log: Path) -> None:
        self.path, self.log = path, log
        path.write_bytes(bytes(mmap.PAGESIZE))
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def fail(self, kinds: Sequence[str], per_mille: int, seed: int, victims: Sequence[int]) -> None:
        """Make a share of the calls of some processes fail from now on; `fail((), 0, 0, ())` ends it."""
        _, _, recording, *_ = _SWITCHES.unpack_from(self._page)
        bits = sum(1 << KINDS.index(kind) for kind in kinds)
        pids = [*victims, *[0] * _VICTIMS][:_VICTIMS]
        _SWITCHES.pack_into(self._page, 0, bits, per_mille, recording, seed & 0xFFFFFFFF, *pids)

    def record(self, on: bool) -> None:
        """Switch the log of all writes and syncs on or off."""
        struct.pack_into("=I", self._page, 8, on)

    def hits(self) -> dict[str, int]:
        """Return how many calls have failed, by kind."""
        return dict(zip(KINDS, _HITS.unpack_from(self._page, _SWITCHES.size), strict=True))
