"""Read the git settings of a folder: those of the system, the user and the repository, with their includes. One git
process reads them; they are read again when one of the files changed. Without git, the plain files are read."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_SECONDS = 10.0  # after which git is given up
_FRESH = 60  # seconds for which an answer holds while the files that we know of are the same
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")
_SECTION = re.compile(r'([\w.-]+)(?:\s+"(.*)")?')


@dataclass(frozen=True, slots=True)
class GitConfig:
    """Settings as pairs of key and value, in git's order: the last one wins."""

    pairs: tuple[tuple[str, str], ...]

    def last(self, key: str) -> str | None:
        return next((value for name, value in reversed(self.pairs) if name == key and value), None)

    def remotes(self) -> dict[str, str]:
        """Return the address of each remote; the first of several."""
        found: dict[str, str] = {}
        for name, value in self.pairs:
            if name.startswith("remote.") and name.endswith(".url") and value:
                found.setdefault(name[len("remote.") : -len(".url")], value)
        return found

    def rewritten(self, address: str) -> str:
        """Apply `url.….insteadOf`: replace the longest matching prefix."""
        fitting = [
            (value, name[len("url.") : -len(".insteadof")])
            for name, value in self.pairs
            if name.startswith("url.") and name.endswith(".insteadof") and value and address.startswith(value)
        ]
        if not fitting:
            return address
        begins, base = max(fitting, key=lambda pair: len(pair[0]))
        return base + address[len(begins) :]


def read(folder: Path, private: Path | None = None) -> GitConfig:
    """Return the settings for a folder; `private` is the repository's git folder."""
    files = [Path.home() / ".config" / "git" / "config", Path.home() / ".gitconfig"]
    common = private if private is None or not (private / "commondir").is_file() else private.parent.parent
    files += [] if common is None else [common / "config"]
    looks = tuple((str(path), *_look(path)) for path in [*files, *([private / "HEAD"] if private else [])])
    return _read(str(folder), str(private or ""), looks, int(time.monotonic()) // _FRESH)


def _look(path: Path) -> tuple[int, int]:
    try:
        about = path.stat()
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=256)
def _read(folder: str, private: str, looks: tuple[tuple[str, int, int], ...], when: int) -> GitConfig:
    env = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    env |= {"GIT_DIR": private} if private else {}  # else git passes over a repository that another user owns
    command = ["git", "-C", folder, "config", "--null", "--includes", "--list"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, env=env, check=False)
        printed = done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
    except (OSError, subprocess.SubprocessError):
        printed = None
    if printed is None:
        return GitConfig(tuple(pair for path, _, _ in looks for pair in _plain(Path(path))))
    entries = (entry.partition("\n") for entry in printed.split("\0") if entry)
    return GitConfig(tuple((_key(name), value) for name, _, value in entries))


def _key(name: str) -> str:
    """Normalise a key: lower-case its first and last part."""
    first, _, rest = name.partition(".")
    middle, _, last = rest.rpartition(".")
    return ".".join(part for part in (first.lower(), middle, last.lower()) if part)


def _plain(path: Path) -> list[tuple[str, str]]:
    """Read one file, without its includes."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=",))
    try:
        parser.read_string("\n".join(line.strip() for line in path.read_text("utf-8", "replace").splitlines()))
    except (OSError, configparser.Error):
        return []
    found = []
    for section in parser.sections():
        named = _SECTION.fullmatch(section)
        prefix = section if named is None else ".".join(filter(None, named.groups()))
        found += [(_key(f"{prefix}.{key}"), (value or "").strip(' "')) for key, value in parser.items(section)]
    return found
