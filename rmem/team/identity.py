"""Identify the repository, the same in every clone, fork and worktree, and the author. Git reports its settings,
because of their includes; branches and commits are read from its files."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from .. import config
from ..old_names import REPOSITORY_FILES
from . import git_config

# A host of one letter is a drive.
_SCP = re.compile(r"^(?:[^@/]+@)?(?P<host>\[[^\]/]+\]|[^:/\[]{2,}):/*(?P<path>[^/].*)$")
_AUTHORITY = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>.*))?")
_REMOTES = ("upstream", "origin")
"""A fork is cloned from `origin`, and the repository that it is of is `upstream`."""
# Where git is served on port 443, for those behind a firewall.
_ALIASES = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com", "altssh.bitbucket.org": "bitbucket.org"}
_CODECOMMIT = re.compile(r"\Acodecommit::([\w-]+)://(?:[^@/]+@)?")
"""How the helper of AWS CodeCommit writes the repository of a region."""
_AZURE = "dev.azure.com"
_AZURE_SSH = (
    "ssh.dev.azure.com",
    "vs-ssh.visualstudio.com",
)  # git@ssh.dev.azure.com:v3/ORGANISATION/PROJECT/REPOSITORY
_OLD_AZURE = ".visualstudio.com"
_BITBUCKET_SERVER = re.compile(r"(?:(?:bitbucket|stash)/)?scm/(?=[^/]+/[^/]+\Z)")
"""What Bitbucket Server puts before PROJECT/REPOSITORY over HTTPS, and not over SSH."""
_FORGES = (*_ALIASES.values(), "codeberg.org", _AZURE)
"""Hosts whose addresses are never rewritten: `insteadOf` names a mirror or proxy of them, which others do not use."""
_LONGEST = 1 << 20  # bytes of a file of git that are read
_SSH_SECONDS = 5.0  # after which ssh is given up


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
        """Return a path relative to the root, with forward slashes; unchanged if outside."""
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
    found = _find(path)
    return None if found is None else _read(*found)


def root_of(path: str | Path) -> Path | None:
    """Return the root folder of the repository of a folder or file, or None."""
    found = _find(path)
    return None if found is None else found[0]


def _find(path: str | Path) -> tuple[Path, Path] | None:
    """Return the root of a repository and its git folder; also from a linked folder."""
    start = Path(path)
    found = _find_above(start)
    return found if found is not None or (real := start.resolve()) == start else _find_above(real)


def _find_above(start: Path) -> tuple[Path, Path] | None:
    for folder in (start, *start.parents):
        mark = folder / ".git"
        if mark.is_dir():
            return folder, mark
        if mark.is_file():
            private = _pointed_to(mark)
            if private is not None:
                return folder, private
        if _is_bare(folder):
            return folder, folder
    return None


def _is_bare(folder: Path) -> bool:
    """Return whether a folder is a repository without a work tree (the `.git` of one with a work tree is not)."""
    return ".git" not in folder.parts and (folder / "HEAD").is_file() and (folder / "objects").is_dir()


def repository_id(address: str) -> str:
    """Return the id of a repository from an id or a clone address."""
    given = address.strip()
    if "://" in given or _SCP.match(given):
        return _shared_id(given)
    host, separator, path = given.partition("/")
    return _canonical_id(host, path) if separator and "." in host.strip(".") else given


def author(path: str | Path | None = None) -> str:
    """Return who works here: git's e-mail address or name, else the user name."""
    found = _find(path) if path is not None else None
    settings = git_config.read(*found) if found is not None else git_config.read(_folder(path))
    return settings.last("user.email") or settings.last("user.name") or config.user()


def _folder(path: str | Path | None) -> Path:
    """Return an existing folder for git to start in."""
    folder = Path(path) if path is not None else Path.home()
    return folder if folder.is_dir() else Path(os.sep)


def _read(root: Path, private: Path) -> Repository:
    common = _common(private)
    branch, commit = _head(private, common)
    named = _declared_id(root)
    if named is not None:
        return Repository(repository_id(named), root, branch, commit)
    settings = git_config.read(root, private)
    remotes = settings.remotes()
    address = next((remotes[name] for name in _REMOTES if name in remotes), next(iter(remotes.values()), None))
    home = common.parent if common.name == ".git" else common
    return Repository(_address_id(address, settings) if address else local_id(home), root, branch, commit)


def _address_id(address: str, settings: git_config.GitConfig) -> str:
    written = _shared_id(address)
    return (
        written
        if written.startswith(tuple(f"{host}/" for host in _FORGES))
        else _shared_id(settings.rewritten(address))
    )


