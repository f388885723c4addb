"""Create files and folders that only their owner can read, whatever the umask."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def make_folder(path: Path) -> None:
    """Create a folder (0700) and its missing parents; leave an existing one unchanged."""
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def make_file(path: Path) -> None:
    """Create an empty file (0600) and its folder; leave an existing one unchanged."""
    make_folder(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def opener(path: str, flags: int) -> int:
    """Opener for `open(…, opener=opener)` that creates files with 0600."""
    return os.open(path, flags, 0o600)


def publish(draft: Path, path: Path) -> None:
    """Give a finished draft its final name; if two processes do, the first wins. Remove the draft in both cases."""
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except (AttributeError, OSError):  # no hard links on this system or disk
        with suppress(FileExistsError), open(path, "xb", opener=opener) as file:
            file.write(draft.read_bytes())
            file.flush()
            os.fsync(file.fileno())
    finally:
        draft.unlink()
