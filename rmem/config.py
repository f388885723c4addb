"""Default paths, and the environment variables that change them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from .errors import ConfigError

HOME = "RMEM_HOME"
STORE_NAME = "memories.db"
_acting: ContextVar[tuple[str, str] | None] = ContextVar("acting", default=None)


def home() -> Path:
    """Return the folder of the default store: $RMEM_HOME, or the user's data folder for applications."""
    given = os.environ.get(HOME, "").strip()
    if given:
        folder = Path(given).expanduser()
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{HOME} must name a folder, but {folder} is a file")
        return folder
    import platformdirs

    folder, old = (Path(platformdirs.user_data_dir(name, appauthor=False)) for name in ("rmem", "remanence"))
    return old if old.is_dir() and not folder.exists() else folder


def default_store() -> Path:
    return home() / STORE_NAME


@contextmanager
def acting(name: str, token: str = "") -> Iterator[None]:
    """Set the user of audit entries in this context: a server acts for its callers, who have a token."""
    before = _acting.set((name, token))
    try:
        yield
    finally:
        _acting.reset(before)


def user() -> str:
    """Return the user for audit entries: the one of `acting`, else RMEM_USER, else the login name."""
    acting_for = _acting.get()
    if acting_for is not None:
        return acting_for[0]
    named = (os.environ.get(name) for name in ("RMEM_USER", "LOGNAME", "USER", "USERNAME"))
    return next((name for name in named if name), None) or f"user-{os.getuid() if hasattr(os, 'getuid') else 0}"


def token() -> str:
    """Return the id of the token given to `acting`; empty if there is none."""
    acting_for = _acting.get()
    return "" if acting_for is None else acting_for[1]
