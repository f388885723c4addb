"""Read and write files of other tools safely: follow links, write atomically, keep mode and owner, keep a backup, and
record every change in a ledger so that it can be undone."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ... import config
from ...errors import ConfigError

_BOM = "\ufeff"
_LONGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """A file as it was read. `path` is the tool's name for it, `target` resolves links; `data` is None if it does not
    exist."""

    path: Path
    target: Path
    data: bytes | None = None
    mode: int | None = None

    @property
    def text(self) -> str | None:
        return None if self.data is None else self.data.decode().removeprefix(_BOM)

    def encode(self, text: str) -> bytes:
        """Encode a text with this file's byte order mark, if it has one."""
        marked = self.data is not None and self.data.startswith(_BOM.encode())
        return (f"{_BOM}{text}" if marked else text).encode()


def read(path: Path) -> FileSnapshot:
    """Read a file that may be missing; refuse one that could not be written back."""
    try:
        target = path.resolve()
        found = target.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path} is not a file")
        if found.st_size > _LONGEST:
            raise ConfigError(f"{path} is larger than {_LONGEST >> 20} MB")
        data = target.read_bytes()
    except FileNotFoundError:
        if path.is_symlink() and not target.parent.is_dir():
            raise ConfigError(f"{path} is a link to {target}, and there is no such folder") from None
        return FileSnapshot(path, target)
    except NotADirectoryError:
        raise ConfigError(f"{path} cannot be there: a part of that path is a file") from None
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path} cannot be read: {_reason(error)}") from None
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: byte {error.start} is not") from None
    return FileSnapshot(path, target, data, stat.S_IMODE(found.st_mode))


def write(seen: FileSnapshot, data: bytes | None) -> list[Path]:
    """Replace a file (None removes it) unless it changed since it was read; return the created folders."""
    if seen.mode is not None and not seen.mode & 0o222:
        raise ConfigError(f"{seen.path} is read-only")
    now = read(seen.path)
    if now.data != seen.data or now.target != seen.target:
        raise ConfigError(f"{seen.path} was changed by another program just now; run this again")
    made: list[Path] = []
    try:
        if data is None:
            seen.target.unlink(missing_ok=True)
            return made
        made = _folders(seen.target.parent)
        _replace(seen.target, data, seen.mode)
    except OSError as error:
        raise ConfigError(f"{seen.path} cannot be written: {_reason(error)}") from None
    return made


def _folders(folder: Path) -> list[Path]:
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _replace(target: Path, data: bytes, mode: int | None) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _usual_mode() if mode is None else mode)
        if mode is not None and hasattr(os, "chown"):
            before = target.stat()
            with contextlib.suppress(PermissionError):  # only an administrator may give a file away
                os.chown(name, before.st_uid, before.st_gid)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _usual_mode() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return 0o666 & ~mask


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)


@dataclass(slots=True)
class LedgerEntry:
    """What was done to a file: `before` and `after` are hashes (None: no file), `backup` the first copy of what was
    there, `made` the paths inside it that were made for our entries."""

    agent: str
    before: str | None
    after: str | None
    backup: str | None = None
    made: list[list[str]] = field(default_factory=list)


class Ledger:
    """Record in `installed.json` what `rmem install` changed, so that it can be undone."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = config.home() / "team" if folder is None else folder
        self.path = self.folder / "installed.json"
        self.entries: dict[str, LedgerEntry] = {}
        self.folders: list[str] = []
        try:
            saved = json.loads(self.path.read_text(encoding="utf-8"))
            self.entries = {key: LedgerEntry(**entry) for key, entry in saved["files"].items()}
            self.folders = [str(made) for made in saved["folders"]]
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            pass  # without a ledger our entries are still known by their form; only exact restoring is lost

    def entry(self, path: Path) -> LedgerEntry | None:
        return self.entries.get(str(path))

    def original(self, seen: FileSnapshot) -> tuple[bool, bytes | None]:
        """Return whether a file is unchanged since our edit, and its earlier contents (None: no file)."""
        entry = self.entry(seen.path)
        if entry is None or entry.after is None or entry.after != digest(seen.data):
            return False, None
        if entry.before is None:
            return True, None
        try:
            data = Path(entry.backup or "").read_bytes()
        except OSError:
            return False, None
        return digest(data) == entry.before, data

    def record_install(
        self,
        agent: str,
        seen: FileSnapshot,
        data: bytes,
        made: Sequence[Sequence[str]],
        folders: list[Path],
        clean: bool,
    ) -> None:
        """Record a written file. An entry that still describes the file keeps its first backup; earlier contents count
        as original only if `clean`, without entries of ours."""
        entry, backup = self.entry(seen.path), self.keep(agent, seen)
        following = entry is not None and entry.after is not None and entry.after == digest(seen.data)
        if entry is None or not following:
            entry = LedgerEntry(agent, digest(seen.data), None, backup, [] if entry is None else entry.made)
        entry.after = digest(data) if clean or following else None
        entry.made += [list(path) for path in made if list(path) not in entry.made]
        self.folders += [str(folder) for folder in folders if str(folder) not in self.folders]
        self.entries[str(seen.path)] = entry
        self._save()

    def record_removal(self, seen: FileSnapshot) -> None:
        """Drop a file's entry and remove empty folders that we created."""
        self.entries.pop(str(seen.path), None)
        for folder in sorted(self.folders, key=len, reverse=True):
            with contextlib.suppress(OSError):  # something is still there, or somebody else took it away
                Path(folder).rmdir()
        self.folders = [folder for folder in self.folders if Path(folder).is_dir()]
        self._save()

    def keep(self, agent: str, seen: FileSnapshot) -> str | None:
        """Copy a file to the backup folder, readable by this user only."""
        if seen.data is None:
            return None
        folder = self.folder / "backups" / agent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        number = 1
        while True:
            path = folder / f"{seen.path.name}.{number}"
            try:
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                number += 1
                continue
            with os.fdopen(handle, "wb") as file:
                file.write(seen.data)
            return str(path)

    def _save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        saved: dict[str, Any] = {
            "version": 1,
            "files": {key: asdict(entry) for key, entry in self.entries.items()},
            "folders": self.folders,
        }
        _replace(self.path, (json.dumps(saved, indent=2, ensure_ascii=False) + "\n").encode(), None)


def digest(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()
