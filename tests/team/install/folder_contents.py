"""What is in a folder, to compare before and after."""

from __future__ import annotations

from pathlib import Path


def everything(folder: Path) -> dict[str, bytes | None]:
    """All files and folders below one, to compare before and after."""
    return {str(one.relative_to(folder)): one.read_bytes() if one.is_file() else None for one in folder.rglob("*")}