def _declared_id(root: Path) -> str | None:
    """Return the id in the repository's own file; None if it cannot be read."""
    path = next((root / name for name in REPOSITORY_FILES if (root / name).is_file()), None)
    if path is None:
        return None
    from ..errors import ConfigError
    from .repository_file import read_settings

    try:
        return read_settings(path).repository
    except ConfigError:
        return None


def _pointed_to(mark: Path) -> Path | None:
    """Return the folder that a worktree's or submodule's `.git` file names."""
    content = _text(mark)
    if not content.startswith("gitdir:"):
        return None
    named = Path(content.removeprefix("gitdir:").strip())
    return named if named.is_absolute() else (mark.parent / named).resolve()


def _common(private: Path) -> Path:
    """Return the git folder shared by all worktrees of a repository."""
    content = _text(private / "commondir").strip()
    if not content:
        return private
    named = Path(content)
    return named if named.is_absolute() else (private / named).resolve()


def _head(private: Path, common: Path) -> tuple[str | None, str | None]:
    content = _text(private / "HEAD").strip()
    if not content.startswith("ref:"):
        return None, content or None
    name = content.removeprefix("ref:").strip()
    commit = _text(private / name).strip() or _text(common / name).strip() or _packed_ref(common, name)
    return name.removeprefix("refs/heads/"), commit or None


def _packed_ref(common: Path, name: str) -> str | None:
    for line in _text(common / "packed-refs").splitlines():
        commit, _, ref = line.partition(" ")
        if ref.strip() == name:
            return commit
    return None


def _shared_id(address: str) -> str:
    """Normalise an address: "git@github.com:Acme/etl.git" becomes "github.com/acme/etl"."""
    url = _CODECOMMIT.sub(r"https://git-codecommit.\1.amazonaws.com/v1/repos/", address.strip()).removeprefix("file://")
    if "://" in url:
        scheme, _, rest = url.partition("://")
        authority, _, path = rest.partition("/")
        found = _AUTHORITY.fullmatch(authority.rpartition("@")[2])
        host, port = (found["host"], found["port"] or "") if found else (authority, "")
        path = path if port.isdigit() or not port else f"{port}/{path}"  # ssh://git@github.com:acme/etl
        is_ssh = "ssh" in scheme.lower()
    elif (short := _SCP.match(url)) is not None:
        host, path, is_ssh = short["host"], short["path"], True
    else:
        return local_id(Path(url))
    return _canonical_id(_host_behind(host) if is_ssh else host, path)


def _host_behind(name: str) -> str:
    """Return the host name for a Host alias of ~/.ssh/config; the name itself if there is no alias, or no ssh."""
    config = Path.home() / ".ssh" / "config"
    try:
        return _ask_ssh(name, str(config), config.stat().st_mtime_ns)
    except OSError:
        return name


@lru_cache(maxsize=256)
def _ask_ssh(name: str, config: str, changed: int) -> str:
    command = ["ssh", "-G", "-T", "-F", config, "--", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SSH_SECONDS, check=False)
    except (ValueError, subprocess.SubprocessError):
        return name
    lines = (line.partition(" ") for line in done.stdout.splitlines())
    return next((value for word, _, value in lines if word == "hostname" and value), name)


def _canonical_id(host: str, path: str) -> str:
    """Return one id for all ways in which a service writes the address of a repository."""
    host = host.lower().rstrip(".").removeprefix("www.")
    host = _ALIASES.get(host, host)
    plain = unquote(path)
    path = "/".join(filter(None, (plain if plain.isprintable() else path).lower().split("/"))).removesuffix(".git")
    if host == _AZURE or host in _AZURE_SSH or host.endswith(_OLD_AZURE):
        return _azure_id(host, path.split("/")) or f"{host}/{path}"
    return f"{host}/{path if host in _FORGES else _BITBUCKET_SERVER.sub('', path, count=1)}"


def _azure_id(host: str, parts: list[str]) -> str | None:
    """Return the id of a repository of Azure DevOps, whose newest address is ORGANISATION/PROJECT/_git/REPOSITORY at
    dev.azure.com; None for other addresses there."""
    if host in _AZURE_SSH:
        parts = [*parts[1:3], "_git", *parts[3:]] if parts[0] == "v3" else []
    elif host.endswith(_OLD_AZURE):
        parts = [host.removesuffix(_OLD_AZURE), *(part for part in parts if part != "defaultcollection")]
    if len(parts) == 3 and parts[1] == "_git":
        parts = [parts[0], parts[2], *parts[1:]]  # the project of the same name is left out
    return "/".join([_AZURE, *parts]) if len(parts) == 4 and parts[2] == "_git" else None


def local_id(folder: Path) -> str:
    """Return the id of a repository without a remote."""
    return f"{folder.name.removesuffix('.git')}-{sha256(str(folder).encode()).hexdigest()[:8]}"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST).decode("utf-8", "replace")
    except OSError:
        return ""
