"""Check whether what a memory says about files may be out of date: it stores a small fingerprint of each file; a file
that is gone or has little in common with its fingerprint has changed. Names of files come from other members too, so
nothing outside the repository is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..privacy.cleaner import PRINT_BITS, is_prints

_KEPT = 32  # hashes of lines that make a print
_LARGEST = 1 << 20
_MOST_FILES = 5
_ALIKE = 0.5  # share of common lines below which a file changed a lot
_FEW = 6  # lines that one or the other has, which are never a lot: the fix of a short file is some of them


def prints_of(root: Path, files: Iterable[str]) -> dict[str, list[int]]:
    """Return a fingerprint of each readable file of the repository: the smallest hashes of its lines."""
    found = {}
    for name in list(files)[:_MOST_FILES]:
        path = _path_inside(root, name)
        if path is not None and (made := _print(path)):
            found[name] = made
    return found


def staleness(root: Path, prints: Mapping[str, Any]) -> str | None:
    """Return why a memory with these fingerprints may be out of date, or None. Damaged fingerprints are ignored."""
    if not isinstance(prints, Mapping):
        return None
    for name, before in prints.items():
        path = _path_inside(root, name)
        if path is None:
            continue
        if not path.exists():
            return f"{name} is gone"
        now = _print(path)
        if now and is_prints({name: before}) and _likeness(before, now) < _ALIKE:
            return f"{name} changed a lot since"
    return None


def _path_inside(root: Path, name: str) -> Path | None:
    """Return the path of a file of the repository, with links followed; None if it is outside or cannot be one."""
    try:
        path = (root / name).resolve()
        path.exists()  # refuses names that are too long
        is_loop = path.is_symlink()  # which Python before 3.13 refuses to resolve
        return path if path.is_relative_to(root.resolve()) and not is_loop else None
    except (OSError, ValueError, RuntimeError):
        return None


def _print(path: Path) -> list[int]:
    try:
        state = path.stat()
        return _print_of(path, state.st_mtime_ns, state.st_size) if state.st_size <= _LARGEST and path.is_file() else []
    except OSError:
        return []


@lru_cache(maxsize=1024)
def _print_of(path: Path, _changed: int, _size: int) -> list[int]:
    """Cached, because many memories are about one file."""
    lines = {line.strip() for line in path.read_bytes().splitlines()}
    hashes = (int.from_bytes(blake2b(line, digest_size=PRINT_BITS // 8).digest(), "big") for line in lines if line)
    return sorted(hashes)[:_KEPT]


def _likeness(first: Sequence[int], second: Sequence[int]) -> float:
    """Estimate the share of lines that two files have in common, from the smallest hashes of both."""
    if len({*first} ^ {*second}) <= _FEW:
        return 1.0
    smallest = sorted({*first, *second})[:_KEPT]
    both = set(first) & set(second)
    return sum(value in both for value in smallest) / len(smallest) if smallest else 1.0
