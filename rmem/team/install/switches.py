"""Check whether a tool's own settings disable all of its hooks; `rmem status` warns about it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from . import files
from .jsonc import Document, path_text


def json_switch(path: Path, at: Sequence[str], off: bool) -> str:
    """Describe the setting that disables hooks in a JSON file; empty if they are enabled."""
    try:
        value = Document(files.read(path).text or "").get(at)
    except ConfigError:
        return ""
    return _problem(path, at, off) if value is off else ""


def toml_switch(path: Path, at: Sequence[str]) -> str:
    """Describe the setting that disables hooks in a TOML file; empty if they are enabled."""
    try:
        value: Any = tomllib.loads(files.read(path).text or "")
    except (ConfigError, tomllib.TOMLDecodeError):
        return ""
    for step in at:
        value = value.get(step) if isinstance(value, dict) else None
    return _problem(path, at, False) if value is False else ""


def _problem(path: Path, at: Sequence[str], value: bool) -> str:
    return f"all hooks are switched off by {path_text(at)} = {str(value).lower()} in {path}"
