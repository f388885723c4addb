"""Resolve host names of ~/.ssh/config. Only Host, HostName and Include are read."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

_LARGEST = 1 << 20  # bytes of a file that are read
_DEEPEST = 8  # files that include one another


def host_of(name: str) -> str:
    """Return the host name for a Host alias; the name itself if there is no alias."""
    applies = True
    for word, values in _lines(Path.home() / ".ssh" / "config"):
        if word == "host":
            applies = _fits(name, values)
        elif word == "match":
            applies = [value.lower() for value in values] == ["all"]
        elif word == "hostname" and applies and values:
            return values[0].replace("%h", name).replace("%%", "%")  # the first one holds
    return name


def _fits(name: str, patterns: list[str]) -> bool:
    if any(pattern.startswith("!") and fnmatchcase(name, pattern[1:]) for pattern in patterns):
        return False
    return any(fnmatchcase(name, pattern) for pattern in patterns if not pattern.startswith("!"))


def _lines(path: Path, depth: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Yield the words of each line, with included files in place."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        word, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        try:
            values = shlex.split(rest, comments=True)
        except ValueError:
            continue
        if word.lower() == "include" and depth < _DEEPEST:
            for pattern in values:
                whole = Path(pattern).expanduser()
                place = whole if whole.is_absolute() else Path.home() / ".ssh" / whole
                for found in sorted(glob.glob(str(place))):
                    yield from _lines(Path(found), depth + 1)
        elif word and not word.startswith("#"):
            yield word.lower(), values
