"""Create files and folders that only their owner can read, whatever the umask."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def make_folder(path: Path) -> None:
    """Make a folder (0700), and those above it that are missing; one that is there stays as it is."""
    missing = [one for one in (path, *path.parents) if not one.is_dir()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)


def make_file(path: Path) -> None:
    """Make an empty file (0600) and its folder; one that is there stays as it is."""
    make_folder(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def opener(path: str, flags: int) -> int:
    """For `open(…, opener=opener)`: a file that is made is 0600."""
    return os.open(path, flags, 0o600)


def publish(draft: Path, path: Path) -> None:
    """Give a finished draft its name; of two processes that do, the first wins. The draft is removed either way."""
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except (AttributeError, OSError):  # a system or a disk without hard links
        with suppress(FileExistsError), open(path, "xb", opener=opener) as file:
            file.write(draft.read_bytes())
            file.flush()
            os.fsync(file.fileno())
    finally:
        draft.unlink()
