"""Who works where: a repository that is the same in every clone and worktree, and its author. The files of git are
read directly, because a hook has no time for another process."""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

from .. import config

_SCP = re.compile(r"^(?:[^@/]+@)?(?P<host>[^:/]+):(?P<path>[^/].*)$")
_LONGEST = 1 << 20  # bytes of a file of git that are read


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as its members name it: `id` is the address it is shared at ("github.com/acme/etl"), or, if it is
    shared nowhere, its folder's name and a hash of that folder. Worktrees and clones have the same id."""

    id: str
    root: Path
    branch: str | None = None
    commit: str | None = None

    @property
    def name(self) -> str:
        return self.id.rpartition("/")[2]

    def relative(self, path: str | Path) -> str:
        """A path as it is written in memories: from the root of the repository, with forward slashes; a path outside
        stays as it is."""
        given = Path(path)
        whole = given if given.is_absolute() else self.root / given
        try:
            return whole.relative_to(self.root).as_posix()
        except ValueError:
            try:
                return whole.resolve().relative_to(self.root.resolve()).as_posix()
            except (ValueError, OSError):
                return str(PurePosixPath(given))


def repository(path: str | Path) -> Repository | None:
    """The repository that a folder or file lies in; None outside any."""
    start = Path(path)
    for folder in (start, *start.parents):
        mark = folder / ".git"
        if mark.is_dir():
            return _read(folder, mark)
        if mark.is_file():
            private = _pointed_to(mark)
            if private is not None:
                return _read(folder, private)
    return None


def repository_id(told: str) -> str:
    """The id of a repository from whatever somebody writes: an id, or the address it is cloned from."""
    given = told.strip()
    if "://" in given or _SCP.match(given):
        return _shared(given)
    host, separator, _ = given.partition("/")
    return given.rstrip("/").removesuffix(".git").lower() if separator and "." in host else given


def author(path: str | Path | None = None) -> str:
    """Who works here: the e-mail address or name that git knows, else the name of the user."""
    places = [Path.home() / ".config" / "git" / "config", Path.home() / ".gitconfig"]
    found = repository(path) if path is not None else None
    if found is not None:
        mark = found.root / ".git"
        own = mark if mark.is_dir() else _pointed_to(mark)
        places += [_common(own) / "config"] if own is not None else []
    known: dict[str, str] = {}
    for place in places:
        known |= _section(place, "user")
    return known.get("email") or known.get("name") or config.user()


def _read(root: Path, private: Path) -> Repository:
    common = _common(private)
    branch, commit = _head(private, common)
    remotes = _remotes(common / "config")
    address = remotes.get("origin") or remotes.get("upstream") or next(iter(remotes.values()), None)
    home = common.parent if common.name == ".git" else common
    return Repository(_shared(address) if address else local_id(home), root, branch, commit)


def _pointed_to(mark: Path) -> Path | None:
    """The folder that a worktree's or submodule's `.git` file names."""
    told = _text(mark)
    if not told.startswith("gitdir:"):
        return None
    named = Path(told.removeprefix("gitdir:").strip())
    return named if named.is_absolute() else (mark.parent / named).resolve()


def _common(private: Path) -> Path:
    """The folder that all worktrees of a repository share."""
    told = _text(private / "commondir").strip()
    if not told:
        return private
    named = Path(told)
    return named if named.is_absolute() else (private / named).resolve()


def _head(private: Path, common: Path) -> tuple[str | None, str | None]:
    told = _text(private / "HEAD").strip()
    if not told.startswith("ref:"):
        return None, told or None
    name = told.removeprefix("ref:").strip()
    commit = _text(private / name).strip() or _text(common / name).strip() or _packed(common, name)
    return name.removeprefix("refs/heads/"), commit or None


def _packed(common: Path, name: str) -> str | None:
    for line in _text(common / "packed-refs").splitlines():
        commit, _, ref = line.partition(" ")
        if ref.strip() == name:
            return commit
    return None


def _remotes(path: Path) -> dict[str, str]:
    parsed = _parsed(path)
    found = {}
    for section in parsed.sections():
        named = re.fullmatch(r'remote\s+"(.+)"', section)
        if named and parsed.has_option(section, "url"):
            found[named[1]] = parsed.get(section, "url")
    return found


def _section(path: Path, name: str) -> dict[str, str]:
    parsed = _parsed(path)
    return {key: value.strip().strip('"') for key, value in parsed.items(name)} if parsed.has_section(name) else {}


def _parsed(path: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=",))
    lines = [line.strip() for line in _text(path).splitlines()]
    try:
        parser.read_string("\n".join(lines))
    except configparser.Error:
        parser.clear()
    return parser


def _shared(address: str) -> str:
    """An address without what differs between people: "git@github.com:Acme/etl.git" → "github.com/acme/etl"."""
    told = address.strip()
    if "://" in told:
        rest = told.partition("://")[2]
    elif (short := _SCP.match(told)) is not None:
        rest = f"{short['host']}/{short['path']}"
    else:
        return local_id(Path(told))
    host, _, path = rest.rpartition("@")[2].partition("/")
    host = host.partition(":")[0]
    return f"{host}/{path}".rstrip("/").removesuffix(".git").lower()


def local_id(folder: Path) -> str:
    """The id of a repository that is shared nowhere."""
    return f"{folder.name.removesuffix('.git')}-{sha256(str(folder).encode()).hexdigest()[:8]}"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST).decode("utf-8", "replace")
    except OSError:
        return ""
